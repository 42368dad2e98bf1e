"""App: the application put together from its configuration, and its tasks.

This is the one place where objects meet. Data flows one way through them,

    sensors -> Outlet -> MessageQueue -> Packer -> PagedRing -> Sender -> Uplink/Link -> broker

and every one of them gets what it needs in its constructor. All state is theirs: the tasks hold
none, so that the event loop can be stopped and started again with nothing lost.
"""

import asyncio
import gc
import json
import random
import time

from micropython import const

from firmware import report
from firmware.backoff import Backoff
from firmware.hardware_watchdog import HardwareWatchdog
from firmware.link import Link
from firmware.log import Log
from firmware.network_up import HostNetwork, Wifi, time_of_day
from firmware.outlet import Outlet
from firmware.sensors.board import Board
from firmware.sensors.plant import Plant
from firmware.supervisor import Supervisor
from firmware.uplink import Uplink
from millpond.batch import make_writer
from millpond.clock import Clock, add, diff
from millpond.health import HealthJudge
from millpond.ledger import Ledger
from millpond.message import CRITICAL, LOW, QOS_AT_LEAST_ONCE, TopicTable, make_tag
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.sender import Sender
from millpond.watchdog import DeliveryWatchdog

_LANES = CRITICAL + 1
_PACK_MS = const(50)
_PACK_LIMIT = const(64)  # items packed in one turn of the loop
_TICK_MS = const(100)
_WATCH_MS = const(1000)
_SLACK_MS = const(10000)  # how much longer than its period a task may be silent


