"""Time as it went wrong elsewhere: the counter's wrap, both epochs, and a clock set late.

Every part that compares times does so here across the wrap of the milliseconds; those with a test
of their own for it name the same reports there.
"""

from firmware import port_clock
from firmware.receipts import Receipts
from millpond.batch import F7Writer, JsonWriter, decode
from millpond.clock import Clock, unix_seconds
from millpond.dispatch import TIMEOUT
from millpond.ledger import Ledger
from millpond.message import NORMAL, TAG_BATCH, TopicTable, make_tag
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.reading import UINT16, pack_reading
from millpond.sender import Sender

WRAP = 1 << 30
NEW_YEAR_2026 = 1767225600
YEARS_30 = 946684800  # seconds from 1970 to 2000


class Ticks:
    """A counter of milliseconds on the ring, 5 s before its wrap."""

    def __init__(self, now=WRAP - 5000):
        self.now = now

    def __call__(self):
        return self.now

    def go(self, ms):
        self.now = (self.now + ms) % WRAP


class Line:
    """Everything between a reading and the broker's acknowledgement, with the link by hand."""

    def __init__(self, writer=None, unix=0, **options):
        self.ticks = Ticks()
        self.clock = Clock(self.ticks)
        if unix:
            self.clock.set_unix(unix)
        self.topics = TopicTable()
        self.ledger = Ledger()
        self.receipts = Receipts(self.ledger, self.topics, self.clock, timeout_s=10)
        self.queue = MessageQueue(16, 64, self.topics)
        self.ring = PagedRing(6 * 512, 512, 4, on_drop=self.receipts.lost)
        writer = writer or (lambda: F7Writer(1, 1))
        self.packer = Packer(self.queue, self.ring, self.clock, self.ledger, writer, "data")
        self.receipts.hand_to(self.packer, self.poll)
        self.sender = Sender(
            self.ring,
            self.topics,
            on_delivered=self.receipts.delivered,
            prepare=self.packer.prepare,
            **options,
        )
        self.record = bytearray(64)

    def poll(self):
        self.packer.poll(self.clock.now(), self.sender.state > 0)
        self.ring.seconds = self.clock.seconds

    def read(self, tag_id):
        self.clock.now()
        n = pack_reading(self.record, 0, tag_id, UINT16, tag_id, self.clock.seconds)
        assert self.queue.enqueue("data", self.record[:n], now=self.clock.now())
        self.poll()

    def deliver(self):
        """All that may leave now, acknowledged at once."""
        out = []
        now = self.clock.now()
        while self.sender.next(now):
            s = self.sender
            payload = bytes(self.ring.buffer[s.at : s.at + s.length])
            out.append((self.ring.head_tag, payload))
            s.left(now)
            assert s.acked(s.packet_id, now)
        return out


# -- the wrap ------------------------------------------------------------------------------------


def test_mp_9516_the_pace_of_the_sender_across_the_wrap():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    line = Line(rate_limit=2)
    line.sender.connected(False, line.clock.now())
    tag = make_tag(line.topics.index("t"), 1, False)
    for n in range(40):
        line.ring.append(b"%d" % n, 0, tag)
    left = []
    for _ in range(1000):
        left.append(len(line.deliver()))
        line.ticks.go(10)
    assert max(left) == 1 and sum(left) == 20
    assert [n for n in range(1000) if left[n]] == list(range(0, 1000, 50))


def test_mp_9516_a_long_pause_across_the_wrap_holds_nothing_back():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    line = Line(rate_limit=2)
    line.sender.connected(False, line.clock.now())
    tag = make_tag(line.topics.index("t"), 1, False)
    for _ in range(3 * 24 * 60):
        line.ticks.go(10 * 60 * 1000)
        line.sender.overdue(line.clock.now())
    line.ring.append(b"x", 0, tag)
    assert len(line.deliver()) == 1


def test_mp_9516_the_age_limit_of_the_ring_across_the_wrap():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    line = Line()
    line.ring.max_age_s[NORMAL] = 20
    line.read(1)
    line.packer.flush()
    for second in range(1, 21):
        line.ticks.go(1000)
        line.poll()
        line.ring.expire()
        assert line.ring.messages() == 1 and line.ring.oldest_age() == second
    line.ticks.go(1000)
    line.poll()
    line.ring.expire()
    assert line.ring.messages() == 0 and line.ring.expired[NORMAL] == 1
    assert line.ledger.lost_in_all() == 1


def test_mp_9516_the_time_out_of_a_receipt_across_the_wrap():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    line = Line()
    told = []
    line.receipts.publish("t", b"x", NORMAL, 1, False, lambda *what: told.append(what[:2]))
    for _ in range(9):
        line.receipts.work()
        line.ticks.go(1000)
    line.receipts.work()
    assert told == []
    line.ticks.go(1000)
    line.receipts.work()
    assert told == [(b"x", TIMEOUT)]


