"""Locks (Q12, R9): what each call does with the lock, and threads and interrupts hammering both."""

import time

from millpond.message import CRITICAL, Message
from millpond.message_queue import MessageQueue
from millpond.paged_ring import PagedRing
from tests_host.kit import MICROPYTHON, raises

try:
    import _thread
except ImportError:  # the 32-bit build
    _thread = None

_NO_THREADS = "that build has no threads"
NOT_ON_32_BIT = {
    "test_Q12_threads_feed_the_queue": _NO_THREADS,
    "test_Q12_soft_interrupts_feed_the_queue": _NO_THREADS,
    "test_Q12_the_packer_takes_out_what_threads_feed": _NO_THREADS,
    "test_R9_soft_interrupts_append": _NO_THREADS,
    "test_R9_threads_append_and_reserve_on_lanes_of_their_own": _NO_THREADS,
}
_PRODUCERS = 3
_EACH = 1000


class Lock:
    """Counts; being taken twice or given back twice is an error, for it would wait for ever."""

    def __init__(self):
        self.taken = self.held = 0

    def acquire(self):
        assert not self.held, "taken twice"
        self.held = 1
        self.taken += 1

    def release(self):
        assert self.held, "given back twice"
        self.held = 0


def public(thing):
    names = [name for name in dir(thing.__class__) if name[0] != "_"]
    return sorted(name for name in names if callable(getattr(thing, name)))


# -- each call -----------------------------------------------------------------------------------

# An operation and its arguments, in an order in which each of them succeeds.
_ON_THE_RING = (
    ("append", b"one"),
    ("append", b"two"),
    ("reserve", 8),
    ("commit", 4),
    ("cancel",),
    ("room",),
    ("head",),
    ("retag", 3),
    ("sent", 7),
    ("rewind",),
    ("sent", 7),
    ("ack", 7),
    ("drop", "poison"),
    ("expire",),
    ("appended", 0),
    ("held", 0),
    ("messages",),
    ("pages_free",),
    ("pages_work",),
    ("pages_used",),
    ("high_water",),
    ("fill_percent",),
    ("bytes_held",),
    ("oldest_age",),
    ("check",),
    ("born", 0),
)
_ON_THE_QUEUE = (
    ("enqueue", "t", b"one"),
    ("enqueue", "t", b"two"),
    ("enqueue", "t", b"three"),
    ("peek", 0),
    ("pop", 0),
    ("dequeue", Message(8), 0),
    ("expire", 0),
    ("oldest_ms", 0),
    ("is_empty",),
    ("is_full",),
    ("fill_percent",),
    ("print_stats", "t", lambda line: None),
    ("check",),
    ("clear",),
)


def run_each(thing, lock, operations):
    for operation in operations:
        before = lock.taken
        getattr(thing, operation[0])(*operation[1:])
        assert lock.taken == before + 1 and not lock.held, operation
    assert public(thing) == sorted({operation[0] for operation in operations})


def test_R9_each_operation_of_the_ring_takes_the_lock_once():
    lock = Lock()
    run_each(PagedRing(256, 64, 1, lock), lock, _ON_THE_RING)


def test_Q12_each_operation_of_the_queue_takes_the_lock_once():
    lock = Lock()
    run_each(MessageQueue(4, 8, lock=lock), lock, _ON_THE_QUEUE)


def test_R9_the_lock_is_given_back_when_an_operation_raises():
    lock = Lock()
    ring = PagedRing(256, 64, 1, lock)
    raises(ValueError, ring.append, bytes(100))
    raises(ValueError, ring.sent, 1)
    queue = MessageQueue(4, 8, lock=lock)
    raises(ValueError, queue.enqueue, "t", bytes(9))
    assert lock.taken == 3 and not lock.held
    assert ring.append(b"x") and queue.enqueue("t", b"x")


def test_R9_without_a_lock_the_methods_are_those_of_the_class():
    for thing in (PagedRing(256, 64), MessageQueue(4)):
        for name in public(thing):
            assert name not in thing.__dict__
        assert getattr(thing, "guard", None) is None