class App:
    """The whole of millpond on one board; `config` is a `firmware.settings.Config`.

    `wlan` is the Wi-Fi station or None for the host's network; `wdt` the class `machine.WDT` or
    None. `run` is the main coroutine; `stop` ends it; it may be run again.
    """

    def __init__(self, config, wlan=None, wdt=None):
        self.config = config
        self.name = config["device.name"]
        self.clock = Clock(time.ticks_ms)
        self.log = Log(config["log.level"], self.clock)
        self.network = self._make_network(wlan)
        self._make_core()
        self._make_uplink()
        self.hardware_watchdog = HardwareWatchdog(wdt, config["watchdog.hardware_timeout_s"])
        self.supervisor = Supervisor(self.clock, self.log)
        self.sampling = True
        self.running = False
        self.worst_lag_ms = 0
        self._lag_ms = 0
        self.advice = []
        self._judges = (HealthJudge("the intake"), HealthJudge("the ring"))
        self._stopped = None
        self._add_tasks()

    # -- composition -----------------------------------------------------------------------------

    def _make_network(self, wlan):
        ssid = self.config["wifi.ssid"]
        if wlan and ssid:
            return Wifi(wlan, ssid, self.config["wifi.password"], self.log)
        return HostNetwork()

    def _make_core(self):
        c = self.config
        topics = TopicTable(c["intake.topics"])
        self.queue = MessageQueue(
            c["intake.slots"],
            c["intake.slot_bytes"],
            topics,
            c["intake.overflow"],
            self.log.warning,
        )
        self.ledger = Ledger()
        self.ring = PagedRing(
            c["ring.bytes"], c["ring.page_bytes"], _LANES, on_drop=self.ledger.lost
        )
        data_topic = topics.index(self._topic("data"))
        alert_topic = topics.index(self._topic("alert"))
        self.packer = Packer(
            self.queue,
            self.ring,
            self.clock,
            self.ledger,
            lambda: make_writer(c["batch.encoding"], c["device.type"], c["device.serial"]),
            data_topic,
            c["mqtt.qos"],
            c["batch.max_readings"],
            c["batch.max_age_ms"],
        )
        self.sender = Sender(
            self.ring,
            topics,
            c["mqtt.ack_timeout_s"],
            c["send.rate_limit"],
            self.ledger.delivered,
            self.packer.prepare,
        )
        self.delivery_watchdog = DeliveryWatchdog(
            c["watchdog.delivery_timeout_s"], self.clock.now()
        )
        self._health_tag = make_tag(topics.index(self._topic("health")), QOS_AT_LEAST_ONCE, False)
        self.outlets = [
            (sensor, Outlet(sensor, self.queue, self.clock, data_topic, alert_topic))
            for sensor in self._sensors()
        ]

    def _sensors(self):
        c = self.config
        sensors = []
        if c["plant.enabled"]:
            sensors.append(
                Plant(c["plant.period_ms"], c["device.serial"], c["plant.alert_every_s"])
            )
        if c["board.enabled"]:
            sensors.append(
                Board(c["board.period_ms"], gc.mem_free, self._take_lag, self.ring.fill_percent)
            )
        return sensors

    def _make_uplink(self):
        c = self.config
        announcement = self._announcement()
        self.link = Link(
            self.name,
            c["mqtt.host"],
            c["mqtt.port"],
            c["mqtt.user"] or None,
            c["mqtt.password"] or None,
            c["mqtt.keepalive_s"],
            largest=max(self.ring.page_payload, len(announcement)) + len(self._topic("status")) + 8,
            connect_timeout_s=c["mqtt.connect_timeout_s"],
        )
        self.link.set_last_will(self._topic("status"), b'{"state": "offline"}', True, 1)
        self.uplink = Uplink(
            self.link,
            self.sender,
            self.ring,
            self.clock,
            Backoff(
                1000 * c["mqtt.backoff_min_s"], 1000 * c["mqtt.backoff_max_s"], random.getrandbits
            ),
            self.log,
            c["mqtt.clean_session"],
            self.network.up,
            lambda: self._greetings(announcement),
        )

    def _topic(self, last):
        return "{}/{}/{}".format(self.config["mqtt.prefix"], self.name, last)

    def _announcement(self):
        """The device's tags, as a host needs them to name what a batch holds (SPEC §5)."""
        c = self.config
        tags = [tag for sensor, _ in self.outlets for tag in sensor.tags]
        return json.dumps(
            {
                "device": self.name,
                "device_type": c["device.type"],
                "serial": c["device.serial"],
                "encoding": c["batch.encoding"],
                "tags": tags,
            }
        ).encode()

    def _greetings(self, announcement):
        birth = {"state": "online", "since": self.clock.unix(), "connects": self.uplink.connects}
        yield self._topic("status"), json.dumps(birth).encode()
        yield self._topic("tags"), announcement

    # -- tasks -----------------------------------------------------------------------------------

    def _add_tasks(self):
        add = self.supervisor.add
        for sensor, outlet in self.outlets:
            add(sensor.name, self._sampler(sensor, outlet), 2 * sensor.period_ms + _SLACK_MS)
        add("packer", self._pack, _SLACK_MS)
        add("ticker", self._tick, _SLACK_MS)
        add("network", self.network.run, _SLACK_MS)
        add("link", self.uplink.run, 1000 * self.config["mqtt.connect_timeout_s"] + _SLACK_MS)
        add("health", self._report_health, _SLACK_MS)
        add("watcher", self._watch, _SLACK_MS)
        if self.config["log.status_s"]:
            add("status", self._log_status, _SLACK_MS)

    def _sampler(self, sensor, outlet):
        """The task that reads one sensor on its period, without drift."""

        async def run(beat):
            due = self.clock.now()
            while True:
                beat()
                if self.sampling:
                    outlet.take()
                due = await self._sleep_until(add(due, sensor.period_ms))

        return run

    async def _sleep_until(self, due):
        """Sleep until `due`, which is given back, or the present where `due` is long gone."""
        now = self.clock.now()
        left = diff(due, now)
        await asyncio.sleep_ms(max(0, left))
        return due if left > -1000 else now

    async def _pack(self, beat):
        expired_at = self.clock.now()
        while True:
            beat()
            now = self.clock.now()
            self.ring.seconds = self.clock.seconds
            self.packer.poll(now, self.uplink.is_up(), _PACK_LIMIT)
            self.uplink.kick()
            if diff(now, expired_at) >= 1000:
                expired_at = now
                self.queue.expire(now)
            await asyncio.sleep_ms(_PACK_MS)

    async def _tick(self, beat):
        while True:
            beat()
            self.uplink.tick()
            due = add(self.clock.now(), _TICK_MS)
            await asyncio.sleep_ms(_TICK_MS)
            lag = diff(self.clock.now(), due)
            self._lag_ms = max(self._lag_ms, lag)
            self.worst_lag_ms = max(self.worst_lag_ms, lag)

    def _take_lag(self):
        lag = self._lag_ms
        self._lag_ms = 0
        return lag

    async def _report_health(self, beat):
        left_s = self.config["health.period_s"]
        while True:
            beat()
            await asyncio.sleep_ms(1000)
            left_s -= 1
            if left_s <= 0:
                left_s = self.config["health.period_s"]
                message = report.health(self, self.ring.page_payload)
                self.packer.put(message, LOW, self._health_tag)

    async def _log_status(self, beat):
        left_s = 0
        while True:
            beat()
            if left_s <= 0:
                left_s = self.config["log.status_s"]
                self.log.info(report.line(self))
            left_s -= 1
            await asyncio.sleep_ms(1000)

    async def _watch(self, beat):
        """Both watchdogs: of the deliveries, and of the tasks."""
        checked_at = self.clock.now()
        while True:
            beat()
            now = self.clock.now()
            if diff(now, checked_at) >= 1000 * self.config["watchdog.check_period_s"]:
                checked_at = now
                self._check_delivery(now)
                self._judge(now)
            unwell = self.supervisor.unwell(now)
            if not unwell:
                self.hardware_watchdog.feed()
            for line in unwell:
                self.log.warning(line)
            if not self.clock.known:
                self._set_clock()
            await asyncio.sleep_ms(_WATCH_MS)

    def _check_delivery(self, now):
        pending = self.ring.messages() > 0
        dog = self.delivery_watchdog
        if dog.check(now, self.uplink.is_up(), pending, self.sender.delivered):
            self.uplink.give_up(
                "nothing delivered for {} s".format(self.config["watchdog.delivery_timeout_s"])
            )

    def _judge(self, now):
        """Ask how the two stores are doing, and keep the advice for the report (Q10)."""
        ring = self.ring
        intake, pages = self._judges
        in_use = ring.pages - ring.pages_free()
        found = intake.judge(now, self.queue)
        found += pages.weigh(now, in_use, ring.pages, report.ring_totals(ring))
        self.advice = [text for _, text in found]

    def _set_clock(self):
        unix = time_of_day()
        if unix is not None:
            self.clock.set_unix(unix)

    # -- for the console -------------------------------------------------------------------------

    async def run(self):
        """Run all tasks until `stop` is called."""
        self._stopped = asyncio.Event()
        self._set_clock()
        asyncio.get_event_loop().set_exception_handler(self._on_stray_exception)
        self.hardware_watchdog.guard()
        self.running = True
        self.supervisor.start()
        try:
            await self._stopped.wait()
        finally:
            self.running = False
            self.hardware_watchdog.hold()
            await self.supervisor.stop()

    def stop(self):
        """End `run` at the next turn of the loop."""
        self._stopped.set()

    def _on_stray_exception(self, loop, context):
        self.log.exception("stray task", context["exception"])

    def stop_sensors(self):
        """Read no sensor from now on, while what was read is still delivered."""
        self.sampling = False

    def start_sensors(self):
        """Read the sensors again."""
        self.sampling = True

    def counters(self):
        """Where every item is: produced = delivered + all of dropped + held."""
        return report.items(self)

    def status_text(self):
        """The status page."""
        return report.page(report.gauges(self))
