"""Clock: the tick wrap, the epochs, and time that is not yet known."""

from millpond.clock import Clock, add, diff, unix_seconds
from tests_host.kit import no_alloc, raises

RING = 1 << 30


class Ticks:
    """A tick counter set by hand."""

    def __init__(self, now=0):
        self.now = now

    def __call__(self):
        return self.now


def stamped(clock, seconds):
    buf = bytearray(4)
    clock.stamp(buf, 0, seconds)
    return (buf[0] << 24) | (buf[1] << 16) | (buf[2] << 8) | buf[3]


def test_differences_are_right_across_the_wrap():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    assert diff(5, RING - 5) == 10
    assert diff(RING - 5, 5) == -10
    assert diff(7, 7) == 0
    assert diff(RING // 2 - 1, 0) == RING // 2 - 1
    assert diff(RING // 2, 0) == -RING // 2
    assert add(RING - 5, 10) == 5 and add(3, 4) == 7


def test_seconds_go_on_across_the_wrap():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    ticks = Ticks(RING - 5000)
    clock = Clock(ticks)
    for step in range(1, 101):
        ticks.now = (RING - 5000 + 333 * step) % RING
        assert clock.now() == ticks.now
    assert clock.seconds == 33


def test_seconds_survive_many_wraps_of_the_counter():
    ticks = Ticks(123)
    clock = Clock(ticks)
    day = 86400000
    for _ in range(400):
        ticks.now = (ticks.now + day) % RING
        clock.now()
    assert clock.seconds == 400 * 86400


def test_elapsed_seconds_are_brought_up_to_date():
    ticks = Ticks(RING - 500)
    clock = Clock(ticks)
    ticks.now = 2500
    assert clock.seconds == 0 and clock.elapsed_s() == 3 and clock.seconds == 3


def test_a_counter_that_wraps_later_is_put_on_the_ring():
    ticks = Ticks((1 << 62) - 1000)
    clock = Clock(ticks)
    ticks.now = 2500
    assert clock.now() == 2500 and clock.seconds == 3


def test_both_epochs_give_the_same_unix_time():
    """Report: lib#786, lib#604, mp#7137."""
    assert unix_seconds(1767225600, 1970) == 1767225600
    assert unix_seconds(1767225600 - 946684800, 2000) == 1767225600
    assert "1980" in raises(ValueError, unix_seconds, 5, 1980)


def test_unknown_time_counts_from_the_start():
    ticks = Ticks(0)
    clock = Clock(ticks)
    ticks.now = 5000
    clock.now()
    assert not clock.known and clock.unix() == 5
    assert stamped(clock, 70000) == 70000


def test_setting_the_time_dates_earlier_moments_too():
    """Report: homie-esp8266#620."""
    ticks = Ticks(0)
    clock = Clock(ticks)
    ticks.now = 90500
    clock.set_unix(1767225690)
    assert clock.known and clock.unix() == 1767225690
    assert stamped(clock, 0) == 1767225600
    assert stamped(clock, 90) == 1767225690
    assert stamped(clock, 200000) == 1767425600


def test_a_bogus_time_is_refused():
    """Report: lib#786, lib#604, mp#7137."""
    clock = Clock(Ticks())
    for bogus in (0, 946684800, 1704067199, 4102444800):
        message = raises(ValueError, clock.set_unix, bogus)
        assert str(bogus) in message and "1704067200" in message
    assert not clock.known


def test_no_allocation_in_the_hot_path():
    ticks = Ticks(RING - 500)
    clock = Clock(ticks)
    clock.set_unix(4000000000)
    buf = bytearray(4)
    moments = [(RING - 500 + 100 * step) & (RING - 1) for step in range(100)]
    last = RING - 1

    def work():
        for moment in moments:
            ticks.now = moment
            clock.now()
            clock.stamp(buf, 0, clock.seconds)
            diff(5, last)
            add(last, 1000)

    no_alloc(work)
    assert clock.seconds == 9
