"""PortClock: the board's own clock, set as machine.RTC wants it."""

from firmware.port_clock import PortClock, broken_down, date

NEW_YEAR_2026 = 1767225600  # a Thursday


class Rtc:
    """Stands in for machine.RTC."""

    set_to = []

    def datetime(self, fields):
        Rtc.set_to.append(fields)


def test_the_clock_is_set_in_the_order_of_its_own():
    Rtc.set_to.clear()
    clock = PortClock(Rtc)
    assert clock.can_be_set
    clock.set_unix(NEW_YEAR_2026 + 3661)
    assert Rtc.set_to == [(2026, 1, 1, 4, 1, 1, 1, 0)]


def test_a_clock_of_the_operating_system_is_left_alone():
    clock = PortClock(None)
    assert not clock.can_be_set
    clock.set_unix(NEW_YEAR_2026)


def test_dates():
    assert tuple(broken_down(NEW_YEAR_2026 - 1)[:6]) == (2025, 12, 31, 23, 59, 59)
    assert date(NEW_YEAR_2026 + 3661) == "2026-01-01 01:01:01 UTC"
