"""Run: one history with the whole firmware in it, and what must be true in the end.

The firmware is the real one, from `App` down; the modules asyncio, time, socket and random are the
simulated ones, which `install` puts in their place before it is imported.
"""

import gc
import sys

from tests_host.sim import history, loop, net
from tests_host.sim.broker import Broker
from tests_host.sim.loop import Asyncio, Loop, Random, Time, world
from tests_host.sim.prng import Prng

CALM_MS = 600000  # what all must be over in, once nothing goes wrong any more
NONSENSE = (
    b"\x00\x00",
    b"\x40\x02\x00\x00",
    b"\x40\x02\x12\x34",
    b"\x50\x02\x12\x34",
    b"\x70\x02\x12\x34",
    b"\x90\x03\x00\x09\x00",
    b"\x20\x02\x00\x00",
    b"\x30\xff\xff\xff\xff",
    b"\xd0\x00",
    b"\x40\x02\x00\x01\x40\x02\x00\x01",
    b"\xf0\x00",
    b"\x30\x03\x00\x01t",
)
COMMANDS = (
    b'{"id": 1, "op": "status"}',
    b'{"id": 2, "op": "flush"}',
    b'{"id": 3, "op": "set", "key": "batch.max_age_ms", "value": 700}',
    b"[" * 300,
    b'{"id": 4, "op": "dance"}',
    bytes(70000),
)


class Failure(Exception):
    """What must hold did not."""


def install():
    """Put the simulated modules in place, before firmware is imported."""
    for name, module in (("asyncio", Asyncio), ("time", Time), ("random", Random)):
        sys.modules[name] = module
    sys.modules["socket"] = net.Socket
    if sys.implementation.name != "micropython":
        import binascii
        import struct

        sys.modules.update(usocket=net.Socket, ustruct=struct, ubinascii=binascii)
        gc.mem_free = gc.mem_alloc = lambda: 0
        sys.print_exception = print
        _give_errno()


def _give_errno():
    """An OSError of one number has an errno in MicroPython, and is to have it here."""
    from firmware import app

    assert app
    for name, module in list(sys.modules.items()):
        if name.startswith("firmware.") or module is net:
            module.OSError = net.MicroOSError


