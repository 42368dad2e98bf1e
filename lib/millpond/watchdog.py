"""DeliveryWatchdog: notices a link that claims to be up and delivers nothing (seed 004, SPEC §7).

It measures one span of time: since the last check that found all well, that is progress (a
delivery, or a new connection, which gets the whole time-out to prove itself), no connection, or
nothing waiting to be delivered. When the span reaches the time-out while the link is up with
something pending, the owner must make the connection anew. Idle is no failure: each check that
finds nothing pending begins the span again.

The span is in elapsed milliseconds, so neither a step of the wall clock nor the tick wrap matters;
`check` must be called at least once in 6 days.
"""

from micropython import const

from millpond.clock import diff
from millpond.limits import within

_MAX_TIMEOUT_S = const(86400)


class DeliveryWatchdog:
    """Fires when nothing was delivered for `timeout_s` seconds although something is pending."""

    def __init__(self, timeout_s=120, now=0):
        self.set_timeout(timeout_s)
        self._well = now
        self._progress = 0
        self.fired = 0

    def set_timeout(self, timeout_s):
        """Set the time-out; it holds at the next check."""
        within("timeout_s", timeout_s, _MAX_TIMEOUT_S, 1)
        self._timeout_ms = 1000 * timeout_s

    def check(self, now, connected, pending, progress):
        """True, and counted in `fired`, when the link must be made anew.

        `connected` and `pending` (something waits) are truths; `progress` is any number that
        changes with each delivery and each new connection, such as the sum of their counters.
        """
        if not connected or not pending or progress != self._progress:
            self._progress = progress
            self._well = now
            return False
        if diff(now, self._well) < self._timeout_ms:
            return False
        self._well = now
        self.fired += 1
        return True

    def idle_ms(self, now):
        """Milliseconds since all was last well, for the status page."""
        return diff(now, self._well)
