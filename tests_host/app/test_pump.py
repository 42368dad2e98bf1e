"""Pump: what goes on when, with the tasks driven by hand."""

import firmware.pump
from firmware.pump import Pump
from millpond.batch import F7Writer
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import NORMAL
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.reading import pack_reading
from tests_host.app.naps import Naps


class Line:
    """A pump between an intake and a ring; it is itself the uplink and the receipts."""

    def __init__(self):
        self.ms = 0
        self.up = True
        self.kicks = self.works = 0
        self.clock = Clock(lambda: self.ms)
        self.queue = MessageQueue(128)
        self.ring = PagedRing(6400, 640, 4)
        self.packer = Packer(
            self.queue, self.ring, self.clock, Ledger(), lambda: F7Writer(1, 1), "data"
        )
        self.pump = Pump(self.queue, self.packer, self.ring, self, self, self.clock)

    def is_up(self):
        return self.up

    def kick(self):
        self.kicks += 1

    def work(self):
        self.works += 1

    def read(self):
        record = bytearray(16)
        length = pack_reading(record, 0, 1, 0, 1, self.clock.elapsed_s())
        self.queue.enqueue("data", record[:length], now=self.clock.now())

    def drive(self, task, seconds):
        """Let the task run, nap after nap, as long as its naps take."""
        for _ in range(seconds * 20):
            task.send(None)
            self.ms += 50


def test_what_was_put_into_the_intake_goes_on_at_once():
    line = Line()
    line.queue.enqueue("note", b"x")
    line.pump.poll()
    assert (line.ring.messages(), line.kicks) == (1, 0)
    line.queue.enqueue("note", b"x")
    line.pump.now()
    assert (line.ring.messages(), line.kicks) == (2, 1)


def test_a_flush_closes_what_is_open_and_sends_it():
    line = Line()
    line.read()
    line.pump.now()
    assert line.ring.messages() == 0 and line.packer.open_readings() == 1
    line.pump.flush()
    assert line.ring.messages() == 1 and line.packer.open_readings() == 0 and line.kicks == 2


def test_a_turn_takes_no_more_than_its_share():
    line = Line()
    for _ in range(100):
        line.queue.enqueue("note", b"x")
    line.pump.now()
    assert line.ring.messages() == 64 and len(line.queue) == 36


def test_the_task_brings_what_time_alone_brings():
    line = Line()
    beats = []
    with Naps(firmware.pump) as naps:
        task = line.pump.run(lambda: beats.append(line.ms))
        line.read()
        line.drive(task, 4)
        assert line.packer.open_readings() == 1
        line.drive(task, 2)
        assert line.packer.open_readings() == 0 and line.ring.messages() == 1
        assert naps.ms == [50] * 120 and line.works == len(beats) == line.kicks == 120
        assert line.ring.seconds == 5
        task.close()


def test_Q7_R10_the_task_expires_what_is_too_old_in_intake_and_ring():
    line = Line()
    line.ring.max_age_s[NORMAL] = 2
    line.ring.append(b"old", NORMAL)
    line.ring.append(bytes(600), 3)
    with Naps(firmware.pump):
        task = line.pump.run(lambda: None)
        line.drive(task, 1)
        line.packer.poll = lambda now, link_up, limit: 0
        line.queue.enqueue("note", b"x", ttl_ms=500, now=line.clock.now())
        line.drive(task, 4)
        task.close()
    assert line.queue.stats.expired == 1 and line.ring.expired[NORMAL] == 1