class Run:
    """One history, from its beginning to the judgement."""

    def __init__(self, seed, broken=None):
        from firmware.config import check

        config, start, steps = history.draw(seed) if isinstance(seed, int) else seed
        self.steps = steps
        self.loop = world.loop = Loop(start)
        world.bits = Prng(start + len(steps)).getrandbits
        self.broker = Broker(self.loop)
        self.net = world.net = net.Net(self.loop, self.broker)
        self.numbers = 0
        self.lanes = {}
        self.receipts = {}
        self.gone = 0  # items that were held when the power went
        self.excused = set()  # numbers that had not come by then
        self.strays = []
        self.past = {"produced": 0, "delivered": 0, "dropped": 0}
        self._config = check(config)
        self._broken = broken
        self._boot()

    def _boot(self):
        """Power on: everything is made anew."""
        from firmware.app import App

        self.app = App(self._config)
        if self._broken:
            self._broken(self.app)
        self.app.log.exception = self._stray
        self._start()
        self._pass(1)

    def _stray(self, text, error):
        self.strays.append("{}: {!r}".format(text, error))

    def _start(self):
        self.task = self.loop.add(self.app.run())

    # -- what happens ----------------------------------------------------------------------------

    def play(self):
        """Let the history happen, then calm, then judge; Failure says what is wrong."""
        for ms, what, argument in self.steps:
            self._pass(ms)
            getattr(self, "do_" + what)(argument)
        self._pass(1000)
        self._calm()
        self._judge()

    def _pass(self, ms):
        end = self.loop.now + ms
        while self.loop.now < end:
            self.loop.run_until(min(end, self.loop.now + 1000))
            self.broker.look()

    def _calm(self):
        """No more faults: all that is held must leave."""
        self.do_heal(0)
        self.app.stop_sensors()
        self.app.config = dict_of(self.app.config, "health.period_s", 86400)
        self._pass(5000)
        end = self.loop.now + CALM_MS
        while self.loop.now < end and self.app.counters()["held"]:
            self._pass(500)

    def put(self, n, lane, qos, size=24, on_complete=None):
        for _ in range(n):
            payload = b"%d:%d:" % (lane, self.numbers)
            payload += bytes(max(0, size - len(payload)))
            topic = "sim/{}".format(qos)
            if self.app.publish(topic, payload, lane, on_complete, qos):
                self.lanes.setdefault((lane, qos), []).append(self.numbers)
            self.numbers += 1

    def do_put(self, n):
        self.put(n, 1, 1)

    def do_put_qos0(self, n):
        self.put(n, 1, 0)

    def do_put_qos2(self, n):
        self.put(n, 1, 2)

    def do_urgent(self, n):
        self.put(n, 3, 1)

    def do_large(self, n):
        for _ in range(n):
            self.track(0, 2000)

    def do_tracked(self, n):
        for _ in range(n):
            self.track(2, 24)

    def track(self, lane, size):
        """Publish a message with a receipt."""
        number = self.numbers

        def told(payload, result, reason, _):
            if number in self.receipts:
                raise Failure("told of {} twice".format(number))
            self.receipts[number] = result

        self.put(1, lane, 1, size, told)

    def do_short_lived(self, n):
        for _ in range(n):
            self.app.queue.enqueue("sim/x", b"x", 1, 1, False, 300, self.app.clock.now())

    def do_latency(self, ms):
        self.net.latency = ms

    def do_piece(self, size):
        self.net.piece = size

    def do_send_buffer(self, size):
        self.net.send_buffer = size

    def do_refuse(self, ms):
        self.net.refuse = True
        self.broker.restart(True)
        self.loop.at(ms, self._allow)

    def _allow(self, _):
        self.net.refuse = False

    def do_no_answer(self, ms):
        self.net.no_answer = True
        self.loop.at(ms, self._answer)

    def _answer(self, _):
        self.net.no_answer = False

    def do_half_open(self, which):
        if self.net.conn:
            self.net.conn.dead_in = which != 1
            self.net.conn.dead_out = which != 0

    def do_stall(self, ms):
        self.net.stalled_until = self.loop.now + ms

    def do_full(self, _):
        if self.net.conn:
            self.net.conn.full = True

    def do_reset(self, _):
        if self.net.conn and not self.net.conn.closed:
            self.net.conn.reset()

    def do_reset_out(self, n):
        if self.net.conn:
            self.net.conn.reset_out = n

    def do_reset_in(self, n):
        if self.net.conn:
            self.net.conn.reset_in = n

    def do_reset_next(self, n):
        self.net.reset_next = (None, n) if n & 1 else (n, None)

    def do_lose_acks(self, n):
        self.broker.lose_acks = n

    def do_repeat_acks(self, n):
        self.broker.repeat_acks = n

    def do_ack_delay(self, ms):
        self.broker.ack_delay = ms

    def do_restart(self, keep):
        self.broker.restart(keep)

    def do_forget(self, _):
        self.broker.restart(False)

    def do_take_over(self, _):
        self.broker.close_all()

    def do_mute(self, ms):
        self.broker.mute = True
        self.loop.at(ms, self._speak)

    def _speak(self, _):
        self.broker.mute = False
        self.broker.restart(True)

    def do_nonsense(self, which):
        self.broker.say(NONSENSE[which])

    def do_command(self, which):
        topic = b"millpond/millpond-1/cmd"
        payload = COMMANDS[which]
        length = 2 + len(topic) + len(payload)
        head = b"\x30"
        while length > 127:
            head += bytes((length & 127 | 128,))
            length >>= 7
        self.broker.say(head + bytes((length, 0, len(topic))) + topic + payload)

    def do_clock_step(self, seconds):
        self.loop.unix += seconds

    def do_wait(self, ms):
        self._pass(ms)

    def do_stop(self, ms):
        """Ctrl-C and, after a while, resume."""
        self.app.stop()
        self._pass(2000)
        if self.task.alive:
            raise Failure("the program does not stop")
        self._pass(ms)
        self._start()
        self._pass(1)

    def do_interrupt(self, ms):
        """Stopped between two instructions."""
        self.loop.interrupt()
        self.app.abandon()
        self._pass(ms)
        self._start()
        self._pass(1)

    def do_power_loss(self, ms):
        """The board is off for a while; what it held is lost, and the harness counts it."""
        for name, number in self._account().items():
            self.past[name] = number
        self.gone += self.app.counters()["held"]
        came = {int(payload.split(b":")[1]) for topic, payload, _ in self.broker.got if ours(topic)}
        self.excused |= set(range(self.numbers)) - came
        for session in self.broker.sessions.values():
            session.published = {}
        for conn in list(self.net.open):
            conn.vanish()
        self.loop.interrupt()
        self._pass(ms)
        self._boot()

    def _account(self):
        items = self.app.counters()
        return {
            "produced": self.past["produced"] + items["produced"],
            "delivered": self.past["delivered"] + items["delivered"],
            "dropped": self.past["dropped"] + sum(items["dropped"].values()),
        }

    def do_heal(self, _):
        self.net.heal()
        self.net.send_buffer = max(self.net.send_buffer, 100)
        self.broker.lose_acks = self.broker.ack_delay = 0
        if self.broker.mute:
            self._speak(None)

    # -- the judgement ---------------------------------------------------------------------------

    def _judge(self):
        app = self.app
        must(not self.strays, "an exception nobody expected: {}".format(self.strays))
        app.ring.check()
        app.queue.check()
        items = app.counters()
        must(items["held"] == 0, "after the calm still held: {}".format(items))
        all_items = self._account()
        dropped = all_items["dropped"]
        must(
            all_items["produced"] == all_items["delivered"] + dropped + self.gone,
            "the account does not balance: {}, gone {}".format(all_items, self.gone),
        )
        must(len(self.net.open) <= 1, "{} sockets open".format(len(self.net.open)))
        self._judge_arrivals(dropped)
        for number, result in self.receipts.items():
            if result == 0:
                must(number in self.arrived, "{} told delivered, but never came".format(number))

    def _judge_arrivals(self, dropped):
        self.arrived = set()
        lost = 0
        for lane, qos in self.lanes:
            came = []
            lives = {}
            for topic, payload, life in self.broker.got:
                if topic != b"sim/%d" % qos or not payload.startswith(b"%d:" % lane):
                    continue
                number = int(payload.split(b":")[1])
                if number in lives:
                    must(came[-1] == number, "{} repeated out of turn".format(number))
                    must(qos < 2 or lives[number] != life, "QoS 2 came twice: {}".format(number))
                else:
                    came.append(number)
                lives[number] = life
            must(came == sorted(came), "lane {}, QoS {} out of order: {}".format(lane, qos, came))
            self.arrived.update(came)
            if qos:
                lost += len(set(self.lanes[lane, qos]) - set(came) - self.excused)
        must(lost <= dropped, "{} messages never came, {} counted as dropped".format(lost, dropped))

    def digest(self):
        """A number made of what came, in its order, and when all was over."""
        number = self.broker.connects * 31 + self.loop.now & 0xFFFFFF
        for topic, payload, life in self.broker.got:
            if topic[:4] == b"sim/":
                for byte in payload[:10]:
                    number = number * 33 + byte + life & 0xFFFFFF
        return number

    def close(self):
        """Leave nothing behind."""
        self.loop.end()


def ours(topic):
    """Whether a message is one that the harness has put."""
    return topic[:4] == b"sim/" and topic != b"sim/x"


def must(holds, what):
    """Failure, unless it holds."""
    if not holds:
        raise Failure(what)


class dict_of:
    """A configuration with one value changed."""

    def __init__(self, config, key, value):
        self._config = config
        self._key = key
        self._value = value

    def __getitem__(self, key):
        return self._value if key == self._key else self._config[key]


def play(seed, broken=None, digests=None):
    """Play one seed or history; None, or what was wrong with it. Its digest goes to `digests`."""
    run = None
    try:
        run = Run(seed, broken)
        run.play()
        if digests is not None:
            digests.append(run.digest())
    except Exception as error:
        return "{}: {}".format(type(error).__name__, error)
    finally:
        if run:
            run.close()
        loop.world.net = None
    return None
