"""Time-lapse: the whole program in one MicroPython process, hours of it in seconds.

The event loop's clock is the real one put on by what would have been waited for: whenever nothing
has come over a socket and no task is due, it jumps to the moment when the next one is. Sockets are
real, and so is everything of the application; what it talks to is a Broker in the same loop.

The kernel hands bytes over loopback at once. Should it ever take its time, a deadline may pass
that would not have; the program lives with that, so no case counts connections.
"""

import asyncio
import asyncio.core as core
import errno
import random
import time

from firmware import app as app_module
from firmware import pump, reporter, ticker, time_server
from firmware.app import App
from firmware.config import check
from millpond.batch import decode

RING = 1 << 30
_REAL_MS = 50000  # how long a case may really take
_FIRST_PORT = 22000  # any of so many, so that two runs at once do not take each other's
_PORTS = 10000


def _a_port():
    return _FIRST_PORT + random.getrandbits(24) % _PORTS


class Lapse:
    """The clock: `ticks_ms()` in the place of time's, beginning at `start_ms`."""

    def __init__(self, start_ms=1000):
        self._skew = start_ms - time.ticks_ms()
        self.ends_at = time.ticks_ms() + _REAL_MS
        self.watchdogs = []
        core.ticks = self.ticks_ms
        app_module.time = self
        lapse = self

        class Queue(core.IOQueue):
            def wait_io_event(self, ms):
                lapse.wait(super(), ms)

        core._io_queue = Queue()

    def ticks_ms(self):
        return time.ticks_ms() + self._skew

    def put_on(self, ms):
        """Let the clock jump, as no program sees it but one that slept."""
        self._skew += ms

    def wait(self, queue, ms):
        """Wait for a socket or `ms`; without a socket that has something, `ms` are skipped."""
        if ms < 0:
            queue.wait_io_event(1)
        else:
            queue.wait_io_event(0)
        assert time.ticks_ms() < self.ends_at, "a case that never ends"
        task = core._task_queue.peek()
        if task and ms > 0:
            left = time.ticks_diff(task.ph_key, self.ticks_ms())
            if left > 0:
                self._skew += left
                for watchdog in self.watchdogs:
                    watchdog.look()


class Wdt:
    """Stands in for machine.WDT: `bites` when it was not fed in time. `lapse` must be set."""

    lapse = None
    bites = 0

    def __init__(self, timeout):
        self._timeout = timeout
        self.feed()
        self.lapse.watchdogs = [self]

    def feed(self):
        self._fed_at = self.lapse.ticks_ms()

    def look(self):
        if time.ticks_diff(self.lapse.ticks_ms(), self._fed_at) > self._timeout:
            Wdt.bites += 1


class Counting:
    """A sensor whose readings are numbered from 0."""

    name = "counting"
    tags = ((1, "number", "uint16", "", 1),)

    def __init__(self, period_ms):
        self.period_ms = period_ms
        self.read_so_far = 0

    def read(self, out):
        out.reading(1, self.read_so_far)
        self.read_so_far += 1


