"""Ticker: has the link's deadlines looked at, and so sees how late the event loop is.

It asks to be woken in _TICK_MS, again and again. By how much more that becomes, something else has
held up the loop: the lag, which is at its worst what a sensor's read takes.
"""

import asyncio

from micropython import const

from millpond.clock import add, diff

_TICK_MS = const(100)


class Ticker:
    """Calls `uplink.tick()` ten times a second. `worst_lag_ms` is the worst lag since the start."""

    def __init__(self, uplink, clock):
        self._uplink = uplink
        self._clock = clock
        self._lag_ms = 0
        self.worst_lag_ms = 0

    async def run(self, beat):
        """Tick, for ever."""
        while True:
            beat()
            self._uplink.tick()
            due = add(self._clock.now(), _TICK_MS)
            await asyncio.sleep_ms(_TICK_MS)
            lag = diff(self._clock.now(), due)
            self._lag_ms = max(self._lag_ms, lag)
            self.worst_lag_ms = max(self.worst_lag_ms, lag)

    def take_lag(self):
        """The worst lag in ms since this was last called."""
        lag = self._lag_ms
        self._lag_ms = 0
        return lag
