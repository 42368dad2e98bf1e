"""Loop: virtual time, and what the firmware sees as asyncio, time and random.

Everything that happens is an event in one heap, ordered by its moment and then by when it was
planned: a task's wake-up, the arrival of bytes, a fault. Time jumps from one to the next, so a
history takes no longer than its work, and the same history happens in the same order wherever
it is run.

Tasks behave as those of MicroPython's asyncio: a cancellation is raised where the task waits, a
task that ends with an exception has it handed to the loop's handler, one task at a time can wait
for each direction of a socket, and an interrupted loop leaves its tasks where they are.
"""

import heapq

MASK = 0x3FFFFFFF


class CancelledError(BaseException):
    """What `cancel` raises within a task."""


class Stuck(Exception):
    """The history cannot go on: no virtual time would end it."""


class Task:
    """A coroutine and where it waits."""

    def __init__(self, loop, coro):
        self._loop = loop
        self.coro = coro
        self.alive = True
        self.entry = 0
        self.due = None
        self.waits_in = None
        self.error = None

    def done(self):
        """Whether it has ended."""
        return not self.alive

    def cancel(self):
        """Raise CancelledError where it waits, at its next turn."""
        if not self.alive:
            return False
        if self is self._loop.current:
            raise RuntimeError("can't cancel self")
        if self.waits_in:
            self.waits_in.remove(self)
            self.waits_in = None
        self.error = CancelledError
        if self.due is None or self.due > self._loop.now:
            self._loop.wake(self, 0)
        return True


class Pause:
    """Awaits a moment, or, without one, whatever wakes the task."""

    def __init__(self, loop, ms):
        self._loop = loop
        self._ms = ms
        self._over = False

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        if self._over:
            raise StopIteration
        self._over = True
        if self._ms is not None:
            self._loop.wake(self._loop.current, self._ms)


class Loop:
    """One virtual world's time and events; `ticks` is what its tick counter starts at."""

    def __init__(self, ticks=0, unix=1750000000, trace=None):
        self.now = 0
        self.us = 0
        self.ticks = ticks
        self.unix = unix
        self.current = None
        self.handler = None
        self.trace = trace
        self._heap = []
        self._count = 0
        self._tasks = []
        self._left_behind = []

    # -- events ----------------------------------------------------------------------------------

    def at(self, ms, call, argument=None):
        """Call `call(argument)` in `ms` milliseconds."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + ms, self._count, call, argument))

    def wake(self, task, ms):
        """Let `task` go on in `ms` milliseconds, unless something else wakes it first."""
        self._count += 1
        task.entry = self._count
        task.due = self.now + max(0, ms)
        heapq.heappush(self._heap, (task.due, self._count, None, task))

    def run_until(self, moment, over=None):
        """Let everything happen up to `moment`, or until `over()`; whether it was that."""
        heap = self._heap
        turns = 0
        while heap and heap[0][0] <= moment:
            if over and over():
                return True
            due, count, call, argument = heapq.heappop(heap)
            if due > self.now:
                self.now = due
                turns = 0
            turns += 1
            if turns > 200000:
                raise Stuck("the loop turns without end at {} ms".format(self.now))
            if call:
                call(argument)
            elif argument.entry == count:
                self._step(argument)
        self.now = max(self.now, moment)
        return bool(over and over())

    def _step(self, task):
        self.current = task
        task.due = task.waits_in = None
        task.entry = 0
        error, task.error = task.error, None
        try:
            if error:
                task.coro.throw(error())
            else:
                task.coro.send(None)
        except (StopIteration, CancelledError):
            task.alive = False
        except Exception as failure:
            task.alive = False
            if not self.handler:
                raise
            self.handler(self, {"exception": failure, "future": task})
        finally:
            self.current = None
        if not task.alive:
            self._tasks.remove(task)
        elif task.due is None and task.waits_in is None:
            raise Stuck("a task waits for nothing")

    def interrupt(self):
        """Leave the loop between two turns: every task stays where it is, for ever."""
        for task in self._tasks:
            if task.waits_in:
                task.waits_in.remove(task)
            task.entry = 0
            task.alive = False
            self._left_behind.append(task.coro)
        self._tasks = []

    def end(self):
        """Forget everything. What CPython does to a coroutine left behind must not be seen."""
        self.interrupt()
        self._heap.clear()
        for coro in self._left_behind:
            try:
                coro.close()
            except Exception:  # its last words concern nobody
                pass
        self._left_behind.clear()

    # -- what asyncio and time ask for -----------------------------------------------------------

    def add(self, coro):
        """A new task, which begins at the next turn."""
        task = Task(self, coro)
        self._tasks.append(task)
        self.wake(task, 0)
        return task

    def tasks(self):
        """How many tasks there are."""
        return len(self._tasks)

    def ticks_ms(self):
        """The tick counter, on its ring."""
        return (self.ticks + self.now) & MASK

    def ticks_us(self):
        """Microseconds: they pass by being asked for, within a millisecond as well."""
        self.us += 70
        return (self.now * 1000 + self.us) & MASK

    def set_exception_handler(self, handler):
        """As asyncio's."""
        self.handler = handler


