"""Port clock: the clock that the board or its operating system keeps, in Unix time.

Its epoch is 1970 on some ports and 2000 on others. It judges certificates, and outlives a reset of
the program, so whoever learns the time of day sets it, where the port lets us.
"""

import time

from millpond.clock import is_plausible, unix_seconds


def time_of_day():
    """Unix time in seconds; None when what the clock says cannot be right."""
    unix = unix_seconds(int(time.time()), time.gmtime(0)[0])
    return unix if is_plausible(unix) else None


def broken_down(unix):
    """A Unix time as `time.gmtime` gives it: year, month, day, hour, minute, second, …"""
    return time.gmtime(unix - unix_seconds(0, time.gmtime(0)[0]))


def date(unix):
    """A Unix time as 2026-11-30 20:05:12 UTC."""
    return "{}-{:02d}-{:02d} {:02d}:{:02d}:{:02d} UTC".format(*broken_down(unix)[:6])


class PortClock:
    """The clock set through `rtc`, the class `machine.RTC`, or None where there is none."""

    def __init__(self, rtc):
        self._rtc = rtc
        self.can_be_set = rtc is not None

    def set_unix(self, unix):
        """Set it to a Unix time in seconds, if it can be set."""
        if self.can_be_set:
            tm = broken_down(unix)
            self._rtc().datetime((tm[0], tm[1], tm[2], tm[6] + 1, tm[3], tm[4], tm[5], 0))
