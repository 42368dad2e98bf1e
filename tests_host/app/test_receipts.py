"""Receipts: whoever published a message learns what became of it (S8)."""

from firmware.receipts import Receipts
from millpond.batch import F7Writer
from millpond.clock import Clock
from millpond.dispatch import CANCELLED, ERROR, SUCCESS, TIMEOUT
from millpond.ledger import Ledger
from millpond.message import LOW, NORMAL, TopicTable
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.sender import Sender
from tests_host.kit import raises


class Line:
    """Everything from `publish` to the acknowledgement, with the link by hand."""

    def __init__(self, pages=6, **options):
        self.ms = 0
        self.clock = Clock(lambda: self.ms)
        self.topics = TopicTable()
        self.ledger = Ledger()
        self.receipts = Receipts(self.ledger, self.topics, self.clock, **options)
        self.queue = MessageQueue(8, 64, self.topics)
        self.ring = PagedRing(64 * pages, 64, 4, on_drop=self.receipts.lost)
        self.packer = Packer(
            self.queue, self.ring, self.clock, self.ledger, lambda: F7Writer(1, 1), "data"
        )
        self.receipts.hand_to(self.packer, lambda: self.packer.poll(self.ms, True))
        self.sender = Sender(self.ring, self.topics, on_delivered=self.receipts.delivered)
        self.told = []

    def publish(self, payload, priority=NORMAL, on_complete=None):
        return self.receipts.publish("note", payload, priority, 1, False, on_complete or self.tell)

    def tell(self, payload, result, reason, context):
        self.told.append((payload, result, reason))

    def deliver(self, n=1):
        if self.sender.state == 0:
            self.sender.connected(False, self.ms)
        out = []
        for _ in range(n):
            assert self.sender.next(self.ms)
            s = self.sender
            out.append(bytes(self.ring.buffer[s.at : s.at + s.length]))
            s.left(self.ms)
            s.acked(s.packet_id, self.ms)
        return out


def test_S8_success_at_the_acknowledgement_and_not_before():
    """Report: pubsubclient#452, pubsubclient#690."""
    line = Line()
    assert line.publish(b"a")
    line.receipts.work()
    assert line.ring.messages() == 1 and line.told == []
    assert line.deliver() == [b"a"]
    line.receipts.work()
    assert line.told == [(b"a", SUCCESS, None)]
    line.receipts.work()
    assert len(line.told) == 1


def test_S8_each_of_several_gets_its_own():
    line = Line()
    for payload in (b"a", b"b", b"c"):
        line.publish(payload)
    line.receipts.work()
    line.deliver(2)
    line.receipts.work()
    assert [told[0] for told in line.told] == [b"a", b"b"]
    line.deliver()
    line.receipts.work()
    assert [told[0] for told in line.told] == [b"a", b"b", b"c"]


def test_S8_a_message_stolen_by_the_ring_is_an_error_with_the_reason():
    line = Line(pages=3)
    line.publish(bytes(50), LOW)
    line.receipts.work()
    for _ in range(3):
        line.ring.append(bytes(50), 3)
    assert line.told == []
    line.receipts.work()
    assert line.told == [(bytes(50), ERROR, "stolen")]


def test_S8_a_full_ring_is_tried_again_until_there_is_room():
    line = Line(pages=3)
    for _ in range(3):
        line.ring.append(bytes(50), 3)
    line.publish(b"low", LOW)
    for _ in range(50):
        line.receipts.work()
    assert line.told == [] and line.ledger.items_taken == 0 and line.ring.refused[0] == 0
    line.deliver()
    line.receipts.work()
    assert line.deliver(3)[-1] == b"low"
    line.receipts.work()
    assert line.told == [(b"low", SUCCESS, None)]


def test_S8_time_out_while_the_message_goes_on():
    line = Line(timeout_s=60)
    line.publish(b"late")
    line.receipts.work()
    for _ in range(60):
        line.ms += 1000
        line.receipts.work()
    assert line.told == [(b"late", TIMEOUT, None)]
    assert line.deliver() == [b"late"]
    line.receipts.work()
    assert len(line.told) == 1


def test_S8_shut_down_cancels_what_is_on_its_way():
    line = Line()
    line.publish(b"a")
    line.receipts.work()
    line.publish(b"b")
    line.receipts.close()
    assert sorted(line.told) == [(b"a", CANCELLED, None), (b"b", CANCELLED, None)]


def test_S8_a_callback_may_publish_again():
    line = Line()
    again = []

    def tell(payload, result, reason, context):
        line.tell(payload, result, reason, context)
        if len(again) < 3:
            again.append(line.publish(b"again", NORMAL, tell))

    line.publish(b"first", NORMAL, tell)
    for _ in range(6):
        line.receipts.work()
        if line.ring.messages():
            line.deliver()
    assert [told[0] for told in line.told] == [b"first"] + 3 * [b"again"]


def test_S8_what_the_intake_holds_is_not_overtaken():
    line = Line()
    line.queue.enqueue("note", b"before")
    line.publish(b"after")
    line.receipts.work()
    assert line.deliver(2) == [b"before", b"after"]


def test_S8_readings_in_bulk_are_not_tracked():
    line = Line()
    line.ring.append(b"plain", 1, 1 << 8)
    line.deliver()
    assert line.receipts._noted == [] and line.ledger.items_delivered == 1


def test_S8_capacity_and_bad_input():
    line = Line(capacity=2)
    assert line.publish(b"a") and line.publish(b"b") and line.publish(b"c") == 0
    assert "57" in raises(ValueError, line.publish, bytes(57))
    assert "lane 4" in raises(ValueError, line.publish, b"x", 4)
    assert "+" in raises(ValueError, line.receipts.publish, "a/+", b"x", 1, 1, False, print)