class Broker:
    """A broker in the same loop, which keeps the payloads of what was published, by topic.

    It is "on", "off" (nobody listens), "silent" (connects, and answers nothing) or "frozen" (as
    silent, and those connected stay so). `slow_ms` is how long its CONNACK takes.
    """

    def __init__(self, slow_ms=0):
        self.slow_ms = slow_ms
        self.how = "off"
        self.greeted = 0
        self.published = {}
        self._server = None
        self._writers = []
        self.port = _a_port()

    async def become(self, how):
        was, self.how = self.how, how
        if how != "frozen":
            for writer in self._writers:
                writer.close()
            self._writers.clear()
        if how == "off" and self._server:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
        if was == "off" and how != "off":
            await self._listen()

    async def say(self, packet):
        """Send a packet to whoever is connected."""
        for writer in self._writers:
            writer.write(packet)
            await writer.drain()

    async def _listen(self):
        while True:
            try:
                self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
                return
            except OSError as error:
                assert error.errno == errno.EADDRINUSE
                self.port = _a_port()

    async def _serve(self, reader, writer):
        writer.s.setsockopt(6, 1, 1)  # TCP_NODELAY: the kernel's own delays are not skipped
        self._writers.append(writer)
        try:
            while True:
                head = await reader.readexactly(2)
                length = head[1] & 127
                shift = 7
                while head[-1] & 128:
                    head += await reader.readexactly(1)
                    length |= (head[-1] & 127) << shift
                    shift += 7
                body = await reader.readexactly(length)
                if self.how == "on":
                    await self._answer(writer, head[0], body)
        except (OSError, EOFError):
            pass
        if writer in self._writers:
            self._writers.remove(writer)
            writer.close()

    async def _answer(self, writer, first, body):
        if first == 0x10:
            await asyncio.sleep_ms(self.slow_ms)
            self.greeted += 1
            writer.write(b"\x20\x02\x01\x00")
        elif first == 0xC0:
            writer.write(b"\xd0\x00")
        elif first & 0xF0 == 0x30:
            at = 2 + (body[0] << 8 | body[1])
            topic = body[2:at].decode()
            if first & 6:
                writer.write(b"\x40\x02" + body[at : at + 2])
                at += 2
            self.published.setdefault(topic, []).append(body[at:])
        await writer.drain()

    def numbers(self):
        """The numbers of the readings that came, without those that came again."""
        out = [-1]
        for payload in self.published.get("t/pond/data", []):
            for group in decode(payload):
                for _, _, _, raw in group[3]:
                    number = raw[0] << 8 | raw[1]
                    if number > out[-1]:
                        out.append(number)
        return out[1:]


class CountingApp(App):
    """The application with one sensor, on a configuration given by section."""

    def __init__(self, broker, period_ms=1000, wlan=None, **sections):
        tree = {"mqtt": {}, "log": {"level": "error", "status_s": 0}}
        tree.update({"device": {"name": "pond"}, "plant": {"enabled": False}})
        tree["board"] = {"enabled": False}
        for name in sections:
            tree.setdefault(name, {}).update(sections[name])
        tree["mqtt"].update({"host": "127.0.0.1", "port": broker.port, "prefix": "t"})
        self.counting = Counting(period_ms)
        super().__init__(check(tree), wlan, Wdt)

    def _sensors(self):
        return [self.counting]


class Coarse:
    """asyncio as the application's own tasks see it, which then look once a second, not oftener."""

    def __getattr__(self, name):
        return getattr(asyncio, name)

    def sleep_ms(self, ms):
        return asyncio.sleep_ms(max(ms, 1000))


def run(case, slow_ms=0, start_ms=1000, coarse=False, how="on", **options):
    """Run the coroutine function `case(app, broker)` beside the application.

    The broker is as `how` says from the start; `options` are the CountingApp's.
    """
    asyncio.new_event_loop()
    for module in (app_module, pump, reporter, ticker, time_server):
        module.asyncio = Coarse() if coarse else asyncio
    Wdt.lapse = Lapse(start_ms)
    Wdt.bites = 0
    broker = Broker(slow_ms)

    async def main():
        await broker.become(how)
        app = CountingApp(broker, **options)
        running = asyncio.create_task(app.run())
        await case(app, broker)
        app.stop()
        await running
        await broker.become("off")

    asyncio.run(main())


async def until(condition, what, limit_s=600):
    """Let the application go on until `condition()`, for `limit_s` of its time at most."""
    for _ in range(limit_s):
        if condition():
            return
        await asyncio.sleep(1)
    raise AssertionError("{}: not within {} s".format(what, limit_s))


async def all_arrive(app, broker):
    """Stop the sensor, and have everything that it read at the broker, in order, and no loss."""
    app.stop_sensors()
    await until(lambda: not app.counters()["held"], "an empty line")
    numbers = broker.numbers()
    assert numbers == list(range(app.counting.read_so_far)), numbers
    lost = app.counters()["dropped"]
    assert not sum(lost.values()), lost