def test_mp_9516_the_acknowledgement_that_never_comes_across_the_wrap():
    """Report: mp#9516, mp#9608, coreMQTT#288, lib#103."""
    line = Line()
    line.sender.connected(False, line.clock.now())
    line.ring.append(b"x", 0, make_tag(line.topics.index("t"), 1, False))
    assert line.sender.next(line.clock.now())
    line.sender.left(line.clock.now())
    for _ in range(199):
        line.ticks.go(100)
        assert not line.sender.overdue(line.clock.now())
    line.ticks.go(100)
    assert line.sender.overdue(line.clock.now())


# -- epochs, and time servers that fail ----------------------------------------------------------


class Port:
    """Stands in for the module time of a port whose epoch is `year`."""

    def __init__(self, year, unix):
        self._year = year
        self._time = unix - (YEARS_30 if year == 2000 else 0)

    def time(self):
        return self._time

    def gmtime(self, seconds):
        assert seconds == 0
        return (self._year, 1, 1, 0, 0, 0, 0, 1)


def time_of_day(year, unix):
    real = port_clock.time
    port_clock.time = Port(year, unix)
    try:
        return port_clock.time_of_day()
    finally:
        port_clock.time = real


def test_lib_786_the_time_of_day_is_the_same_on_both_epochs():
    """Report: lib#786, lib#604, mp#7137."""
    for year in (1970, 2000):
        assert time_of_day(year, NEW_YEAR_2026) == NEW_YEAR_2026


def test_mp_7137_what_a_failed_time_server_leaves_behind_is_no_time():
    """A server that answers 0 means 1900; one that never answers leaves the clock as it started.

    Report: lib#786, lib#604, mp#7137.
    """
    answered_0 = -2208988800
    wrapped = answered_0 + (1 << 32)  # 2036, where the 32 bits of the protocol begin again
    for year in (1970, 2000):
        never_set = YEARS_30 if year == 2000 else 0
        for bogus in (answered_0, never_set, never_set + 7200, 0, YEARS_30):
            assert time_of_day(year, bogus) is None, (year, bogus)
        # 30 years off, for the epoch was mistaken for the other.
        assert time_of_day(year, NEW_YEAR_2026 - YEARS_30) is None
        assert time_of_day(year, wrapped) == wrapped  # nobody can tell it from the real one


def test_lib_604_a_clock_that_is_set_after_a_failure_is_taken_then():
    """Report: lib#786, lib#604, mp#7137, homie-esp8266#620."""
    for year in (1970, 2000):
        line = Line()
        for bogus in (-2208988800, 0, YEARS_30, YEARS_30 + 60):
            unix = time_of_day(year, bogus)
            assert unix is None and not line.clock.known
            line.ticks.go(10000)
        line.clock.now()
        line.clock.set_unix(time_of_day(year, NEW_YEAR_2026))
        assert line.clock.unix() == NEW_YEAR_2026 and line.clock.seconds == 40


def test_lib_786_the_status_page_has_the_same_date_on_both_epochs():
    """Report: lib#786, lib#604, mp#7137."""

    real = port_clock.time
    real_start = unix_seconds(0, real.gmtime(0)[0])

    class Dates(Port):
        def gmtime(self, seconds):
            return real.gmtime(seconds + (YEARS_30 if self._year == 2000 else 0) - real_start)

    for year in (1970, 2000):
        port_clock.time = Dates(year, NEW_YEAR_2026)
        try:
            said = port_clock.date(NEW_YEAR_2026 + 3661)
        finally:
            port_clock.time = real
        assert said == "2026-01-01 01:01:01 UTC", said


# -- readings taken before the time was known ----------------------------------------------------


def stamps(delivered):
    out = []
    for tag, payload in delivered:
        assert tag & TAG_BATCH
        for group in decode(payload):
            out += [(group[0], value[0]) for value in group[3]]
    return out


def test_homie_620_readings_taken_before_the_clock_was_set_get_their_time():
    """Report: homie-esp8266#620."""
    for writer in (lambda: F7Writer(1, 1), JsonWriter):
        line = Line(writer)
        for tag_id in range(1, 6):
            line.read(tag_id)
            line.ticks.go(60000)
        line.packer.flush()
        line.clock.set_unix(NEW_YEAR_2026)
        line.sender.connected(False, line.clock.now())
        expected = [(NEW_YEAR_2026 - 60 * (6 - tag_id), tag_id) for tag_id in range(1, 6)]
        assert stamps(line.deliver()) == expected


def test_homie_620_readings_on_both_sides_of_the_moment():
    """Report: homie-esp8266#620."""
    line = Line()
    for tag_id in range(1, 6):
        line.read(tag_id)
        line.ticks.go(1000)
    line.clock.set_unix(NEW_YEAR_2026)
    for tag_id in range(6, 11):
        line.read(tag_id)
        line.ticks.go(1000)
    line.packer.flush()
    line.sender.connected(False, line.clock.now())
    expected = [(NEW_YEAR_2026 - 6 + tag_id, tag_id) for tag_id in range(1, 11)]
    assert stamps(line.deliver()) == expected


def test_homie_620_readings_that_leave_without_a_time_say_so():
    """Report: homie-esp8266#620."""
    line = Line()
    line.ticks.go(7000)
    line.read(1)
    line.packer.flush()
    line.sender.connected(False, line.clock.now())
    assert stamps(line.deliver()) == [(7, 1)]
