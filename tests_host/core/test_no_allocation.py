"""What runs for each message takes nothing from the heap: no object, and no frame of a function.

Each test does its work at least ten times, with moments across the tick wrap. On the 32-bit build
an int beyond 2**30 is an object, which the 64-bit build hides; frames from the heap show on the
64-bit build alone (see `kit.leaves_the_heap_alone`).
"""

from array import array

from millpond.batch_f7 import F7Writer, count_f7, restamp_f7
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import (
    CRITICAL,
    HIGH,
    LOW,
    NORMAL,
    TAG_BATCH,
    TAG_UNSTAMPED,
    Message,
    TopicTable,
)
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.reading import FLOAT32, INT16, INT32, UINT8, UINT16, UINT32, is_record, pack_reading
from millpond.sender import Sender
from millpond.watchdog import DeliveryWatchdog
from tests_host.kit import WEBASSEMBLY, bytes_taken, leaves_the_heap_alone, no_alloc

WRAP = 1 << 30
TIMES = 12
PRIORITIES = (LOW, NORMAL, LOW, HIGH, CRITICAL)
# An int beyond the small ones: an object of one block, its digits in another.
INT_OBJECT = 32
# Moments 100 ms apart, the tick wrap in their midst; made here, for making one may allocate.
MOMENTS = [(WRAP - 630 + 100 * i) % WRAP for i in range(TIMES)]
# The last seconds that a timestamp can have without the clock being known, and some before.
SECONDS = [999999999 - TIMES + i for i in range(TIMES)]


def a_clock(unix=4000000000):
    """A clock that shows MOMENTS one after the other, and Unix times far beyond 2**31."""

    def ticks():
        ticks_at[0] = (ticks_at[0] + 1) % TIMES
        return MOMENTS[ticks_at[0]]

    ticks_at = [-1]
    clock = Clock(ticks)
    if unix:
        clock.set_unix(unix)
    return clock


# -- MessageQueue ------------------------------------------------------------------------------


class BusyQueue:
    """A small queue, and what does everything to it. Its methods keep their frames small."""

    def __init__(self, first_id, overflow):
        self.queue = MessageQueue(4, 16, overflow=overflow, first_id=first_id)
        self.topic = self.queue.topics.index("t")
        self.message = Message(16)
        self.payload = bytes(16)

    def put(self, priority, now):
        self.queue.enqueue(self.topic, self.payload, priority=priority, now=now)

    def overflow(self, now):
        for priority in PRIORITIES:
            self.put(priority, now)

    def pass_through(self, now):
        queue = self.queue
        queue.enqueue("t", self.payload, ttl_ms=50, now=now)
        self.overflow(now)
        queue.peek(now)
        queue.pop(now)
        queue.peek(now)
        self.put(CRITICAL, now)
        queue.pop(now)
        queue.dequeue(self.message, now)
        queue.expire(now)

    def work(self):
        for now in MOMENTS:
            self.pass_through(now)


def test_enqueue_displace_peek_pop_dequeue_and_expire():
    for overflow in ("displace", "reject", "oldest"):
        busy = BusyQueue(1, overflow)
        leaves_the_heap_alone(busy.work)
        stats = busy.queue.stats
        assert stats.dequeued
        assert stats.refused if overflow == "reject" else stats.displaced and stats.expired


def test_an_id_beyond_2_to_the_30_costs_its_int_object_and_nothing_else():
    for first_id in (WRAP - TIMES, WRAP, 3 * WRAP, (1 << 32) - 40 * TIMES):
        busy = BusyQueue(first_id, "displace")
        if not WEBASSEMBLY:
            leaves_the_heap_alone(busy.work)
            continue
        busy.work()
        before = busy.queue.stats.enqueued
        taken = bytes_taken(busy.work)
        ids = (busy.queue.stats.enqueued - before) // 2
        # `enqueue` gives each id, and `dequeue` puts one a round into its message. Putting it
        # together from two halves makes three int objects: the upper half as an operand, that
        # half shifted up, and the id.
        assert 0 < taken <= 3 * INT_OBJECT * (ids + TIMES), (first_id, taken, ids)


def test_ids_that_have_wrapped_cost_nothing():
    busy = BusyQueue((1 << 32) - 2, "displace")
    busy.work()
    leaves_the_heap_alone(busy.work)
    assert 0 < busy.message.id < 1000


# -- PagedRing ---------------------------------------------------------------------------------


