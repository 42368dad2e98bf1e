"""A driver of MessageQueue for recorded traces: see replay_kit."""

from millpond.message import Message
from millpond.message_queue import MessageQueue
from tests_host.core.replay_kit import Driver, Lock, digest, payload

# Topics by number: four that are fine (the last of the greatest length), then what is refused.
TOPICS = ("a", "b/c", "d/\u00fc", "t" * 65535, "", "a/+", "#", "n\0", "t" * 65536, None)
BAD_TOPICS = range(4, len(TOPICS))

# From this number on, a topic is given by its index in the table.
BY_INDEX = 100

# What the payload is handed over as, by number; the last three are refused.
AS = (bytes, bytearray, memoryview, lambda data: "x" * len(data), list, lambda data: None)
AS_TEXT, AS_LIST, AS_NONE = 3, 4, 5

FULL = "Queue full: all {} slots taken, dropping messages"
OVER = "Queue no longer full: {} messages dropped meanwhile"


class QueueDriver(Driver):
    """Does to a MessageQueue what a trace says; times are given with each operation.

    With `feeds`, the log callback itself puts an empty message of priority 2 into the queue; with
    `locked` the queue has a lock, and refuses that one.
    `begun` counts the overflows the log has told of, `ended` those it has told the end of, and
    `told_lost` is the number of messages lost that the last of these told of.
    """

    FIELDS = (
        "held",
        "is_empty",
        "is_full",
        "fill_percent",
        "enqueued",
        "dequeued",
        "refused",
        "displaced",
        "expired",
        "cleared",
        "high_water",
        "waited_ms",
        "last_wait_ms",
        "max_wait_ms",
        "mean_wait_ms",
        "begun",
        "ended",
        "told_lost",
        "topics",
        "busy",
    )

    def __init__(self, capacity, slot_size, topics, overflow, first_id, feeds, locked):
        self.lock = Lock() if locked else None
        self.queue = MessageQueue(
            capacity, slot_size, topics, overflow, self.log, first_id, self.lock
        )
        self.queue.topics.index("a")  # the one that `log` uses
        self.message = Message(slot_size)
        self.small = Message(slot_size - 1) if slot_size > 1 else None
        self.feeds = feeds
        self.count = 0
        self.now = 0
        self.begun = self.ended = self.told_lost = 0

    def log(self, line):
        if line == FULL.format(self.queue.capacity):
            self.begun += 1
        else:
            self.told_lost = int(line.split(" ")[4])
            assert line == OVER.format(self.told_lost), line
            self.ended += 1
        if self.feeds:
            self.queue.enqueue("a", b"", 0, 2, False, 0, self.now)

    def state(self):
        queue, stats = self.queue, self.queue.stats
        return (
            len(queue),
            int(queue.is_empty()),
            int(queue.is_full()),
            queue.fill_percent(),
            stats.enqueued,
            stats.dequeued,
            stats.refused,
            stats.displaced,
            stats.expired,
            stats.cleared,
            stats.high_water,
            stats.waited_ms,
            stats.last_wait_ms,
            stats.max_wait_ms,
            stats.mean_wait_ms,
            self.begun,
            self.ended,
            self.told_lost,
            len(queue.topics),
            stats.busy,
        )

    def check(self):
        self.queue.check()
        assert self.lock is None or not self.lock.is_held

    def rates(self):
        """Drop rate and throughput: apart from the state, since floats differ in precision."""
        return self.queue.stats.drop_rate, self.queue.stats.throughput

    def enqueue(self, topic, size, given_as, qos, priority, retained, ttl, now):
        self.now = now
        self.count += 1
        topic = topic - BY_INDEX if topic >= BY_INDEX else TOPICS[topic]
        data = AS[given_as](payload(self.count, size))
        return self.queue.enqueue(topic, data, qos, priority, bool(retained), ttl, now)

    def peek(self, now):
        """What is shown: (digest, topic, QoS, priority, retained), or () for nothing."""
        queue = self.queue
        if not queue.peek(now):
            return ()
        data = bytes(queue.buffer[queue.head_at : queue.head_at + queue.head_length])
        assert bytes(queue.head_payload)[: queue.head_length] == data
        topic = TOPICS.index(queue.topics.text(queue.head_topic))
        return digest(data), topic, queue.head_qos, queue.head_priority, int(queue.head_retained)

    def pop(self, now):
        self.now = now
        return int(self.queue.pop(now))

    def dequeue(self, now):
        """The message: (id, digest, topic, QoS, priority, retained, created, expiry), or ()."""
        self.now = now
        one = self.message
        if not self.queue.dequeue(one, now):
            return ()
        data = bytes(one.payload[: one.length])
        assert self.queue.topics.text(one.topic_index) == one.topic
        what = (one.id, digest(data), TOPICS.index(one.topic), one.qos, one.priority)
        return what + (int(one.retained), one.created, one.expiry)

    def dequeue_into_too_small(self, now):
        return int(self.queue.dequeue(self.small or Message(0), now))

    def expire(self, now):
        self.now = now
        return self.queue.expire(now)

    def clear(self, now):
        self.now = now
        return self.queue.clear()

    def oldest_ms(self, now):
        return self.queue.oldest_ms(now)

    def throughput(self):
        """In thousandths of a message per second."""
        return int(self.queue.stats.throughput * 1000 + 0.01)

    def print_stats(self):
        lines = []
        self.queue.print_stats("Intake", lines.append)
        return lines[0]
