"""Guard: one lock around an object that other threads and soft interrupts use too (Q12, R9).

Only what is made with a lock imports this. Each public method of the object is replaced, in the
object itself, by one that takes the lock, so that an object made without a lock pays nothing.

The guard knows which thread holds the lock. A call that comes from that very thread is either a
call from within, such as a callback that looks at the object, or a soft interrupt
(`micropython.schedule`) which has interrupted a call that is under way. To wait would be to wait
for ever, so it does not: such a method says beforehand whether it runs at once, as what only looks
may, or is refused by another function instead.

No interrupt can fall between the taking of the lock and the note of who took it: MicroPython looks
for scheduled callbacks at jumps only, and there is none between. On CPython, where a signal handler
may run anywhere, a handler is no place to call from.
"""

try:
    from _thread import get_ident
except ImportError:  # a port without threads

    def get_ident():
        return 1


class Guard:
    """Runs functions under `lock`, an object with acquire() and release()."""

    def __init__(self, lock):
        self._lock = lock
        self._holder = None

    def locked(self, call, inside=None):
        """`call` under the lock; for a call by the thread that holds it: `inside`, or else `call`.

        A call through it takes some 50 bytes for its arguments from the heap.
        """

        def run(*args, **kwargs):
            me = get_ident()
            if self._holder == me:
                return (inside or call)(*args, **kwargs)
            self._lock.acquire()
            self._holder = me
            try:
                return call(*args, **kwargs)
            finally:
                self._holder = None
                self._lock.release()

        return run

    def cover(self, thing, inside):
        """Put each public method of `thing` under the lock; `inside` is {name: function}."""
        for name in dir(thing.__class__):
            if name[0] != "_":
                setattr(thing, name, self.locked(getattr(thing, name), inside.get(name)))