class BusyRing:
    """A ring of four pages and four lanes, and what does everything to it."""

    def __init__(self, on_drop=None):
        self.ring = PagedRing(512, 128, 4, on_drop=on_drop)
        self.ring.seconds = WRAP - 1
        self.payload = bytes(40)

    def fill(self):
        ring = self.ring
        for lane in range(4):
            ring.append(self.payload, lane, 0xF7FF - lane)
            ring.append(self.payload, lane, 0xF7FF)

    def deliver(self):
        ring = self.ring
        ring.head()
        ring.sent(65535)
        ring.append(self.payload)
        ring.ack(1)
        ring.rewind()
        ring.retag(7)
        ring.sent(65534)
        ring.ack(65534)
        ring.drop("poison")

    def work(self):
        for _ in range(TIMES):
            self.fill()
            self.deliver()

    def reserve(self, lane):
        ring = self.ring
        if ring.reserve(30, lane):
            ring.commit(20, lane, 7)
        ring.reserve(ring.room(lane) + 1, lane)
        ring.head()
        ring.cancel(lane)
        if ring.reserve(60, lane):
            ring.commit(0, lane, 0xFFFF)

    def work_in_place(self):
        for _ in range(TIMES):
            for lane in range(4):
                self.reserve(lane)
            self.deliver()


def test_append_steal_head_sent_ack_rewind_and_drop():
    busy = BusyRing()
    leaves_the_heap_alone(busy.work)
    ring = busy.ring
    assert sum(ring.stolen) and sum(ring.refused) and sum(ring.acked) and sum(ring.dropped)
    assert ring.stray_acks


def test_a_drop_that_is_told_allocates_nothing():
    # On a heap that is not locked MicroPython takes room for the arguments of a bound method, if
    # there are more than four, from the heap, and gives it back after the call.
    ledger = Ledger()
    busy = BusyRing(ledger.lost)
    ledger.buffer = busy.ring.buffer
    busy.work()
    no_alloc(busy.work)
    assert ledger.lost_for("stolen") == sum(busy.ring.stolen) > 0
    assert ledger.lost_for("poison") == sum(busy.ring.dropped) > 0


def test_reserve_commit_and_cancel():
    busy = BusyRing()
    leaves_the_heap_alone(busy.work_in_place)
    assert sum(busy.ring.stolen) and sum(busy.ring.acked)


def test_a_count_beyond_2_to_the_30_costs_its_int_object_and_nothing_else():
    busy = BusyRing()
    ring = busy.ring
    for counts in (ring.acked, ring.stolen, ring.refused, ring.dropped, ring._closed_in):
        counts[:] = [WRAP] * 4
    ring.stray_acks = WRAP
    if WEBASSEMBLY:
        # A round counts at most 9 messages in, and each of them, and 2 acknowledgements, out.
        assert 0 < bytes_taken(busy.work) <= TIMES * 20 * INT_OBJECT
    else:
        leaves_the_heap_alone(busy.work)


# -- readings and batches ----------------------------------------------------------------------


def test_readings_of_ints_and_of_floats():
    buf = bytearray(100)
    ints = ((INT16, array("h", (-32768, 0, 32767))), (INT32, array("i", (-WRAP, WRAP - 1))))
    floats = [0.1, -2.5e30, 3.0]
    large = [0xFFFFFFFF, WRAP]
    cases = ints + (
        (UINT8, bytes(9)),
        (UINT16, [1, 65535]),
        (UINT32, large),
        (UINT32, large[0]),
        (INT32, -7),
        (FLOAT32, floats),
        (FLOAT32, tuple(floats)),
        (FLOAT32, floats[0]),
        (FLOAT32, 5),
    )

    def work():
        for seconds in SECONDS:
            for kind, value in cases:
                length = pack_reading(buf, 1, 65535, kind, value, seconds)
                is_record(buf, 1, length)
            pack_reading(buf, 0, 1, FLOAT32, None, seconds, 255)

    leaves_the_heap_alone(work)


def test_a_number_from_an_array_is_an_object_where_it_is_no_small_int():
    buf = bytearray(100)
    floats = array("f", (1.5, 2.5))
    large = array("I", (WRAP, WRAP))

    def work():
        pack_reading(buf, 0, 1, FLOAT32, floats, 5)
        pack_reading(buf, 0, 1, UINT32, large, 5)

    work()
    assert buf[9:17] == b"\x40\x00\x00\x00" * 2  # the second record's, big-endian
    if WEBASSEMBLY:
        # Each number is looked at twice: to be checked, and to be written.
        assert bytes_taken(work) == 2 * (2 * 16 + 2 * INT_OBJECT)


