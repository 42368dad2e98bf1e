"""Cases for test_inside.py: the Supervisor, with a clock of their own and no real waiting."""

import asyncio

from firmware import supervisor
from firmware.log import in_seconds
from firmware.supervisor import Supervisor
from millpond.clock import Clock

_real = asyncio


class FakeAsyncio:
    """asyncio as the supervisor uses it, where sleeping is noted and takes a turn of the loop."""

    CancelledError = _real.CancelledError
    create_task = staticmethod(_real.create_task)

    def __init__(self, world):
        self._world = world

    def sleep_ms(self, ms):
        if ms:
            self._world.sleeps.append(ms)
            self._world.troubles.append(self._world.unwell())
            self._world.ms += ms
        return _real.sleep_ms(0)


class World:
    """A supervisor, its log, its clock at `ms`, how long it slept and what was wrong then."""

    def __init__(self, ms=1000):
        self.ms = ms
        self.sleeps = []
        self.troubles = []
        self.failures = []
        self.clock = Clock(lambda: self.ms)
        self.supervisor = Supervisor(self.clock, self)
        supervisor.asyncio = FakeAsyncio(self)

    def exception(self, text, error):
        self.failures.append((text, error))

    def unwell(self):
        return self.supervisor.unwell(self.clock.now())

    def run(self, case):
        """Start the tasks, run the coroutine function `case`, stop them."""

        async def main():
            self.supervisor.start()
            await _real.wait_for_ms(case(), 20000)
            await _real.wait_for_ms(self.supervisor.stop(), 20000)

        _real.new_event_loop()
        _real.run(main())


async def until(condition):
    while not condition():
        await asyncio.sleep_ms(0)


async def turns(n=5):
    """Let every task have its turn a few times."""
    for _ in range(n):
        await asyncio.sleep_ms(1)


def case_a_task_that_runs_is_well_and_a_task_that_never_started_is_not():
    world = World()

    async def works(beat):
        while True:
            beat()
            await asyncio.sleep_ms(1)

    world.supervisor.add("works", works, 5000)
    assert world.unwell() == ["works is down (not started)"]

    async def case():
        await turns()
        assert world.unwell() == []

    world.run(case)
    assert world.failures == []


def case_a_task_that_raises_is_logged_and_started_again_and_shows():
    world = World()
    starts = []

    async def fails_once(beat):
        starts.append(world.ms)
        if len(starts) == 1:
            raise ValueError("no sensor at 0x48")
        while True:
            beat()
            await asyncio.sleep_ms(1)

    world.supervisor.add("probe", fails_once, 5000)
    task = world.supervisor.tasks[0]

    async def case():
        await until(lambda: len(starts) == 2)
        assert world.unwell() == []

    world.run(case)
    assert world.troubles == [["probe is down (ValueError: no sensor at 0x48)"]]
    text, error = world.failures[0]
    assert text == "task probe failed, again in 0.5 s" and isinstance(error, ValueError)
    assert starts == [1000, 1500]
    assert (task.restarts, task.last_error) == (1, "ValueError: no sensor at 0x48")


def case_a_task_that_ends_has_failed():
    world = World()

    async def ends(beat):
        if len(world.sleeps) == 2:
            await asyncio.sleep_ms(60000)

    world.supervisor.add("brief", ends, 5000)

    async def case():
        await until(lambda: len(world.sleeps) == 2)
        await turns()

    world.run(case)
    assert world.sleeps == [500, 1000]
    assert world.supervisor.tasks[0].last_error == "RuntimeError: ended"


def case_a_duration_in_words():
    words = [in_seconds(ms) for ms in (0, 37, 500, 1240, 9949, 9950, 24137, 120000)]
    assert words == ["0 s", "0.037 s", "0.5 s", "1.2 s", "9.9 s", "10 s", "24 s", "120 s"]


def case_back_off_doubles_to_30_s_and_falls_back_after_a_minute_of_good_work():
    world = World()

    async def fails(beat):
        if len(world.sleeps) == 9:
            world.ms += 60000
        if len(world.sleeps) == 11:
            await asyncio.sleep_ms(60000)
        raise OSError(5)

    world.supervisor.add("probe", fails, 5000)

    async def case():
        await until(lambda: len(world.sleeps) == 11)
        await turns()

    world.run(case)
    expected = [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 500, 1000]
    assert world.sleeps == expected
    said = [text for text, _ in world.failures][:11]
    assert said == ["task probe failed, again in " + in_seconds(ms) for ms in expected]


def case_a_task_that_does_not_beat_is_hung_and_another_is_not_blamed():
    world = World()

    async def hangs(beat):
        await asyncio.sleep_ms(60000)

    async def works(beat):
        while True:
            beat()
            await asyncio.sleep_ms(0)

    world.supervisor.add("pump", hangs, 5000)
    world.supervisor.add("works", works, 5000)

    async def case():
        await turns()
        world.ms += 5000
        await turns()
        assert world.unwell() == []
        world.ms += 1
        await turns()
        assert world.unwell() == ["pump is hung, silent for 5 s"]

    world.run(case)


def case_mp_9516_silence_is_measured_across_the_wrap_of_the_clock():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    world = World((1 << 30) - 1000)

    async def hangs(beat):
        await asyncio.sleep_ms(60000)

    world.supervisor.add("pump", hangs, 5000)

    async def case():
        await turns()
        world.ms += 4000
        assert world.unwell() == []
        world.ms += 1001
        assert world.unwell() == ["pump is hung, silent for 5 s"]

    world.run(case)


def case_one_failing_task_leaves_the_others_alone():
    world = World()
    beats = []

    async def fails(beat):
        raise MemoryError("no room")

    async def works(beat):
        while True:
            beats.append(1)
            await asyncio.sleep_ms(0)

    world.supervisor.add("bad", fails, 5000)
    world.supervisor.add("good", works, 5000)

    async def case():
        await until(lambda: len(beats) > 40 and len(world.failures) > 10)

    world.run(case)


def case_stop_ends_every_task_and_start_begins_anew():
    world = World()
    running = []

    async def works(beat):
        running.append(1)
        try:
            while True:
                await asyncio.sleep_ms(1)
        finally:
            running.pop()

    world.supervisor.add("one", works, 5000)
    world.supervisor.add("two", works, 5000)

    async def case():
        await turns()
        assert len(running) == 2

    for _ in range(2):
        world.run(case)
        assert running == []
        assert len(world.unwell()) == 2
    assert world.failures == []


def case_stop_ends_a_task_that_takes_the_cancellation_for_another():
    """As the link's does when its connection is given up in the same turn of the loop."""
    world = World()
    taken = []

    async def stubborn(beat):
        while True:
            try:
                await asyncio.sleep_ms(10)
            except asyncio.CancelledError:
                taken.append(1)
                if len(taken) > 1:
                    raise

    world.supervisor.add("link", stubborn, 5000)

    async def case():
        await turns()

    world.run(case)
    assert len(taken) == 2
    assert not world.supervisor.tasks[0].running