def test_R9_on_drop_may_look_at_the_ring_but_not_change_it():
    seen = []

    def on_drop(at, length, tag, lane, reason):
        seen.append((reason, ring.messages(), ring.fill_percent(), ring.append(b"from within")))
        raises(RuntimeError, ring.reserve, 5)
        raises(RuntimeError, ring.ack, 5)

    lock = Lock()
    ring = PagedRing(192, 64, 1, lock, on_drop=on_drop)
    for _ in range(4):
        ring.append(bytes(50))
    assert seen == [("stolen", 3, 100, False)]
    assert ring.refused == [1] and ring.messages() == 3 and not lock.held
    ring.check()


def test_R9_with_a_lock_head_pins_what_it_finds():
    ring = PagedRing(192, 64, 2, Lock())
    ring.append(b"first" + bytes(45))
    assert ring.head()
    for _ in range(9):
        ring.append(bytes(50), 1)
    assert ring.buffer[ring.head_at : ring.head_at + 5] == b"first"
    ring.retag(9)
    ring.sent(5)
    assert ring.buffer[ring.head_at : ring.head_at + 5] == b"first" and ring.ack(5)
    assert ring.acked == [1, 0]
    ring.check()


def test_Q12_a_message_that_comes_within_a_call_is_refused_and_counted():
    queue = MessageQueue(4, 8, lock=Lock())

    def interrupted():
        return queue.enqueue("t", b"x", priority=CRITICAL)

    assert queue.guard.locked(interrupted)() == 0
    stats = queue.stats
    assert (stats.busy, stats.refused, stats.enqueued, stats.offered) == (1, 1, 0, 1)
    assert interrupted() == 1 and stats.busy == 1
    queue.check()


# -- many at once --------------------------------------------------------------------------------


def record(producer, number):
    """24 bytes that show when they are torn."""
    return bytes([producer + 1, number >> 8, number & 0xFF]) * 8


def read(payload):
    """The producer and the number; AssertionError when it is torn."""
    payload = bytes(payload)
    assert payload == payload[:3] * 8, payload
    return payload[0] - 1, payload[1] << 8 | payload[2]


class Crew:
    """Threads that each run `work(i)`; `running()` says whether any has not ended."""

    def __init__(self, count, work):
        self._ended = [False] * count
        self._errors = []
        for i in range(count):
            _thread.start_new_thread(self._run, (i, work))

    def _run(self, i, work):
        try:
            work(i)
        except Exception as error:
            self._errors.append(error)
        self._ended[i] = True

    def running(self):
        return not all(self._ended)

    def check(self):
        for error in self._errors:
            raise error


class Seen:
    """Delivered messages: each in its producer's order, and none twice."""

    def __init__(self, producers):
        self.count = 0
        self._last = [-1] * producers

    def add(self, payload):
        producer, number = read(payload)
        assert number > self._last[producer], (producer, number, self._last[producer])
        self._last[producer] = number
        self.count += 1


def a_lock():
    return _thread.allocate_lock()


def feed(queue, producer, each=_EACH):
    topic = str(producer)
    for number in range(each):
        queue.enqueue(topic, record(producer, number), priority=producer & 3)
        if number % 16 == 0:
            time.sleep(0.0002)  # else no thread is ever interrupted by another on CPython


def drain(queue, seen, going):
    message = Message(queue.slot_size)
    while True:
        last = not going()
        while queue.dequeue(message, 0):
            assert message.topic == str(message.payload[0] - 1)
            seen.add(message.payload[: message.length])
        queue.expire(0)
        if last:
            return


def assert_books(queue, seen, produced):
    stats = queue.stats
    queue.check()
    assert stats.offered == produced, (stats.offered, produced)
    assert seen.count == stats.dequeued == produced - stats.dropped


def test_Q12_threads_feed_the_queue():
    for overflow in ("displace", "oldest", "reject"):
        queue = MessageQueue(16, 24, overflow=overflow, lock=a_lock())
        seen = Seen(_PRODUCERS)
        crew = Crew(_PRODUCERS, lambda i, queue=queue: feed(queue, i))
        drain(queue, seen, crew.running)
        crew.check()
        assert_books(queue, seen, _PRODUCERS * _EACH)
        assert queue.stats.busy == 0


class Interrupts:
    """Soft interrupts that each call `take(number)`; `refused` counts when it returned 0."""

    def __init__(self, take):
        self._take = take
        self.fired = self.refused = 0

    def fire(self):
        """Schedule many; to be run by a thread."""
        import micropython

        while self.fired < _EACH:
            try:
                micropython.schedule(self._interrupt, 0)
            except RuntimeError:
                time.sleep(0)  # the schedule is full

    def _interrupt(self, _):
        if not self._take(self.fired):
            self.refused += 1
        self.fired += 1


