"""HardwareWatchdog: resets the board when the program no longer lives (SPEC §7).

`machine.WDT` cannot be stopped, but making it again sets a new time-out. While the program runs
it is fed by the watcher, and only as long as every supervised task is well. While a person has
stopped the program to look at it, the time-out is an hour, so that what waits in memory survives
the visit, and a board forgotten at the REPL comes back by itself.
"""

from micropython import const

_VISIT_MS = const(3600000)


class HardwareWatchdog:
    """`wdt` is the class `machine.WDT`, or None where there is none; `timeout_s` 0 turns it off."""

    def __init__(self, wdt, timeout_s):
        self._class = wdt if timeout_s else None
        self._timeout_ms = 1000 * timeout_s
        self._wdt = None

    def guard(self):
        """The program runs: it must `feed` within the time-out from now on."""
        self._set(self._timeout_ms)

    def hold(self):
        """The program is stopped at the REPL: leave it there for an hour."""
        if self._wdt:
            self._set(_VISIT_MS)

    def feed(self):
        """All is well."""
        if self._wdt:
            self._wdt.feed()

    def _set(self, timeout_ms):
        if self._class:
            self._wdt = self._class(timeout=timeout_ms)
            self._wdt.feed()
