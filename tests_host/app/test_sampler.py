"""Sampler: a sensor is read on, whatever its read does."""

import firmware.sampler
from firmware.sampler import Sampler
from millpond.clock import Clock
from tests_host.app.naps import Naps


class World:
    """A sampler with everything around it, time passing only in reads."""

    name = "pump"
    tags = ()
    period_ms = 100

    def __init__(self):
        self.ms = 0
        self.lines = []
        self.errors = []
        self.proceeded = 0
        self.error = None
        self.takes_ms = 0
        self.sampler = Sampler(self, self, Clock(lambda: self.ms), self, self.proceed)

    def take(self):
        self.ms += self.takes_ms
        if self.error:
            raise self.error

    def exception(self, text, error):
        self.lines.append(text)
        self.errors.append(error)

    def info(self, text):
        self.lines.append(text)

    def warning(self, text):
        self.lines.append(text)

    def proceed(self):
        self.proceeded += 1

    def read(self, times=1):
        for _ in range(times):
            self.sampler._read()


def test_a_read_that_raises_is_logged_ever_more_rarely_and_counted():
    world = World()
    world.error = OSError("no answer")
    world.read(20)
    counts = [int(text.split()[3]) for text in world.lines]
    assert counts == [1, 2, 4, 8, 16]
    assert world.errors[0] is world.error
    assert world.sampler.failures == 20
    assert world.sampler.failing == "OSError: no answer"


def test_what_was_read_goes_on_even_when_the_read_raised():
    world = World()
    world.read()
    world.error = ValueError("half")
    world.read()
    assert world.proceeded == 2


def test_a_sensor_that_comes_back_is_told_once():
    world = World()
    world.error = OSError("no answer")
    world.read(3)
    world.error = None
    world.lines = []
    world.read(3)
    assert world.lines == ["sensor pump is well again after 3 failed reads"]
    assert world.sampler.failing == "" and world.sampler.failures == 3
    world.error = OSError("again")
    world.read()
    assert world.lines[-1] == "sensor pump failed, 1 in a row"


def test_a_slow_read_is_named():
    world = World()
    world.takes_ms = 199
    world.read()
    assert world.lines == []
    world.takes_ms = 2500
    world.read()
    assert world.lines == ["sensor pump took 2500 ms, and held up the rest"]
    assert world.sampler.slowest_ms == 2500


def test_bad_values_are_those_of_its_outlet():
    world = World()
    world.bad_values = 4
    assert world.sampler.bad_values == 4


def driven(drive, period_ms):
    """Have `drive(world, step, naps)` drive the sampler's task by calls of `step`."""
    world = World()
    world.sampler.period_ms = period_ms
    beats = []
    with Naps(firmware.sampler) as naps:
        task = world.sampler.run(lambda: beats.append(world.ms))
        try:
            task.send(None)
            drive(world, lambda: task.send(None), naps)
        finally:
            task.close()
    return beats


def test_another_period_begins_now_however_long_the_old_one_was():
    def drive(world, step, naps):
        for _ in range(4):
            world.ms += 1000
            step()
        assert world.proceeded == 1 and naps.ms == [1000] * 5
        world.ms += 1000
        world.sampler.set_period(20)
        step()
        assert world.proceeded == 1 and naps.ms[-1] == 20
        world.ms += 20
        step()
        assert world.proceeded == 2 and naps.ms[-1] == 20

    assert len(driven(drive, 3600000)) >= 5


def test_another_period_begins_now_though_the_old_one_ends_at_once():
    def drive(world, step, naps):
        world.ms += 400
        world.sampler.set_period(3000)
        world.ms += 600
        reads = []
        while world.ms < 10000:
            before = world.proceeded
            step()
            if world.proceeded > before:
                reads.append(world.ms)
            world.ms += naps.ms[-1]
        assert reads == [3400, 6400, 9400]

    driven(drive, 1000)


def test_what_the_nap_before_a_shorter_period_has_taken_is_not_made_up_for():
    def drive(world, step, naps):
        world.ms += 20
        world.sampler.set_period(10)
        world.ms += 980
        for n in range(1, 6):
            step()
            assert world.proceeded == 1 + n and naps.ms[-1] == 10
            world.ms += 10

    driven(drive, 1000)
