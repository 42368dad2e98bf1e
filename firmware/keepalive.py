"""Keepalive: when to ping the broker, and when its silence means that it is gone (L6).

    quiet --half the keepalive without a byte in, or without one out--> pinged --PINGRESP--> quiet
    pinged --half the keepalive, at least 1 s--> the connection is dead

So a broker hears from us within the keepalive it was promised, even where messages only come in,
and a dead one is noticed even while messages go out. A keepalive of 0 means neither.

Pure: it is told of bytes by flags, since that costs a message next to nothing, and of the time by
`look`, a few times a second; so every moment is known to within that.
"""

from micropython import const

from millpond.clock import diff

PING = const(1)

_MIN_LIMIT_MS = const(1000)


class Keepalive:
    """Watches one connection at a time for silence of more than `keepalive_s`.

    Its owner sets `heard` when bytes have come and `spoke` when some have left. `spoke_at` is the
    `look` at which the latter was last so, in ms of the core's clock.
    """

    def __init__(self, keepalive_s):
        self._half_ms = keepalive_s * 500
        self._limit_ms = max(self._half_ms, _MIN_LIMIT_MS)
        self._heard_at = self.spoke_at = 0
        self.reset()

    def reset(self):
        """Begin a new connection."""
        self.heard = self.spoke = False
        self._pinged_at = None

    def ponged(self):
        """A PINGRESP has come."""
        self._pinged_at = None

    def note(self, now):
        """As `look`, before the broker has accepted the connection: nothing is due yet."""
        if self.heard:
            self.heard = False
            self._heard_at = now
        if self.spoke:
            self.spoke = False
            self.spoke_at = now

    def look(self, now):
        """None while all is well, PING when one must be sent now, else why to close, in words."""
        self.note(now)
        if not self._half_ms:
            return None
        if self._pinged_at is not None:
            if diff(now, self._pinged_at) < self._limit_ms:
                return None
            return "no answer to a ping within {:g} s".format(self._limit_ms / 1000)
        if self._is_long_ago(self._heard_at, now) or self._is_long_ago(self.spoke_at, now):
            self._pinged_at = now
            return PING
        return None

    def _is_long_ago(self, at, now):
        return diff(now, at) >= self._half_ms