def test_Q12_soft_interrupts_feed_the_queue():
    if not MICROPYTHON:
        return  # there are none
    queue = MessageQueue(16, 24, overflow="oldest", lock=a_lock())
    seen = Seen(_PRODUCERS + 1)
    own = _PRODUCERS
    interrupts = Interrupts(lambda n: queue.enqueue(str(own), record(own, n), priority=CRITICAL))
    crew = Crew(own + 1, lambda i: feed(queue, i) if i < own else interrupts.fire())
    drain(queue, seen, crew.running)
    crew.check()
    assert_books(queue, seen, own * _EACH + interrupts.fired)
    assert 0 < queue.stats.busy == interrupts.refused < interrupts.fired


def test_Q12_the_packer_takes_out_what_threads_feed():
    from millpond.batch_f7 import F7Writer
    from millpond.clock import Clock
    from millpond.ledger import Ledger
    from millpond.packer import Packer

    ledger = Ledger()
    queue = MessageQueue(16, 24, overflow="oldest", lock=a_lock())
    ring = PagedRing(4096, 256, 4, a_lock(), on_drop=ledger.lost)
    packer = Packer(queue, ring, Clock(lambda: 0), ledger, lambda: F7Writer(1, 1), "data")
    crew = Crew(_PRODUCERS, lambda i: feed(queue, i))
    seen = Seen(_PRODUCERS)
    going = True
    while going:
        going = crew.running()
        while packer.poll(0, True, 4) or ring.head():
            consume(ring, seen)
    crew.check()
    queue.check()
    ring.check()
    stats = queue.stats
    assert stats.offered == _PRODUCERS * _EACH
    assert stats.dequeued == ledger.items_taken == seen.count + ledger.lost_in_all()


def consume(ring, seen):
    """Deliver what the ring's head is, if there is one."""
    if not ring.head():
        return
    ring.sent(5)
    lane, at = ring.head_lane, ring.head_at
    seen.add(ring.buffer[at : at + ring.head_length])
    assert ring.head_lane == lane
    assert ring.ack(5)


def put(ring, lane, lost):
    """Append on the lane; on lane 0 reserve and commit instead."""
    for number in range(_EACH):
        if lane:
            lost[lane] += not ring.append(record(lane, number), lane, lane)
        else:
            at = ring.reserve(24, lane)
            if at:
                ring.buffer[at : at + 24] = record(lane, number)
                ring.commit(24, lane)
            else:
                lost[lane] += 1
        if number % 16 == 0:
            time.sleep(0.0002)


def test_R9_threads_append_and_reserve_on_lanes_of_their_own():
    told = [0] * 4

    def on_drop(at, length, tag, lane, reason):
        assert read(ring.buffer[at : at + length])[0] == lane and ring.messages()
        told[lane] += 1

    refused = [0] * 4
    ring = PagedRing(2048, 256, 4, a_lock(), on_drop=on_drop)
    crew = Crew(4, lambda lane: put(ring, lane, refused))
    seen = Seen(4)
    while crew.running() or ring.head():
        consume(ring, seen)
    crew.check()
    ring.check()
    assert told == ring.stolen
    assert seen.count == sum(ring.acked)
    for lane in range(4):
        assert ring.acked[lane] + ring.stolen[lane] + refused[lane] == _EACH, lane


def test_R9_soft_interrupts_append():
    if not MICROPYTHON:
        return  # there are none
    ring = PagedRing(2048, 256, 4, a_lock())
    refused = [0] * 4
    interrupts = Interrupts(lambda n: ring.append(record(3, n), 3))
    crew = Crew(4, lambda i: put(ring, i, refused) if i < 3 else interrupts.fire())
    seen = Seen(4)
    while crew.running() or ring.head():
        consume(ring, seen)
    crew.check()
    ring.check()
    assert ring.refused[3] == interrupts.refused > 0
    assert ring.acked[3] + ring.stolen[3] + interrupts.refused == interrupts.fired
    assert seen.count == sum(ring.acked)
    for lane in range(3):
        assert ring.acked[lane] + ring.stolen[lane] + refused[lane] == _EACH, lane
