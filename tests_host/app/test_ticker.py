"""Ticker: it ticks, and knows how late it was."""

import firmware.ticker
from firmware.ticker import Ticker
from millpond.clock import Clock
from tests_host.app.naps import Naps


class World:
    """A ticker on a clock that is put on by hand."""

    def __init__(self):
        self.ms = 0
        self.ticks = self.beats = 0
        self.ticker = Ticker(self, Clock(lambda: self.ms))
        self.task = self.ticker.run(self.beat)

    def tick(self):
        self.ticks += 1

    def beat(self):
        self.beats += 1

    def wake_after(self, ms):
        self.ms += ms
        self.task.send(None)


def test_each_turn_ticks_and_beats():
    world = World()
    with Naps(firmware.ticker) as naps:
        for _ in range(5):
            world.wake_after(100)
        world.task.close()
    assert world.ticks == world.beats == 5 and naps.ms == [100] * 5
    assert world.ticker.worst_lag_ms == world.ticker.take_lag() == 0


def test_the_lag_is_what_came_on_top_and_is_taken_once():
    world = World()
    with Naps(firmware.ticker):
        for ms in (0, 100, 350, 120):
            world.wake_after(ms)
        assert world.ticker.take_lag() == 250 and world.ticker.take_lag() == 0
        world.wake_after(130)
        world.task.close()
    assert world.ticker.take_lag() == 30 and world.ticker.worst_lag_ms == 250
