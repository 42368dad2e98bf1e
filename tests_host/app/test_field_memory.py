"""A day of messages of every size: the heap is at its end as it was at the beginning."""

import gc

from firmware.mqtt_in import Inbound
from firmware.mqtt_out import Outbound
from millpond.batch import F7Writer
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import TopicTable
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.reading import FLOAT32, pack_reading
from millpond.sender import Sender
from tests_host.kit import MICROPYTHON

_NO_COLLECTOR = "nothing is collected there while a program runs"
NOT_ON_32_BIT = {
    "test_mp_3840_a_day_of_messages_of_every_size_leaves_no_hole_in_the_heap": _NO_COLLECTOR,
    "test_esp_idf_5668_eight_hours_of_one_a_minute_without_a_broker_take_no_memory": _NO_COLLECTOR,
}

HOUR_S = 3600
STEP_S = 4  # between two messages
SLOT = 1024
SLACK = 256  # bytes: what the collector takes for an address on the stack, or not


class Line:
    """Everything from the intake to the bytes of a PUBLISH, and a broker by hand."""

    def __init__(self):
        self.ms = 0
        self.clock = Clock(lambda: self.ms)
        self.topics = TopicTable()
        self.ledger = Ledger()
        self.queue = MessageQueue(16, SLOT, self.topics)
        self.ring = PagedRing(12 * 2048, 2048, 4, on_drop=self.ledger.lost)
        self.packer = Packer(
            self.queue, self.ring, self.clock, self.ledger, lambda: F7Writer(1, 1), "data"
        )
        self.sender = Sender(
            self.ring, self.topics, on_delivered=self.ledger.delivered, prepare=self.packer.prepare
        )
        self.out = Outbound(4096)
        self.inbound = Inbound(self)
        self.ack = bytearray(b"\x40\x02\x00\x00")
        self.view = memoryview(self.ring.buffer)
        self.record = bytearray(64)
        self.state = 4711

    def on_puback(self, packet_id):
        assert self.sender.acked(packet_id, self.clock.now())

    def random(self, limit):
        self.state = (self.state * 1103515245 + 12345) & 0x3FFFFFFF
        return (self.state >> 8) % limit

    def feed(self):
        """A reading, and now and then a message of any size on one of several topics."""
        self.clock.now()
        n = pack_reading(self.record, 0, 7, FLOAT32, 21.5, self.clock.seconds)
        self.queue.enqueue("data", self.record[:n])
        if not self.random(3):
            topic = "t/" + "x" * self.random(5)
            self.queue.enqueue(topic, bytes(self.random(SLOT)), priority=self.random(4))
        self.packer.poll(self.clock.now(), self.sender.state > 0)

    def minute(self):
        """A reading a minute, and what the application does meanwhile, a look each second."""
        for second in range(60):
            self.ms = (self.ms + 1000) & 0x3FFFFFFF
            now = self.clock.now()
            self.ring.seconds = self.clock.seconds
            if not second:
                n = pack_reading(self.record, 0, 7, FLOAT32, 21.5, self.clock.seconds)
                assert self.queue.enqueue("data", self.record[:n])
            self.packer.poll(now, False)
            self.queue.expire(now)
            self.ring.expire()
            self.send()

    def send(self):
        now = self.clock.now()
        sender = self.sender
        while sender.next(now):
            payload = self.view[sender.at : sender.at + sender.length]
            assert self.out.publish(sender.topic, payload, sender.flags, sender.packet_id)
            self.out.clear()
            sender.left(now)
            self.ack[2] = sender.packet_id >> 8
            self.ack[3] = sender.packet_id & 0xFF
            self.inbound.feed(self.ack, 4)

    def hour(self, link_up):
        for _ in range(HOUR_S // STEP_S):
            self.ms = (self.ms + 1000 * STEP_S) & 0x3FFFFFFF
            self.feed()
            self.send()
        if link_up:
            self.sender.disconnected()
        else:
            self.sender.connected(False, self.clock.now())


def largest_free_block():
    """The largest piece of the heap that can be had at once, in bytes."""
    least, most = 0, gc.mem_free()
    while most - least > 64:
        size = (least + most) // 2
        gc.collect()
        try:
            bytearray(size)
            least = size
        except MemoryError:
            most = size
    gc.collect()
    return least


def used():
    """The bytes in use."""
    if not MICROPYTHON:
        return 0
    gc.collect()
    return gc.mem_alloc()


def all_but(size):
    """A piece of the heap that leaves about `size` bytes of it free, as few as a board has."""
    return bytearray(max(0, largest_free_block() - size)) if MICROPYTHON else None


def heap():
    """The bytes in use, and the largest free block."""
    if not MICROPYTHON:
        return 0, 0
    return used(), largest_free_block()


def test_mp_3840_a_day_of_messages_of_every_size_leaves_no_hole_in_the_heap():
    """Every second hour without a broker, so that the ring overflows.

    Report: mp#3840, mp#2057.
    """
    line = Line()
    for hour in range(4):
        line.hour(hour % 2)
    ballast = all_but(100000)
    held, largest = heap()
    for hour in range(24):
        line.hour(hour % 2)
        if hour % 4 == 3:
            now = heap()
            assert now[0] <= held + SLACK and now[1] >= largest - SLACK, (held, largest, now)
    assert line.sender.delivered > 5000 and sum(line.ring.stolen) > 1000
    ledger = line.ledger
    assert ledger.items_taken == ledger.items_delivered + ledger.lost_in_all() + ledger.held()
    del ballast


def test_esp_idf_5668_eight_hours_of_one_a_minute_without_a_broker_take_no_memory():
    """Report: esp-idf#5668, esp-idf#14419."""
    line = Line()
    for _ in range(60):
        line.minute()
    before = used()
    for _ in range(8 * 60):
        line.minute()
    assert used() - before <= SLACK
    ledger = line.ledger
    assert ledger.held() + ledger.lost_in_all() == ledger.items_taken == 9 * 60
    line.sender.connected(False, line.clock.now())
    line.packer.flush()
    line.send()
    assert ledger.held() == 0 and ledger.items_delivered + ledger.lost_in_all() == 9 * 60
