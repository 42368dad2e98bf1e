"""Reporter: a health message at the end of each period, a line at the beginning."""

import firmware.reporter
from firmware.reporter import Reporter
from tests_host.app.naps import Naps


class World:
    """An application as far as the reporter looks at it; `said` has the seconds it spoke at."""

    def __init__(self, **config):
        self.config = {name.replace("_", ".", 1): value for name, value in config.items()}
        self.seconds = 0
        self.said = []
        self.ring = self.packer = self.log = self
        self.page_payload = 2040
        self.reporter = Reporter(self, 77)

    def put(self, payload, lane, tag):
        assert (payload, lane, tag) == (b"2040", 0, 77)
        self.said.append(self.seconds)

    def info(self, text):
        assert text == "all is well"
        self.said.append(self.seconds)

    # In the place of the module `report`.

    def health(self, app, limit):
        assert app is self
        return str(limit).encode()

    def line(self, app):
        return "all is well"

    def drive(self, task, seconds):
        kept = firmware.reporter.report
        firmware.reporter.report = self
        try:
            with Naps(firmware.reporter):
                for _ in range(seconds):
                    task.send(None)
                    self.seconds += 1
        finally:
            firmware.reporter.report = kept


def test_health_is_published_at_the_end_of_each_period():
    world = World(health_period_s=3)
    world.drive(world.reporter.publish_health(lambda: None), 10)
    assert world.said == [3, 6, 9]


def test_the_line_comes_at_the_beginning_of_each_period():
    world = World(log_status_s=4)
    world.drive(world.reporter.log_line(lambda: None), 10)
    assert world.said == [0, 4, 8]


def test_a_shorter_period_counts_at_once_and_a_longer_one_from_the_next():
    world = World(health_period_s=3600)
    task = world.reporter.publish_health(lambda: None)
    world.drive(task, 5)
    world.config["health.period_s"] = 2
    world.drive(task, 5)
    assert world.said == [7, 9]
    world.config["health.period_s"] = 5
    world.drive(task, 8)
    assert world.said == [7, 9, 11, 16]


def test_each_second_is_a_beat():
    beats = []
    world = World(health_period_s=3)
    world.drive(world.reporter.publish_health(lambda: beats.append(0)), 7)
    assert len(beats) == 7