def records():
    """Records of ints and floats, at seconds that make groups of two."""
    made = []
    for i in range(TIMES):
        record = bytearray(30)
        kind, value = ((INT16, [i, -i]), (FLOAT32, 0.1 * i))[i & 1]
        pack_reading(record, 0, i, kind, value, SECONDS[i // 2])
        made.append(record)
    return made


def test_a_batch_of_ints_and_floats_written_counted_and_stamped_anew():
    writer = F7Writer(65535, 0xFFFFFFFF)
    buf = bytearray(600)
    source = records()
    known, unknown = a_clock(), a_clock(0)

    def work():
        writer.begin(buf, 0, 600)
        for record in source:
            assert writer.add(record, 0, unknown)
        length = writer.end()
        assert count_f7(buf, 0, length) == TIMES
        restamp_f7(buf, 0, length, known)

    leaves_the_heap_alone(work)


def test_the_clock():
    clock = a_clock()
    clock.seconds = SECONDS[0]
    buf = bytearray(4)

    def work():
        for seconds in SECONDS:
            clock.now()
            clock.stamp(buf, 0, seconds)

    leaves_the_heap_alone(work)
    assert clock.seconds > SECONDS[0]


# -- the line ----------------------------------------------------------------------------------


class Line:
    """Intake, packer, ring and sender, as the firmware composes them, in little memory."""

    def __init__(self):
        topics = TopicTable()
        self.data = topics.index("data")
        self.alert = topics.index("alert")
        self.clock = a_clock(0)
        self.ledger = Ledger()
        self.queue = MessageQueue(8, 40, topics)
        self.ring = PagedRing(1536, 256, 4, on_drop=self.ledger.lost)
        self.packer = self.made_packer()
        self.sender = Sender(self.ring, topics, 20, 0, self.ledger.delivered, self.packer.prepare)
        self.watchdog = DeliveryWatchdog(120, MOMENTS[0])
        self.records = [memoryview(record)[:13] for record in records()]
        self.text = b"a hot bearing"

    def made_packer(self):
        def writer():
            return F7Writer(65535, 0xFFFFFFFF)

        return Packer(self.queue, self.ring, self.clock, self.ledger, writer, self.data, 1, 3, 200)

    def offer(self, i):
        now = MOMENTS[i]
        self.queue.enqueue(self.data, self.records[i], now=now)
        self.queue.enqueue(self.data, self.records[i], priority=LOW, now=now)
        self.queue.enqueue(self.alert, self.text, priority=CRITICAL, now=now)

    def send(self, now):
        sender = self.sender
        while sender.next(now):
            sender.left(now)
            sender.acked(0, now)
            sender.acked(sender.packet_id, now)
        sender.overdue(now)
        self.watchdog.check(now, True, self.ring.head(), sender.delivered)

    def deliver(self):
        """An outage, and what is delivered when it is over."""
        for i in range(TIMES):
            self.offer(i)
            self.packer.poll(MOMENTS[i], i > 3)
            if i == 4:
                self.sender.connected(False, MOMENTS[i])
            self.send(MOMENTS[i])
        self.sender.disconnected()

    def hoard(self):
        """An outage, the ring full."""
        for i in range(TIMES):
            self.offer(i)
            self.packer.poll(MOMENTS[i], False)


def test_from_the_intake_to_the_acknowledgement():
    line = Line()
    leaves_the_heap_alone(line.deliver)
    line.deliver()
    assert line.sender.delivered and line.ledger.items_delivered > line.sender.delivered


def test_an_outage_in_which_the_ring_steals():
    line = Line()
    for _ in range(8):
        line.hoard()
    no_alloc(line.hoard)  # as in test_a_drop_that_is_told_allocates_nothing
    assert line.ledger.lost_for("stolen")


def test_stamps_given_on_the_way_out():
    line = Line()
    for _ in range(8):
        line.hoard()
    line.packer.flush()
    line.clock.set_unix(4000000000)
    ring = line.ring
    while ring.head() and not ring.head_tag & TAG_BATCH:
        ring.drop("other")
    assert ring.head_tag & TAG_UNSTAMPED

    def leave():
        for _ in range(TIMES):
            line.packer.prepare(ring.head_at, ring.head_length, ring.head_tag)

    leaves_the_heap_alone(leave)
