"""Run: one history with the whole firmware in it, and what must be true all the time.

The firmware is the real one, from `App` down; the modules asyncio, time, socket and random are the
simulated ones, which `install` puts in their place before it is imported.

    Deeds (steps) -> Loop (time), Net (bytes), Broker (MQTT) | App (the firmware)
                                 Arrivals, what came      -> Watch, what the firmware claims

After each step, and each second in which nothing happens, the account must balance with what lies
in the ring; each claim is looked at when it is made, each message when it arrives.
"""

import gc
import sys

from tests_host.sim import history, loop, net
from tests_host.sim.arrivals import TAGS, Arrivals
from tests_host.sim.broker import Broker
from tests_host.sim.deeds import COMMAND_TOPIC, Deeds
from tests_host.sim.loop import Asyncio, Loop, Random, Time, world
from tests_host.sim.prng import Prng
from tests_host.sim.verdict import Failure, must, verdict
from tests_host.sim.watch import Watch


def install():
    """Put the simulated modules in place, before firmware is imported."""
    for name, module in (("asyncio", Asyncio), ("time", Time), ("random", Random)):
        sys.modules[name] = module
    sys.modules["socket"] = net.Socket
    if sys.implementation.name != "micropython":
        import binascii
        import struct

        sys.modules.update(usocket=net.Socket, ustruct=struct, ubinascii=binascii)
        gc.mem_alloc = lambda: 0
        sys.print_exception = print
        _give_errno()


def _give_errno():
    """An OSError of one number has an errno in MicroPython, and is to have it here."""
    from firmware import app

    assert app
    for name, module in list(sys.modules.items()):
        if name.startswith("firmware.") or module is net:
            module.OSError = net.MicroOSError


class Counter:
    """A sensor whose readings are the harness's numbers."""

    def __init__(self, run, lane, period_ms):
        self.name = "counter"
        self.period_ms = period_ms
        self.priority = lane
        self.tags = ((TAGS + lane, "number", "uint32", "", 1),)
        self._run = run

    def read(self, out):
        run = self._run
        run.made += 1
        if run.app.config["mqtt.qos"]:
            run.owed.add(run.numbers)
        out.reading(self.tags[0][0], run.numbers)
        run.numbers += 1


