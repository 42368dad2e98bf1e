"""Pacer: at which moment the rate limit allows the next message (SPEC S9).

Each message has a moment, an interval behind the moment of the last one and not behind its
departure, so that lateness does not add up. Time in which nothing waited is not made up for, nor
is lateness beyond _CATCH_UP_MS. An interval that is no whole number of milliseconds is kept with
its fraction, in units of 1/rate_limit ms.
"""

from micropython import const

from millpond.clock import add, diff
from millpond.limits import within

_MAX_RATE = const(1000)
_CATCH_UP_MS = const(50)


class Pacer:
    """Allows `rate_limit` messages a second, 1 to 1000; the first one at `now`.

    `rested` is to be set when nothing waits: the message after that is early, not late.
    """

    def __init__(self, rate_limit, now):
        self.set(rate_limit)
        self.begin(now)
        self.rested = True

    def set(self, rate_limit):
        """Set the rate limit; a moment that is set for the next message already stands."""
        within("rate_limit", rate_limit, _MAX_RATE, 1)
        self.rate_limit = rate_limit
        self._interval_ms = 1000 // rate_limit
        self._interval_rest = 1000 % rate_limit
        self._due_rest = 0

    def begin(self, now):
        """The next message may go now, whatever has been."""
        self._due = now
        self._due_rest = 0

    def wait_ms(self, now):
        """Milliseconds until the next message may go; 0: now."""
        return max(0, diff(self._due, now))

    def went(self, now):
        """A message goes now: set the moment of the one behind it."""
        if diff(now, self._due) > (0 if self.rested else _CATCH_UP_MS):
            self.begin(now)
        self.rested = False
        self._due = add(self._due, self._interval_ms)
        self._due_rest += self._interval_rest
        if self._due_rest >= self.rate_limit:
            self._due_rest -= self.rate_limit
            self._due = add(self._due, 1)

    def keep_up(self, now):
        """To be called every few days at least while nothing goes.

        Else the moment falls so far behind on the ring that it would seem to lie ahead.
        """
        if diff(now, self._due) > _CATCH_UP_MS:
            self._due = now
