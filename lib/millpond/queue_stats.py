"""QueueStats: what a MessageQueue counts, and what can be told from it (Q8).

Figures stand in a list, the tally, by the places named here. Counters run for years: before one of
them can leave the small ints of a 32-bit board, `roll` moves 2**29 of it to a second list, so that
counting never allocates.

Since the start: the counters, the high-water mark and the time in queue. Over a window: the
throughput. A window is the time between two calls of `roll` that lie at least 10 s apart.
"""

from micropython import const

from millpond.clock import diff

_ENQUEUED = const(0)
_DEQUEUED = const(1)
REFUSED = const(2)
DISPLACED = const(3)
EXPIRED = const(4)
CLEARED = const(5)
_WAITED = const(6)
_LAST_WAIT = const(7)
_MAX_WAIT = const(8)
_HIGH_WATER = const(9)
_BUSY = const(10)

_CARRY = const(0x20000000)
_WINDOW_MS = const(10000)

_COUNTERS = const(7)
_PLACES = const(11)


# The figures by name, each at its place.
_NAMES = (
    "enqueued",
    "dequeued",
    "refused",
    "displaced",
    "expired",
    "cleared",
    "waited_ms",
    "last_wait_ms",
    "max_wait_ms",
    "high_water",
    "busy",
)


class QueueStats:
    """Counters and metrics of one queue, all since it was made but for `throughput`.

    Counters, in messages: `enqueued`, `dequeued`, and dropped by reason: `refused` (never got in),
    `displaced` (for another), `expired`, `cleared` (by `clear()`). Of the refused, `busy` came in
    an interrupt of the queue at work (Q12). `high_water` is the most that ever were in the queue.
    `waited_ms` is the time in queue of all messages dequeued, added up; `last_wait_ms` and
    `max_wait_ms` are that of the last one and the longest.
    """

    def __init__(self):
        self._tally = [0] * _PLACES
        self._carried = [0] * _COUNTERS
        self._window_start = -1
        self._window_dequeued = 0
        self._rate_dequeued = 0
        self._rate_ms = 1

    def __getattr__(self, name):
        if name not in _NAMES:
            raise AttributeError(name)
        place = _NAMES.index(name)
        carried = self._carried[place] * _CARRY if place < _COUNTERS else 0
        return carried + self._tally[place]

    @property
    def dropped(self):
        """Messages lost, whatever the reason."""
        return self.refused + self.displaced + self.expired + self.cleared

    @property
    def offered(self):
        """Messages the queue was given, taken in or refused."""
        return self.enqueued + self.refused

    @property
    def drop_rate(self):
        """Dropped over offered, 0.0 to 1.0.

        Seed 000 divides by the enqueued, which a queue that refuses takes past 100 %.
        """
        return self.dropped / max(1, self.offered)

    @property
    def mean_wait_ms(self):
        """Time in queue of a dequeued message on average, in whole milliseconds."""
        return self.waited_ms // max(1, self.dequeued)

    @property
    def throughput(self):
        """Messages dequeued per second over the last window; 0.0 before its end."""
        return self._rate_dequeued * 1000 / self._rate_ms

    def took_in(self, count):
        """A message came in, and now there are `count`."""
        self._tally[_ENQUEUED] += 1
        if count > self._tally[_HIGH_WATER]:
            self._tally[_HIGH_WATER] = count

    def gave_out(self, wait):
        """A message went out after `wait` ms on the ring; 2**29 and more is before it came in."""
        if wait >= _CARRY:
            wait = 0
        tally = self._tally
        tally[_DEQUEUED] += 1
        tally[_LAST_WAIT] = wait
        if wait > tally[_MAX_WAIT]:
            tally[_MAX_WAIT] = wait
        wait += tally[_WAITED]
        tally[_WAITED] = wait
        if wait >= _CARRY:
            self._carry(_WAITED)

    def lost(self, reason):
        """A message was lost for the reason REFUSED, DISPLACED, EXPIRED or CLEARED."""
        self._tally[reason] += 1

    def was_busy(self):
        """A message was refused because it came in an interrupt of the queue at work."""
        self._tally[REFUSED] += 1
        self._tally[_BUSY] += 1

    def _carry(self, place):
        self._tally[place] -= _CARRY
        self._carried[place] += 1

    def roll(self, now):
        """Keep the counters small and end the window when it is due; call it every second or so."""
        for place in range(_COUNTERS):
            if self._tally[place] >= _CARRY:
                self._carry(place)
        ms = diff(now, self._window_start)
        if self._window_start >= 0 and 0 <= ms < _WINDOW_MS:
            return
        dequeued = self.dequeued
        if self._window_start >= 0 and ms > 0:
            self._rate_dequeued = dequeued - self._window_dequeued
            self._rate_ms = ms
        self._window_start = now
        self._window_dequeued = dequeued