class Event:
    """As asyncio's."""

    def __init__(self):
        self._set = False
        self._waiting = []

    def is_set(self):
        """Whether `set` was called."""
        return self._set

    def set(self):
        """Wake all who wait."""
        self._set = True
        for task in self._waiting:
            task.waits_in = None
            world.loop.wake(task, 0)
        self._waiting = []

    def clear(self):
        """Let wait again."""
        self._set = False

    def remove(self, task):
        """A task was cancelled."""
        self._waiting.remove(task)

    async def wait(self):
        """Wait until it is set."""
        if not self._set:
            task = world.loop.current
            self._waiting.append(task)
            task.waits_in = self
            await Pause(world.loop, None)
        return True


class Poller:
    """What the firmware's sockets wait in: asyncio.core._io_queue."""

    def queue_read(self, sock):
        """The current task goes on when `sock` can be read."""
        sock.wait_to_read(world.loop.current)

    def queue_write(self, sock):
        """The current task goes on when `sock` can be written."""
        sock.wait_to_write(world.loop.current)


class World:
    """The one that the firmware runs in at the moment."""

    loop = Loop()
    net = None
    bits = None


world = World()


class _Core:
    _io_queue = Poller()
    CancelledError = CancelledError


class Asyncio:
    """The module asyncio, as far as the firmware uses it."""

    core = _Core
    CancelledError = CancelledError
    Event = Event

    @staticmethod
    def create_task(coro):
        return world.loop.add(coro)

    @staticmethod
    def current_task():
        if world.loop.current is None:
            raise RuntimeError("no running event loop")
        return world.loop.current

    @staticmethod
    def get_event_loop():
        return world.loop

    @staticmethod
    def sleep_ms(ms):
        return Pause(world.loop, ms)

    @staticmethod
    def sleep(s):
        return Pause(world.loop, int(s * 1000))


class Time:
    """The module time, as MicroPython has it."""

    @staticmethod
    def ticks_ms():
        return world.loop.ticks_ms()

    @staticmethod
    def ticks_us():
        return world.loop.ticks_us()

    @staticmethod
    def ticks_diff(later, earlier):
        d = (later - earlier) & MASK
        return d if d < 0x20000000 else d - MASK - 1

    @staticmethod
    def ticks_add(ticks, delta):
        return (ticks + delta) & MASK

    @staticmethod
    def time():
        return world.loop.unix + world.loop.now // 1000

    @staticmethod
    def gmtime(_seconds=0):
        return (1970, 1, 1, 0, 0, 0, 3, 1)


class Random:
    """The module random."""

    @staticmethod
    def getrandbits(n):
        return world.bits(n)
