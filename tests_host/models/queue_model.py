"""What a MessageQueue must do, in a deque per priority and a dict of fates (Q1-Q12).

It knows no slots and no rings of indexes. Every message that was ever offered has one fate, kept
by its number: "held", "delivered", or the reason why it was dropped; the counters are counted from
these, and so cannot drift.
"""

from collections import Counter, deque
from typing import NamedTuple

from tests_host.core.queue_driver import (
    AS_LIST,
    AS_NONE,
    AS_TEXT,
    BAD_TOPICS,
    BY_INDEX,
    TOPICS,
    QueueDriver,
)
from tests_host.core.replay_kit import Driver, digest, payload

RING = 1 << 30
MAX_ID = (1 << 32) - 1
WINDOW_MS = 10_000


def elapsed(later, earlier):
    """Milliseconds on the ring of 2**30, negative when `later` is the earlier one."""
    return (later - earlier + RING // 2) % RING - RING // 2


class Entry(NamedTuple):
    number: int
    id: int
    topic: int
    payload: bytes
    qos: int
    priority: int
    retained: int
    created: int
    expiry: int | None


class QueueModel(Driver):
    FIELDS = QueueDriver.FIELDS

    def __init__(self, capacity, slot_size, topics, overflow, first_id, feeds, locked):
        self.capacity, self.slot_size, self.overflow = capacity, slot_size, overflow
        self.max_topics, self.feeds, self.locked = topics, feeds, locked
        self.lanes = [deque() for _ in range(4)]
        self.topics = [0]
        self.next_id = first_id
        self.shown = None  # an Entry, or "gone"
        self.count = 0
        self.offers = 0
        self.fates = {}
        self.tally = Counter()
        self.high_water = self.waited = self.last_wait = self.max_wait = 0
        self.losing_since = None  # messages lost to a full queue before this overflow
        self.begun = self.ended = self.told_lost = self.busy = 0
        self.window = None  # when it began, and dequeued before it
        self.rate = (0, 1)

    # -- what there is to see --------------------------------------------------------------------

    def __len__(self):
        return sum(map(len, self.lanes))

    def lost_when_full(self):
        return self.tally["refused"] + self.tally["displaced"]

    def dropped(self):
        return self.lost_when_full() + self.tally["expired"] + self.tally["cleared"]

    def state(self):
        tally, held = self.tally, len(self)
        assert tally["held"] == held
        return (
            held,
            int(held == 0),
            int(held == self.capacity),
            100 * held // self.capacity,
            len(self.fates) - tally["refused"],
            tally["delivered"],
            tally["refused"],
            tally["displaced"],
            tally["expired"],
            tally["cleared"],
            self.high_water,
            self.waited,
            self.last_wait,
            self.max_wait,
            self.waited // max(1, tally["delivered"]),
            self.begun,
            self.ended,
            self.told_lost,
            len(self.topics),
            self.busy,
        )

    def rates(self):
        dequeued, ms = self.rate
        return self.dropped() / max(1, len(self.fates)), dequeued * 1000 / ms

    def settle(self, number, fate):
        self.tally[self.fates.get(number)] -= 1
        self.fates[number] = fate
        self.tally[fate] += 1

    # -- operations ------------------------------------------------------------------------------

    def enqueue(self, topic, size, given_as, qos, priority, retained, ttl, now):
        self.count += 1
        if given_as in (AS_TEXT, AS_NONE):
            raise TypeError("not bytes")
        if size > self.slot_size:
            raise ValueError("too large")
        if not (0 <= qos <= 2 and 0 <= priority <= 3 and 0 <= ttl < RING // 2):
            raise ValueError("out of range")
        topic = self.known(topic)
        if given_as == AS_LIST:
            raise TypeError("not bytes")
        return self.offer(topic, payload(self.count, size), qos, priority, retained, ttl, now)

    def known(self, topic):
        """The number of a topic, entered in the table when it is new (Q11)."""
        if topic >= BY_INDEX:
            if topic - BY_INDEX >= len(self.topics):
                raise ValueError("index of no topic")
            return self.topics[topic - BY_INDEX]
        if topic in self.topics:
            return topic
        if topic in BAD_TOPICS:
            raise TypeError("no text") if TOPICS[topic] is None else ValueError("bad topic")
        if len(self.topics) == self.max_topics:
            raise ValueError("table full")
        self.topics.append(topic)
        return topic

    def offer(self, topic, data, qos, priority, retained, ttl, now):
        self.offers += 1
        number = self.offers
        if len(self) == self.capacity:
            for lane in self.lanes:
                while lane and self.is_over(lane[0], now):
                    self.drop(lane, 0, "expired")
        begins = False
        if len(self) == self.capacity:
            victim = self.victim(priority)
            if victim is None:
                self.settle(number, "refused")
                if self.begin_losing():
                    self.log_begin(now)
                return 0
            self.drop(victim, 0, "displaced")
            begins = self.begin_losing()
        expiry = (now + ttl) % RING if ttl else None
        entry = Entry(number, self.next_id, topic, data, qos, priority, retained, now, expiry)
        self.lanes[priority].append(entry)
        self.settle(number, "held")
        self.next_id = self.next_id + 1 if self.next_id < MAX_ID else 1
        self.high_water = max(self.high_water, len(self))
        if begins:
            self.log_begin(now)
        return entry.id

    def victim(self, priority):
        if self.overflow == "reject":
            return None
        highest = priority + 1 if self.overflow == "oldest" else priority
        return next((lane for lane in self.lanes[:highest] if lane), None)

    def peek(self, now):
        entry = self.next(now)
        if entry is None:
            return ()
        return (digest(entry.payload), *entry[2:3], *entry[4:7])

    def next(self, now):
        """Show the next message that has not expired (Q5, Q7)."""
        for lane in reversed(self.lanes):
            while lane and self.is_over(lane[0], now):
                self.drop(lane, 0, "expired")
            if lane:
                self.shown = lane[0]
                return self.shown
        self.shown = None
        return None

    def pop(self, now):
        if self.shown == "gone":
            self.shown = None
            return 0
        entry = self.shown or self.next(now)
        if entry is None:
            return 0
        self.lanes[entry.priority].remove(entry)
        self.shown = None
        self.settle(entry.number, "delivered")
        self.last_wait = max(0, elapsed(now, entry.created))
        self.max_wait = max(self.max_wait, self.last_wait)
        self.waited += self.last_wait
        self.end_losing(now)
        return 1

    def dequeue(self, now):
        entry = self.next(now)
        if entry is None:
            return ()
        self.pop(now)
        expiry = 0 if entry.expiry is None else entry.expiry or 1
        return (entry.id, digest(entry.payload), entry.topic, *entry[4:8], expiry)

    def dequeue_into_too_small(self, now):
        raise ValueError("too small")

    def expire(self, now):
        gone = 0
        for lane in self.lanes:
            for i in reversed(range(len(lane))):
                if self.is_over(lane[i], now):
                    self.drop(lane, i, "expired")
                    gone += 1
        self.roll(now)
        self.end_losing(now)
        return gone

    def clear(self, now):
        gone = len(self)
        for lane in self.lanes:
            while lane:
                self.drop(lane, 0, "cleared")
        self.end_losing(now)
        return gone

    def oldest_ms(self, now):
        return max([0] + [elapsed(now, lane[0].created) for lane in self.lanes if lane])

    def print_stats(self):
        return (
            f"[STATS] Intake Queue: size={len(self)}/{self.capacity}, "
            f"enqueued={len(self.fates) - self.tally['refused']}, "
            f"dequeued={self.tally['delivered']}, dropped={self.dropped()}"
        )

    def throughput(self):
        dequeued, ms = self.rate
        return dequeued * 1_000_000 // ms

    # -- how ---------------------------------------------------------------------------------------

    def is_over(self, entry, now):
        return entry.expiry is not None and elapsed(now, entry.expiry) >= 0

    def drop(self, lane, i, reason):
        entry = lane[i]
        del lane[i]
        self.settle(entry.number, reason)
        if entry is self.shown:
            self.shown = "gone"

    def begin_losing(self):
        """A message was lost to the queue being full: whether it is the first (Q9)."""
        if self.losing_since is not None:
            return False
        self.losing_since = self.lost_when_full() - 1
        return True

    def end_losing(self, now):
        if self.losing_since is None or len(self) > self.capacity * 4 // 5:
            return
        self.told_lost = self.lost_when_full() - self.losing_since
        self.losing_since = None
        self.ended += 1
        self.feed(now)

    def log_begin(self, now):
        self.begun += 1
        self.feed(now)

    def feed(self, now):
        if self.feeds and self.locked:
            self.offers += 1
            self.busy += 1
            self.settle(self.offers, "refused")
        elif self.feeds:
            self.offer(self.known(0), b"", 0, 2, 0, 0, now)

    def roll(self, now):
        """End the window of the throughput when it has lasted 10 s (Q8)."""
        dequeued = self.tally["delivered"]
        if self.window is not None:
            ms = elapsed(now, self.window[0])
            if 0 <= ms < WINDOW_MS:
                return
            if ms > 0:
                self.rate = (dequeued - self.window[1], ms)
        self.window = (now, dequeued)
