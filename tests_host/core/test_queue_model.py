"""MessageQueue against a model of plain lists: long random walks, the same on every interpreter."""

from millpond.clock import add, diff
from millpond.message import Message
from millpond.message_queue import OVERFLOWS, MessageQueue
from tests_host.core.queue_kit import WRAP, books

SLOT_SIZE = 12
TOPICS = ("a", "b/c", "d")


class Dice:
    """A linear congruential generator: the same numbers on CPython and MicroPython."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % n


class Model:
    """What a queue must do, in lists of (id, topic, payload, qos, priority, retained, at, end)."""

    def __init__(self, capacity, overflow):
        self.capacity = capacity
        self.overflow = overflow
        self.lanes = [[], [], [], []]
        self.next_id = 1
        self.shown = None  # an entry, or "gone"
        self.enqueued = self.dequeued = self.refused = 0
        self.displaced = self.expired = self.cleared = 0
        self.high_water = self.waited = self.longest = self.last = 0
        self.losing = False
        self.lost = 0
        self.log = []

    def __len__(self):
        return sum([len(lane) for lane in self.lanes])

    def books(self):
        return (
            self.enqueued,
            self.dequeued,
            self.refused,
            self.displaced,
            self.expired,
            self.cleared,
        )

    def is_over(self, entry, now):
        return entry[7] is not None and diff(now, entry[7]) >= 0

    def drop(self, lane, i):
        entry = self.lanes[lane].pop(i)
        if entry is self.shown:
            self.shown = "gone"

    def drop_expired_heads(self, lane, now):
        while self.lanes[lane] and self.is_over(self.lanes[lane][0], now):
            self.drop(lane, 0)
            self.expired += 1

    def begin(self):
        self.lost += 1
        if not self.losing:
            self.losing = True
            self.lost = 1
            self.log.append("begins")

    def end_if_calm(self):
        if self.losing and len(self) <= self.capacity * 4 // 5:
            self.losing = False
            self.log.append(self.lost)

    def enqueue(self, topic, payload, qos, priority, retained, ttl, now):
        displaces = False
        if len(self) == self.capacity:
            for lane in range(4):
                self.drop_expired_heads(lane, now)
        if len(self) == self.capacity:
            victim = self.victim(priority)
            if victim is None:
                self.refused += 1
                self.begin()
                return 0
            self.drop(victim, 0)
            self.displaced += 1
            displaces = True
        end = add(now, ttl) if ttl else None
        entry = (self.next_id, topic, payload, qos, priority, retained, now, end)
        self.lanes[priority].append(entry)
        self.next_id += 1
        self.enqueued += 1
        self.high_water = max(self.high_water, len(self))
        if displaces:
            self.begin()
        return entry[0]

    def victim(self, priority):
        if self.overflow == "reject":
            return None
        lower = [lane for lane in range(priority) if self.lanes[lane]]
        if lower:
            return lower[0]
        return priority if self.overflow == "oldest" and self.lanes[priority] else None

    def peek(self, now):
        for lane in (3, 2, 1, 0):
            self.drop_expired_heads(lane, now)
            if self.lanes[lane]:
                self.shown = self.lanes[lane][0]
                return self.shown
        self.shown = None
        return None

    def pop(self, now):
        if self.shown == "gone":
            self.shown = None
            return None
        entry = self.shown or self.peek(now)
        if entry is None:
            return None
        self.lanes[entry[4]].remove(entry)
        self.shown = None
        self.dequeued += 1
        self.last = max(0, diff(now, entry[6]))
        self.waited += self.last
        self.longest = max(self.longest, self.last)
        self.end_if_calm()
        return entry

    def expire(self, now):
        before = len(self)
        for lane in range(4):
            for i in reversed(range(len(self.lanes[lane]))):
                if self.is_over(self.lanes[lane][i], now):
                    self.drop(lane, i)
                    self.expired += 1
        self.end_if_calm()
        return before - len(self)

    def clear(self):
        before = len(self)
        for lane in range(4):
            while self.lanes[lane]:
                self.drop(lane, 0)
        self.cleared += before
        self.end_if_calm()
        return before


class Walk:
    """One random walk of a queue and its model, side by side."""

    def __init__(self, capacity, overflow, seed):
        self.dice = Dice(seed)
        self.now = WRAP - 3000
        self.lines = []
        self.model = Model(capacity, overflow)
        self.queue = MessageQueue(capacity, SLOT_SIZE, 3, overflow, self.lines.append)
        self.message = Message(SLOT_SIZE)

    def run(self, steps):
        # Some stretches fill the queue, some drain it, so that it is often full and often empty.
        for step in range(steps):
            fills = (step // 40) % 3 != 2
            self.now = add(self.now, self.dice.below(30))
            roll = self.dice.below(100)
            if roll < (65 if fills else 20):
                self.enqueue()
            elif roll < 75:
                self.peek()
            elif roll < 87:
                assert self.queue.pop(self.now) == (self.model.pop(self.now) is not None)
            elif roll < 97:
                self.dequeue()
            elif roll < 99 or self.dice.below(3):
                assert self.queue.expire(self.now) == self.model.expire(self.now)
            else:
                assert self.queue.clear() == self.model.clear()
            self.compare()

    def enqueue(self):
        dice = self.dice
        topic = TOPICS[dice.below(3)]
        payload = bytes([dice.below(256) for _ in range(dice.below(SLOT_SIZE + 1))])
        ttl = dice.below(400) if dice.below(3) == 0 else 0
        fields = (topic, payload, dice.below(3), dice.below(4), bool(dice.below(2)), ttl, self.now)
        assert self.queue.enqueue(*fields) == self.model.enqueue(*fields)

    def peek(self):
        entry = self.model.peek(self.now)
        queue = self.queue
        assert queue.peek(self.now) == (entry is not None)
        if entry is None:
            return
        assert queue.topics.text(queue.head_topic) == entry[1]
        assert bytes(queue.buffer[queue.head_at : queue.head_at + queue.head_length]) == entry[2]
        assert bytes(queue.head_payload)[: queue.head_length] == entry[2]
        assert (queue.head_qos, queue.head_priority, queue.head_retained) == entry[3:6]

    def dequeue(self):
        entry = self.model.peek(self.now) and self.model.pop(self.now)
        message = self.message
        assert self.queue.dequeue(message, self.now) == (entry is not None)
        if entry is None:
            return
        out = (message.id, message.topic, bytes(message.payload[: message.length]), message.qos)
        out += (message.priority, message.retained, message.created)
        assert out == entry[:7]
        assert message.expiry == (0 if entry[7] is None else entry[7] or 1)

    def compare(self):
        queue, model = self.queue, self.model
        queue.check()
        assert len(queue) == len(model)
        assert queue.is_empty() == (not len(model)) and queue.is_full() == (
            len(model) == model.capacity
        )
        assert books(queue) == model.books()
        stats = queue.stats
        assert (stats.high_water, stats.waited_ms) == (model.high_water, model.waited)
        assert (stats.last_wait_ms, stats.max_wait_ms) == (model.last, model.longest)
        assert len(self.lines) == len(model.log)

    def compare_log(self):
        for line, event in zip(self.lines, self.model.log):
            if event == "begins":
                assert line.startswith("Queue full: all {} slots".format(self.model.capacity))
            else:
                assert line == "Queue no longer full: {} messages dropped meanwhile".format(event)

    def compare_order(self):
        while len(self.queue) or len(self.model):
            self.dequeue()
        self.compare()


def walk(capacity, steps):
    for seed, overflow in enumerate(OVERFLOWS):
        one = Walk(capacity, overflow, 1000 * capacity + seed)
        one.run(steps)
        one.compare_log()
        one.compare_order()
        model = one.model
        assert model.enqueued and model.dequeued and model.refused and model.expired
        assert model.cleared and bool(model.displaced) == (overflow != "reject")
        assert len(model.log) > 2 and one.now < WRAP // 2  # the ticks have wrapped


def test_Q_walk_of_a_queue_of_1():
    walk(1, 1500)


def test_Q_walk_of_a_queue_of_2():
    walk(2, 1500)


def test_Q_walk_of_a_queue_of_3():
    walk(3, 1500)


def test_Q_walk_of_a_queue_of_5():
    walk(5, 1500)


def test_Q_walk_of_a_queue_of_8():
    walk(8, 2000)


def test_Q_walk_of_a_queue_of_16():
    walk(16, 2500)