class Run(Deeds):
    """One history, from its beginning to the judgement.

    `numbers` is the next of the harness's numbers, `owed` those with QoS 1 or 2, and `excused` of
    these what was held when the power went; `made` counts the items of this life.
    """

    def __init__(self, seed, broken=None):
        from firmware.config import check

        config, start, steps = history.draw(seed) if isinstance(seed, int) else seed
        config = dict(config)
        self._counter = config.pop("counter")
        self.steps = steps
        self.loop = world.loop = Loop(start)
        world.bits = Prng(start + len(steps)).getrandbits
        self.arrivals = Arrivals()
        self.broker = Broker(self.loop, self.arrivals)
        self.net = world.net = net.Net(self.loop, self.broker)
        self.numbers = self.made = self.gone = 0
        self.owed = set()
        self.excused = set()
        self.awaited = set()
        self.dropped_numbers = set()
        self.past = {"produced": 0, "delivered": 0, "dropped": 0}
        self._config = check(config)
        self._broken = broken
        self.boot()

    def boot(self):
        """Power on: everything is made anew."""
        self.app = _app_with(self._config, self._sensors())
        self.watch = Watch(self.app, self.loop, self.net, self.broker, self.arrivals)
        if self._broken:
            self._broken(self.app)
        self.app.log.exception = self._stray
        self.app.log.error = lambda _: None
        self.start()

    def _sensors(self):
        lane, period_ms = self._counter
        return [Counter(self, lane, period_ms)] if period_ms else []

    def _stray(self, text, error):
        verdict.wrong = verdict.wrong or "{}: {!r}".format(text, error)

    def start(self):
        """Let the program begin."""
        self._main = self.loop.add(self.app.run())
        self.pass_time(1)

    def stop(self):
        """Let it end."""
        self.pass_time(1)
        self.app.stop()
        self.pass_time(2000, False)
        must(not self._main.alive, "the program does not stop")
        must(not self.loop.tasks(), "{} tasks go on", self.loop.tasks())
        must(not self.net.open, "{} sockets open, and the program ended", len(self.net.open))
        self.check()

    # -- the course of it ------------------------------------------------------------------------

    def play(self):
        """Let the history happen, then calm, then judge; Failure says what is wrong."""
        for ms, what, argument in self.steps:
            self.pass_time(ms)
            getattr(self, "do_" + what)(argument)
            self.check()
        self._calm()
        self._judge()

    def pass_time(self, ms, running=True):
        """Let things happen; the board may be off."""
        end = self.loop.now + ms
        while self.loop.now < end:
            self.loop.run_until(min(end, self.loop.now + 1000))
            self.broker.look()
            if running:
                self.watch.look()
            if verdict.wrong:
                raise Failure(verdict.wrong)

    def _calm(self):
        """No more faults: all that is held must leave, within a time that can be named.

        So must one of the messages that are put until one arrives: without keepalive, nothing else
        would show a dead link.
        """
        self.pass_time(1000)
        self.do_heal(0)
        first = self.numbers
        self.app.stop_sensors()
        self.app.config.change("health.period_s", 86400)
        self.pass_time(6000)
        end = self.loop.now + self._bound_ms()
        while self.app.counters()["held"] or self.awaited or not self._is_well(first):
            must(
                self.loop.now < end,
                "held {}, {} not told, subscribed {}, link {}: long after the last fault",
                self.app.counters()["held"],
                len(self.awaited),
                self._is_subscribed(),
                self.app.uplink.reason,
            )
            if not self._is_well(first):
                self.put(1, 1, 1)
            self.pass_time(500)
        self.pass_time(2000)

    def _is_well(self, first):
        """Whether the link is up in all respects, and a message from number `first` on arrived."""
        return self.arrivals.highest(1) >= first and self._is_subscribed()

    def _is_subscribed(self):
        for session in self.broker.sessions.values():
            if COMMAND_TOPIC not in session.topics:
                return False
        return self.app.uplink.is_up() and len(self.broker.sessions) == 1

    def _bound_ms(self):
        c = self.app.config
        s = c["mqtt.ack_timeout_s"] + 2 * c["mqtt.connect_timeout_s"] + 2 * c["mqtt.backoff_max_s"]
        s += c["watchdog.delivery_timeout_s"] + c["mqtt.keepalive_s"] + 25
        each_ms = 150 + (1000 // c["send.rate_limit"] if c["send.rate_limit"] else 0)
        return 1000 * s + c["batch.max_age_ms"] + each_ms * self.app.counters()["held"]

    # -- the judgement ---------------------------------------------------------------------------

    def check(self):
        """What must hold at each moment at which nothing is half done."""
        if verdict.wrong:
            raise Failure(verdict.wrong)
        self.watch.check()
        items = self.account()
        held = self.app.counters()["held"]
        must(
            items["produced"] == items["delivered"] + items["dropped"] + held + self.gone,
            "the account of all lives does not balance: {}, gone {}",
            items,
            self.gone,
        )
        produced = self.app.counters()["produced"]
        waiting = len(self.awaited)
        must(self.made - waiting <= produced, "{} made, {} produced", self.made, produced)

    def account(self):
        """The items of all lives."""
        items = self.app.counters()
        return {
            "produced": self.past["produced"] + items["produced"],
            "delivered": self.past["delivered"] + items["delivered"],
            "dropped": self.past["dropped"] + sum(items["dropped"].values()),
        }

    def _judge(self):
        self.watch.check_empty()
        self.dropped_numbers |= self.watch.dropped_numbers
        lost = self.owed - self.arrivals.numbers - self.excused
        # What the intake drops it does not show: only how much.
        unseen = self.account()["dropped"] - self.watch.dropped_items
        must(
            len(lost - self.dropped_numbers) <= unseen,
            "{} never came, and {} are counted as dropped",
            lost - self.dropped_numbers,
            unseen,
        )
        self.stop()

    def digest(self):
        """A number made of what came, in its order, and when all was over."""
        return (self.broker.connects * 31 + self.loop.now + self.arrivals.digest) & 0xFFFFFF

    def close(self):
        """Leave nothing behind."""
        self.loop.end()


def _app_with(config, sensors):
    """The application with more sensors, and the same words about memory on any interpreter."""
    from firmware.app import App

    class Board(App):
        def _sensors(self):
            return super()._sensors() + sensors

        def memory(self):
            return {"free": 0, "used": 0}

    return Board(config)


def play(seed, broken=None, digests=None):
    """Play one seed or history; None, or what was wrong with it. Its digest goes to `digests`."""
    run = None
    verdict.wrong = ""
    try:
        run = Run(seed, broken)
        run.play()
        if digests is not None:
            digests.append(run.digest())
    except Failure:
        return verdict.wrong
    except Exception as error:
        return verdict.wrong or "{}: {}".format(type(error).__name__, error)
    finally:
        if run:
            run.close()
        loop.world.net = None
    return None
