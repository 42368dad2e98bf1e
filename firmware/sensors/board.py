"""Board: the board reports about itself.

It knows nothing of the heap, the loop or the ring: each gauge is a callable, made where the
objects are, that gives a whole number. Its readings are LOW: they give way to all others when
memory is short.
"""

from millpond.message import LOW

TAGS = (
    (101, "free_heap", "uint32", "byte", 1),
    (102, "loop_lag", "uint32", "ms", 1),
    (103, "ring_fill", "uint8", "%", 1),
)


class Board:
    """Free heap, loop lag and ring fill, every `period_ms` milliseconds.

    `free_heap()` gives bytes, `ring_fill()` percent (0 to 100), and `loop_lag()` the worst
    lateness of the event loop, in ms, since it was last called.
    """

    name = "board"
    tags = TAGS
    priority = LOW

    def __init__(self, period_ms, free_heap, loop_lag, ring_fill):
        self.period_ms = period_ms
        self._gauges = (free_heap, loop_lag, ring_fill)

    def read(self, out):
        """Ask each gauge and report what it says."""
        for i in range(len(TAGS)):
            out.reading(TAGS[i][0], int(self._gauges[i]()))
