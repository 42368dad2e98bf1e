"""Supervisor: keeps the application's tasks alive, and knows when one is not.

A supervised task is a coroutine function that is meant never to end. When it raises or returns,
that is logged with the traceback and it is started again after a back-off that doubles up to a
limit and falls back to the least once the task has run well for a minute. Each task beats at
least once in its `limit_ms`; one that does not is hung. `unwell` names the tasks that are down or
hung, and while there are any the hardware watchdog is not fed (SPEC §7).
"""

import asyncio

from micropython import const

from firmware.log import in_seconds
from millpond.clock import diff

_BACKOFF_MIN_MS = const(500)
_BACKOFF_MAX_MS = const(30000)
_WELL_MS = const(60000)


class Supervised:
    """One task: `run(beat)` is the coroutine function, `limit_ms` the longest silence allowed."""

    def __init__(self, name, run, limit_ms, now):
        self.name = name
        self.limit_ms = limit_ms
        self._run = run
        self.beat_at = now
        self.running = False
        self.restarts = 0
        self.last_error = ""
        self._backoff_ms = _BACKOFF_MIN_MS

    async def keep(self, clock, log):
        """Run the task for ever, starting it again whenever it ends."""

        def beat():
            self.beat_at = clock.now()

        while True:
            started = clock.now()
            beat()
            self.running = True
            try:
                await self._run(beat)
                failure = RuntimeError("ended")
            except Exception as error:
                failure = error
            finally:
                self.running = False
            wait_ms = self._next_wait(diff(clock.now(), started))
            self.last_error = "{}: {}".format(type(failure).__name__, failure)
            log.exception(
                "task {} failed, again in {}".format(self.name, in_seconds(wait_ms)), failure
            )
            await asyncio.sleep_ms(wait_ms)
            self.restarts += 1

    def _next_wait(self, ran_ms):
        """How long to wait before the task, which has run for `ran_ms`, is started again."""
        if ran_ms >= _WELL_MS:
            self._backoff_ms = _BACKOFF_MIN_MS
        wait_ms = self._backoff_ms
        self._backoff_ms = min(2 * wait_ms, _BACKOFF_MAX_MS)
        return wait_ms

    def trouble(self, now):
        """None while the task is well, else what is wrong with it, in words."""
        if not self.running:
            return "{} is down ({})".format(self.name, self.last_error or "not started")
        silence = diff(now, self.beat_at)
        if silence > self.limit_ms:
            return "{} is hung, silent for {}".format(self.name, in_seconds(silence))
        return None


class Supervisor:
    """The application's tasks, made with `add` before `start`."""

    def __init__(self, clock, log):
        self._clock = clock
        self._log = log
        self.tasks = []
        self._running = []

    def add(self, name, run, limit_ms):
        """Supervise `run(beat)`, which must call `beat` at least once in `limit_ms`."""
        self.tasks.append(Supervised(name, run, limit_ms, self._clock.now()))

    def start(self):
        """Start every task in the running event loop."""
        for task in self.tasks:
            task.beat_at = self._clock.now()
            task.running = True
        self._running = [
            asyncio.create_task(task.keep(self._clock, self._log)) for task in self.tasks
        ]

    async def stop(self):
        """Cancel every task and wait for its end.

        A task may take a cancellation for one of its own, so each is cancelled until it ends.
        """
        for task in self._running:
            while not task.done():
                task.cancel()
                await asyncio.sleep_ms(0)
        for task in self.tasks:
            task.running = False
        self._running = []

    def unwell(self, now):
        """What is wrong, a line a task that is down or hung; empty while all is well."""
        return [text for text in (task.trouble(now) for task in self.tasks) if text]
