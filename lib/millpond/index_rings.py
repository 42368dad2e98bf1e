"""IndexRings: the order of a queue, kept as slot numbers in circular rings (seed 000, Q3).

There is one ring per lane; each has a head (the next to leave), a tail (the next to be filled) and
a count, and head and tail wrap by modulo. The numbers of the free slots stand on a stack in the
upper part of one array, which begins at the number of slots taken. A slot's number stands in
exactly one ring or among the free ones. There is one slot more than `capacity`, so one is always
free. `queue_check` proves it.
"""

from array import array

from micropython import const

from millpond.limits import within
from millpond.message import PRIORITIES

_MAX_CAPACITY = const(65535)


class IndexRings:
    """Four rings for up to `capacity` (1 to 65,535) messages: the order in a MessageQueue."""

    def __init__(self, capacity):
        within("capacity", capacity, _MAX_CAPACITY, 1)
        self.capacity = capacity
        self._rings = [array("H", [0] * capacity) for _ in range(PRIORITIES)]
        self._heads = [0] * PRIORITIES
        self._tails = [0] * PRIORITIES
        self._counts = [0] * PRIORITIES
        self._free = array("H", range(capacity + 1))
        self._count = 0

    def __len__(self):
        return self._count

    def is_empty(self):
        """True when no message waits; expired ones count until they are dropped."""
        return self._count == 0

    def is_full(self):
        """True when `capacity` messages wait."""
        return self._count == self.capacity

    def fill_percent(self):
        """Slots taken, in whole percent."""
        return 100 * self._count // self.capacity

    def _head_slot(self, lane):
        return self._rings[lane][self._heads[lane]]
