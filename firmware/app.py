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
from firmware.opening import Opening
from firmware.outlet import Outlet
from firmware.receipts import Receipts
from firmware.resolver import Resolver
from firmware.sampler import Sampler
from firmware.sensors.board import Board
from firmware.sensors.plant import Plant
from firmware.status_page import page
from firmware.supervisor import Supervisor
from firmware.uplink import Uplink
from firmware.watcher import Watcher
from millpond.batch import make_writer
from millpond.clock import Clock, add, diff
from millpond.ledger import Ledger
from millpond.message import CRITICAL, HIGH, LOW, NORMAL, QOS_AT_LEAST_ONCE, TopicTable, make_tag
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.sender import Sender
from millpond.watchdog import DeliveryWatchdog

_LANES = CRITICAL + 1
_PACK_MS = const(50)
_COMMANDS_MS = const(50)
_PACK_LIMIT = const(64)  # items packed in one turn of the loop
_TICK_MS = const(100)
_EXPIRE_MS = const(1000)
_SLACK_MS = const(10000)  # how much longer than its period a task may be silent


class App:
    """The whole of millpond on one board; `config` is a `firmware.settings.Config`.

    `wlan` is the Wi-Fi station or None for the host's network; `wdt` the class `machine.WDT` or
    None; `started_by` the cause of the last reset in words; `reset` a function that resets the
    board, or None. `run` is the main coroutine; `stop` ends it; it may be run again.
    """

    def __init__(self, config, wlan=None, wdt=None, started_by="", reset=None):
        self.config = config
        self.name = config["device.name"]
        self.started_by = started_by
        self.clock = Clock(time.ticks_ms)
        self.log = Log(config["log.level"], self.clock)
        self.network = self._make_network(wlan)
        self._make_intake()
        self._make_ring()
        self.samplers = self._make_samplers()
        self._make_uplink()
        self.hardware_watchdog = HardwareWatchdog(wdt, config["watchdog.hardware_timeout_s"])
        self._make_watcher()
        self._reset = reset
        self._make_commands()
        self.running = False
        self.snapshot = None
        self.worst_lag_ms = 0
        self._lag_ms = 0
        self._stopped = None
        self._add_tasks()

    # -- composition -----------------------------------------------------------------------------

    def _make_network(self, wlan):
        ssid = self.config["wifi.ssid"]
        if wlan and ssid:
            return Wifi(wlan, ssid, self.config["wifi.password"], self.log)
        return HostNetwork()

    def _make_intake(self):
        c = self.config
        self.topics = TopicTable(c["intake.topics"])
        self._data_topic = self.topics.index(self._topic("data"))
        self._alert_topic = self.topics.index(self._topic("alert"))
        health_topic = self.topics.index(self._topic("health"))
        self._health_tag = make_tag(health_topic, QOS_AT_LEAST_ONCE, False)
        self.queue = MessageQueue(
            c["intake.slots"],
            c["intake.slot_bytes"],
            self.topics,
            c["intake.overflow"],
            self.log.warning,
        )

    def _make_ring(self):
        c = self.config
        self.ledger = Ledger()
        self.receipts = Receipts(self.ledger, self.topics, self.clock)
        self.ring = PagedRing(
            c["ring.bytes"], c["ring.page_bytes"], _LANES, on_drop=self.receipts.lost
        )
        for lane in range(_LANES):
            self.ring.max_age_s[lane] = c["ring.max_age_s"]
        self.packer = Packer(
            self.queue,
            self.ring,
            self.clock,
            self.ledger,
            lambda: make_writer(c["batch.encoding"], c["device.type"], c["device.serial"]),
            self._data_topic,
            c["mqtt.qos"],
            c["batch.max_readings"],
            c["batch.max_age_ms"],
        )
        self.sender = Sender(
            self.ring,
            self.topics,
            c["mqtt.ack_timeout_s"],
            c["send.rate_limit"],
            self.receipts.delivered,
            self.packer.prepare,
            c["mqtt.max_retries"],
        )
        self.receipts.hand_to(self.packer, self._poll)

    def _make_samplers(self):
        samplers = []
        owners = {}
        for sensor in self._sensors():
            for tag in sensor.tags:
                if tag[0] in owners:
                    text = "tag id {} of sensor {}: sensor {} has it already"
                    raise ValueError(text.format(tag[0], sensor.name, owners[tag[0]]))
                owners[tag[0]] = sensor.name
            outlet = Outlet(
                sensor, self.queue, self.clock, self._data_topic, self._alert_topic, self.log
            )
            samplers.append(Sampler(sensor, outlet, self.clock, self.log, self._pack_now))
        return samplers

    def _sensors(self):
        """The sensors of this board: name yours here."""
        c = self.config
        sensors: list = []
        self.plant = None
        if c["plant.enabled"]:
            self.plant = Plant(c["plant.period_ms"], c["device.serial"], c["plant.alert_every_s"])
            sensors.append(self.plant)
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
            resolve=self._make_resolver().resolve,
            tls=self._make_tls(),
        )
        self.link.set_last_will(self._topic("status"), b'{"state": "offline"}', True, 1)
        self.opening = Opening(
            self.link,
            self.sender,
            self.clock,
            self.log,
            lambda: self._greetings(announcement),
            ((self._topic("cmd"), QOS_AT_LEAST_ONCE),) if c["commands.enabled"] else (),
        )
        self.uplink = Uplink(
            self.link,
            self.sender,
            self.ring,
            self.clock,
            Backoff(
                1000 * c["mqtt.backoff_min_s"], 1000 * c["mqtt.backoff_max_s"], random.getrandbits
            ),
            self.log,
            self.opening,
            c["mqtt.clean_session"],
            self._obstacle,
        )

    def _make_resolver(self):
        c = self.config
        named = c["network.dns"].replace(",", " ").split()
        return Resolver(
            (lambda: named) if named else self.network.name_servers,
            self.clock,
            self.log,
            random.getrandbits,
            800 * c["mqtt.connect_timeout_s"],  # its own words come before the link's deadline
            self.network.hosts,
        )

    def _make_tls(self):
        c = self.config
        if not c["mqtt.tls"]:
            return None
        from firmware.tls import Tls  # not every port has TLS

        return Tls(
            c["mqtt.ca_file"],
            c["mqtt.cert_file"],
            c["mqtt.key_file"],
            c["mqtt.tls_verify"],
            c["mqtt.tls_name"],
        )

    def _obstacle(self):
        """Why it is no use to connect yet, or None."""
        if not self.network.up():
            return "no network"
        if self.config["mqtt.tls"] and self.config["mqtt.tls_verify"] and not self.clock.known:
            return "the time of day is not known, without which no certificate can be judged"
        return None

    def _topic(self, last):
        return "{}/{}/{}".format(self.config["mqtt.prefix"], self.name, last)

    def _announcement(self):
        """The device's tags, as a host needs them to name what a batch holds (SPEC §5)."""
        c = self.config
        tags = [tag for sampler in self.samplers for tag in sampler.tags]
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
        birth = {
            "state": "online",
            "since": self.clock.unix(),
            "connects": self.uplink.connects,
            "started_by": self.started_by,
        }
        yield self._topic("status"), json.dumps(birth).encode()
        yield self._topic("tags"), announcement

    def _make_watcher(self):
        self.supervisor = Supervisor(self.clock, self.log)
        self.delivery_watchdog = DeliveryWatchdog(
            self.config["watchdog.delivery_timeout_s"], self.clock.now()
        )
        parts = (
            self.uplink,
            self.sender,
            self.queue,
            self.ring,
            self.delivery_watchdog,
            self.hardware_watchdog,
            self.supervisor,
        )
        self.watcher = Watcher(self.config, self.clock, self.log, parts, time_of_day)

    def _make_commands(self):
        self.commands = None
        if not self.config["commands.enabled"]:
            return
        from firmware.commands import Commands
        from firmware.run_time import RunTime

        topic = self._topic("cmd/reply")
        self.topics.index(topic)
        self.commands = Commands(
            self._topic("cmd"),
            RunTime(self, self._reset is not None),
            self.clock,
            lambda reply, on_complete: self.publish(topic, reply, HIGH, on_complete),
            self.ring.page_payload,
            self.log,
        )
        self.link.on_message = self.commands.take

    # -- tasks -----------------------------------------------------------------------------------

    def _add_tasks(self):
        add = self.supervisor.add
        for sampler in self.samplers:
            add(sampler.name, sampler.run, 2 * sampler.period_ms + _SLACK_MS)
        add("packer", self._pack, _SLACK_MS)
        add("ticker", self._tick, _SLACK_MS)
        add("network", self.network.run, _SLACK_MS)
        add("link", self.uplink.run, 1000 * self.config["mqtt.connect_timeout_s"] + _SLACK_MS)
        add("health", self._report_health, _SLACK_MS)
        add("watcher", self.watcher.run, _SLACK_MS)
        if self.commands:
            add("commands", self._obey, _SLACK_MS)
        if self.config["log.status_s"]:
            add("status", self._log_status, _SLACK_MS)

    def _poll(self):
        self.packer.poll(self.clock.now(), self.uplink.is_up(), _PACK_LIMIT)

    def _pack_now(self):
        """Bring what the intake holds to the ring, and send what may be sent."""
        self._poll()
        self.uplink.kick()

    async def _pack(self, beat):
        """What time alone brings: batches that are old enough, messages that have expired."""
        expired_at = self.clock.now()
        while True:
            beat()
            self.receipts.work()
            self._pack_now()
            now = self.clock.now()
            self.ring.seconds = self.clock.seconds
            if diff(now, expired_at) >= _EXPIRE_MS:
                expired_at = now
                self.queue.expire(now)
                self.ring.expire()
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
            left_s = min(left_s, self.config["health.period_s"]) - 1
            if left_s <= 0:
                left_s = self.config["health.period_s"]
                message = report.health(self, self.ring.page_payload)
                self.packer.put(message, LOW, self._health_tag)

    async def _obey(self, beat):
        while True:
            beat()
            if self.commands and self.commands.work() and self._reset:
                self.log.warning("reset by a command")
                # Without leave of the broker, which so announces the board as offline.
                self.uplink.give_up("reset by a command")
                await asyncio.sleep_ms(_TICK_MS)
                self._reset()
            await asyncio.sleep_ms(_COMMANDS_MS)

    async def _log_status(self, beat):
        left_s = 0
        while True:
            beat()
            if left_s <= 0:
                left_s = self.config["log.status_s"]
                self.log.info(report.line(self))
            left_s -= 1
            await asyncio.sleep_ms(1000)

    # -- for the console -------------------------------------------------------------------------

    async def run(self):
        """Run all tasks until `stop` is called."""
        self._stopped = asyncio.Event()
        self.watcher.set_clock()
        asyncio.get_event_loop().set_exception_handler(self._on_stray_exception)
        self.hardware_watchdog.guard()
        self.running = True
        self.supervisor.start()
        try:
            await self._stopped.wait()
        finally:
            self._leave()
            await self.supervisor.stop()

    def stop(self):
        """End `run` at the next turn of the loop."""
        self._stopped.set()

    def abandon(self):
        """The event loop is gone, interrupted between two instructions: close what it left open."""
        self._leave()
        self.link.close()
        self.sender.disconnected()

    def _leave(self):
        self.snapshot = report.gauges(self)
        self.running = False
        self.hardware_watchdog.hold()

    def _on_stray_exception(self, loop, context):
        self.log.exception("stray task", context["exception"])

    def publish(
        self,
        topic,
        payload,
        priority=NORMAL,
        on_complete=None,
        qos=QOS_AT_LEAST_ONCE,
        retained=False,
    ):
        """Publish a message of the application's own; its id, or 0 when it was refused.

        Without `on_complete` it goes through the intake, like a reading. With it the message goes
        to the ring, and `on_complete(payload, result, reason, None)` is called once: SUCCESS when
        it was acknowledged, ERROR with the reason when it was dropped, TIMEOUT after an hour,
        CANCELLED at `close` (results of `millpond.dispatch`, S8). At most 16 of them can be on
        their way. ValueError names what is wrong with topic, payload, priority or QoS.
        """
        if on_complete:
            return self.receipts.publish(topic, payload, priority, qos, retained, on_complete)
        now = self.clock.now()
        return self.queue.enqueue(topic, payload, qos, priority, retained, 0, now)

    def close(self):
        """Shut down for good: tell whoever waits for a receipt that it is CANCELLED."""
        if self.commands:
            self.commands.close()
        self.receipts.close()

    def flush(self):
        """Send now what the intake and open batches hold."""
        self._poll()
        self.packer.flush()
        self.uplink.kick()

    def stop_sensors(self):
        """Read no sensor from now on, while what was read is still delivered."""
        for sampler in self.samplers:
            sampler.paused = True

    def start_sensors(self):
        """Read the sensors again."""
        for sampler in self.samplers:
            sampler.paused = False

    def memory(self):
        """The heap, in bytes; what is used may be garbage."""
        return {"free": gc.mem_free(), "used": gc.mem_alloc()}

    def counters(self):
        """Where every item is: produced = delivered + all of dropped + held."""
        return report.items(self)

    def status_text(self):
        """The status page."""
        return page(report.for_page(self))
