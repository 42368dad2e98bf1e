"""AppRig, the inside: the whole application in a MicroPython process, as a test orders.

It speaks the same lines as rig.py; what the application logs goes between them as it is. The first
line names the configuration file. `sick` is one supervised task more, which can be told to fail.
"""

import asyncio
import gc
import json
import sys

from firmware import report
from firmware.app import App
from firmware.settings import load

SICK_LIMIT_MS = 200


class Wdt:
    """Stands in for machine.WDT, and counts."""

    feeds = 0
    timeouts = []

    def __init__(self, timeout):
        self.timeouts.append(timeout)

    def feed(self):
        Wdt.feeds += 1


class AppRig:
    """The application, and what may be ordered."""

    def __init__(self, options):
        self.app = App(load(options["config"]), None, Wdt, "", self.reset)
        self.resets = 0
        self.unix = None
        if options.get("clock") == "unknown":
            self.app.watcher._time_of_day = lambda: self.unix
        self.app.supervisor.add("sick", self.sick, SICK_LIMIT_MS)
        self.mode = "well"

    def reset(self):
        self.resets += 1

    async def sick(self, beat):
        while True:
            if self.mode == "raise":
                raise ValueError("sick by order")
            if self.mode == "end":
                return
            if self.mode == "well":
                beat()
            await asyncio.sleep_ms(10)

    async def run(self):
        running = asyncio.create_task(self.app.run())
        orders = asyncio.StreamReader(sys.stdin)
        while True:
            line = await orders.readline()
            if not line:
                break
            order = json.loads(line)
            name = order.pop("do")
            answer = getattr(self, "do_" + name)(**order) or {}
            print(json.dumps(dict(answer, done=name)))
        self.app.stop()
        await running

    def do_stats(self):
        gauges = report.gauges(self.app)
        gauges["feeds"] = Wdt.feeds
        gauges["timeouts"] = Wdt.timeouts
        gauges["resets"] = self.resets
        gauges["subscribed"] = sorted(self.app.opening.subscribed)
        return gauges

    def do_status(self):
        return {"page": self.app.status_text()}

    def do_sick(self, mode):
        """From now on the task `sick` is "well", "hang"s, "raise"s or "end"s."""
        self.mode = mode

    def do_break_sensor(self):
        """The plant's sensor raises from now on."""
        self.plant = self.app.samplers[0]._outlet._sensor
        self.plant.read = broken

    def do_mend_sensor(self):
        """It no longer does."""
        self.plant.read = lambda out: None

    def do_know_time(self, unix):
        """The port's clock has the time of day from now on."""
        self.unix = unix

    def do_enqueue_low(self, ttl_ms):
        """A message of the lowest priority, which expires; the packer is kept from taking it."""
        app = self.app
        app.packer.poll = lambda now, link_up, limit: 0
        topic = app.topics.index("t/pond/note")
        app.queue.enqueue(topic, b"note", 1, 0, False, ttl_ms, app.clock.now())

    def do_fill_ring(self, percent):
        """Messages until the ring is so full."""
        ring = self.app.ring
        while ring.fill_percent() < percent:
            ring.append(bytes(1000), 0, self.app._health_tag)

    def do_memory(self):
        gc.collect()
        return {"used": gc.mem_alloc()}

    def do_config(self, key):
        return {"value": self.app.config[key]}

    def do_stop_sensors(self):
        self.app.stop_sensors()


def broken(_out):
    raise RuntimeError("wire broken")


if __name__ == "__main__":
    options = json.loads(sys.stdin.readline())
    asyncio.run(AppRig(options).run())
