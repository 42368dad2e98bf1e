"""Clock: elapsed time that outlives the tick wrap, and Unix time on any epoch.

A board's millisecond counter wraps at 2**30 on 32-bit MicroPython (12.4 days) and elsewhere at
other powers of two. The core keeps `now` on a ring of 2**30 milliseconds on every platform, so
that each value is a small int, and compares two of them only with `diff`, which is right while
they are less than 2**29 ms (6.2 days) apart. `Clock.now()` also counts whole seconds since the
start, which do not wrap; it must be called at least once in 6 days, and the application calls it
many times a second.

Unix time needs 32 bits, more than a small int has on a 32-bit board. It is kept as the Unix time
of the start, in two 16-bit halves, and a timestamp is added up half by half straight into the
buffer it belongs in (`stamp`). Until somebody has set the time, a timestamp is the number of
seconds since the start, which a reader knows by its being below UNKNOWN_BELOW.
"""

from micropython import const

from millpond.limits import within

_MASK = const(0x3FFFFFFF)
_HALF = const(0x20000000)
_EPOCH_2000 = const(946684800)

UNKNOWN_BELOW = 1000000000
EARLIEST = 1704067200
LATEST = 4102444800


def diff(later, earlier):
    """Signed milliseconds from `earlier` to `later`, both on the 2**30 ring."""
    d = (later - earlier) & _MASK
    return d if d < _HALF else d - _MASK - 1


def add(now, ms):
    """The moment `ms` milliseconds after `now`, on the ring; 0 <= ms < 2**29.

    Subtracts first, so that no step of the sum leaves the small ints of a 32-bit board.
    """
    return (now - _MASK - 1 + ms) & _MASK


def unix_seconds(seconds, epoch_year):
    """Unix time from a port's `time.time()`, whose epoch is 1970 or 2000 (`time.gmtime(0)[0]`)."""
    if epoch_year == 1970:
        return seconds
    if epoch_year == 2000:
        return seconds + _EPOCH_2000
    raise ValueError("epoch year {}: 1970 or 2000 expected".format(epoch_year))


def is_plausible(unix):
    """Whether a Unix time can be the time of day: 2024-01-01 to 2099-12-31."""
    return EARLIEST <= unix < LATEST


class Clock:
    """Milliseconds on the ring, seconds since the start, and Unix time once it is known.

    `ticks_ms` is a callable giving milliseconds that wrap at 2**30 or a multiple of it
    (`time.ticks_ms`). `seconds` is whole seconds since the start as of the last `now`, and `known`
    whether the time of day has been set.
    """

    def __init__(self, ticks_ms):
        self._ticks_ms = ticks_ms
        self._last = ticks_ms() & _MASK
        self._ms = 0
        self.seconds = 0
        self.known = False
        self._start_high = 0
        self._start_low = 0

    def now(self):
        """Milliseconds on the 2**30 ring; brings `seconds` up to date. Allocates nothing."""
        now = self._ticks_ms() & _MASK
        step = (now - self._last) & _MASK
        if step >= _HALF:
            return self._last
        self._last = now
        step += self._ms
        if step >= 1000:
            self.seconds += step // 1000
            step %= 1000
        self._ms = step
        return now

    def set_unix(self, unix):
        """Set the time of day, in Unix seconds; ValueError outside 2024-01-01 … 2100-01-01.

        The bounds keep out what a failed time server answers (0, or the epoch of 1900).
        """
        within("Unix time", unix, LATEST - 1, EARLIEST)
        self.now()
        start = unix - self.seconds
        self._start_high = start >> 16
        self._start_low = start & 0xFFFF
        self.known = True

    def unix(self):
        """Unix time in seconds, or seconds since the start while the time is not known."""
        self.now()
        return ((self._start_high << 16) | self._start_low) + self.seconds

    def stamp(self, buf, at, seconds):
        """Write moment `seconds` (since the start) to buf[at:at+4], big-endian; no allocation."""
        low = self._start_low + (seconds & 0xFFFF)
        high = self._start_high + (seconds >> 16) + (low >> 16)
        buf[at] = (high >> 8) & 0xFF
        buf[at + 1] = high & 0xFF
        buf[at + 2] = (low >> 8) & 0xFF
        buf[at + 3] = low & 0xFF
