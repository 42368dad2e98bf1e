"""Watcher: feeds only while all is well, and tells the link when nothing is delivered."""

from firmware.watcher import Watcher
from millpond.clock import Clock
from millpond.paged_ring import PagedRing
from millpond.watchdog import DeliveryWatchdog


class World:
    """What a watcher looks at; it is all of it itself where one attribute is enough."""

    def __init__(self, hardware_s=30):
        self.ms = 0
        self.clock = Clock(lambda: self.ms)
        self.lines = []
        self.feeds = 0
        self.bad = []
        self.up = True
        self.delivered = self.connects = self.losses = 0
        self.reason = "the broker closed the connection"
        self.given_up = []
        self.unix = None
        self.ring = PagedRing(640, 64)
        config = {
            "watchdog.check_period_s": 10,
            "watchdog.delivery_timeout_s": 120,
            "watchdog.hardware_timeout_s": hardware_s,
        }
        self.watcher = Watcher(
            config,
            self.clock,
            log=self,
            supervisor=self,
            uplink=self,
            sender=self,
            ring=self.ring,
            advisor=self,
            delivery=DeliveryWatchdog(120),
            hardware=self,
            time_of_day=lambda: self.unix,
        )

    def warning(self, text):
        self.lines.append(text)

    def feed(self):
        self.feeds += 1

    def unwell(self, now):
        return self.bad

    def is_up(self):
        return self.up

    def give_up(self, reason):
        self.given_up.append(reason)

    def look(self, seconds):
        for _ in range(seconds):
            self.ms += 1000
            now = self.clock.now()
            self.watcher._look_at_tasks(now)
            self.watcher._look_at_deliveries(now)


def test_SPEC_7_fed_only_while_every_task_is_well():
    world = World()
    world.look(3)
    assert world.feeds == 3
    world.bad = ["link is hung"]
    world.look(3)
    assert world.feeds == 3 and world.lines == ["link is hung"]
    world.bad = []
    world.look(1)
    assert world.feeds == 4
    world.bad = ["link is down"]
    world.look(1)
    assert world.lines[-1] == "link is down"


def test_SPEC_7_feeds_come_four_times_within_the_time_out():
    assert World(1).watcher._period_ms == 250
    assert World(2).watcher._period_ms == 500
    assert World(30).watcher._period_ms == 1000
    assert World(0).watcher._period_ms == 1000


def test_SPEC_7_a_link_that_delivers_nothing_is_given_up():
    world = World()
    world.look(200)
    world.ring.append(b"x")
    world.look(119)
    assert world.given_up == []
    world.look(1)
    assert world.given_up == ["nothing delivered for 120 s"]


def test_SPEC_7_a_delivery_or_a_new_connection_begins_anew():
    for name in ("delivered", "connects"):
        world = World()
        world.ring.append(b"x")
        world.look(119)
        setattr(world, name, 1)
        world.look(119)
        assert world.given_up == []
        world.look(2)
        assert len(world.given_up) == 1


def test_the_time_is_taken_once_it_is_there():
    world = World()
    world.watcher.set_clock()
    assert not world.clock.known
    world.unix = 1767225600
    world.watcher.set_clock()
    assert world.clock.unix() == 1767225600
    world.unix = 1800000000
    world.watcher.set_clock()
    assert world.clock.unix() == 1767225600
