"""What sizing is held against: the core's own queue, packer and ring, driven on a clock of its own.

`first_loss` fills a ring with the link down until the first message is stolen; `sent_while_up`
delivers each batch as soon as it is closed and lays it into MQTT packets.
"""

from firmware.mqtt_out import HEAD_MAX, Outbound
from millpond import batch
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import LOW, NORMAL, QOS_AT_LEAST_ONCE
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from tests_host.host.payloads import NOW
from tools.traffic import TOPIC

_SLOTS = 64
_REPORT = 800  # bytes of a health message
_POLL_MS = 50
_POLL_LIMIT = 64


class Line:
    """Sensor, queue, packer and ring of a `tools.sizing.Plan`."""

    def __init__(self, plan):
        self.plan = plan
        self.ms = 0
        self.clock = Clock(lambda: self.ms)
        self.clock.set_unix(NOW)
        self.queue = MessageQueue(_SLOTS, 32)
        self.ledger = Ledger()
        self.lost_at = None
        self.reports = 0
        self.ring = PagedRing(plan.buffer, plan.page, 4, on_drop=self._lost)
        self.packer = Packer(
            self.queue,
            self.ring,
            self.clock,
            self.ledger,
            lambda: batch.make_writer(plan.encoding, 7, 99),
            TOPIC,
            QOS_AT_LEAST_ONCE,
            plan.max_readings,
            plan.max_age_ms,
        )
        self._topic = self.queue.topics.index(TOPIC)
        self._kind = batch.kind_of(plan.kind)
        self._record = bytearray(32)

    def _lost(self, at, length, tag, lane, reason):
        if self.lost_at is None and lane == NORMAL:
            self.lost_at = (self.ledger.items_taken - self.reports, self.ms)
        self.ledger.lost(at, length, tag, lane, reason)

    def report(self):
        """A health message into the ring, past the queue."""
        self.packer.put(bytes(_REPORT), LOW, 1)
        self.reports += 1

    def read(self, tag_id):
        """One reading into the queue."""
        length = batch.pack_reading(
            self._record, 0, tag_id, self._kind, self.plan.sample, self.clock.seconds
        )
        record = memoryview(self._record)[:length]
        assert self.queue.enqueue(self._topic, record, 1, NORMAL, now=self.clock.now())


def first_loss(plan, with_reports=False):
    """(readings taken before the first was stolen, ms from the first reading to that moment).

    `with_reports` has a health message after each scan.
    """
    line = Line(plan)
    scan = 0
    while True:
        line.ms = scan * plan.period_ms
        now = line.clock.now()
        for tag_id in range(1, plan.tags + 1):
            line.read(tag_id)
            if len(line.queue) == _SLOTS or tag_id == plan.tags:
                line.packer.poll(now, False)
                if line.lost_at:
                    return line.lost_at
        if with_reports:
            line.report()
        scan += 1


def sent_while_up(plan, scans):
    """(messages, bytes of batches, bytes of PUBLISH packets) of so many scans, the link up."""
    line = Line(plan)
    wire = Outbound(plan.page + len(TOPIC) + HEAD_MAX)
    messages = payload = published = 0
    unread = 0
    for at in range(0, scans * plan.period_ms, _POLL_MS):
        line.ms = at
        now = line.clock.now()
        if at % plan.period_ms == 0:
            unread = plan.tags
        for tag_id in range(plan.tags - unread + 1, plan.tags - unread + 1 + min(unread, _SLOTS)):
            line.read(tag_id)
            unread -= 1
        line.packer.poll(now, True, _POLL_LIMIT)
        while line.ring.head():
            at, length = line.ring.head_at, line.ring.head_length
            wire.publish(TOPIC.encode(), memoryview(line.ring.buffer)[at : at + length], 2, 7)
            messages, payload, published = messages + 1, payload + length, published + wire.end
            wire.clear()
            line.ring.sent(1)
            line.ring.ack(1)
    assert line.ledger.lost_in_all() == 0
    return messages, payload, published
