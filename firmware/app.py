"""App: the application put together from its configuration, and its tasks.

This is the one place where objects meet. Data flows one way through them,

    sensors -> Outlet -> MessageQueue -> Packer -> PagedRing -> Sender -> Uplink/Link -> broker

and every one of them gets what it needs in its constructor. All that must not be lost is theirs: a
task knows no more than when it did something last, and App itself whether it runs and how things
stood when it was stopped. So the event loop can be stopped and started again with nothing lost.
"""

import asyncio
import gc
import random
import time

from micropython import const

from firmware import report
from firmware.address import listed
from firmware.advisor import Advisor
from firmware.backoff import Backoff
from firmware.datagram import exchange
from firmware.device import LAST_WILL, Device, tags_of
from firmware.hardware_watchdog import HardwareWatchdog
from firmware.link import Link
from firmware.log import Log
from firmware.network_up import HostNetwork, Wifi
from firmware.opening import Opening
from firmware.outlet import Outlet
from firmware.port_clock import PortClock, time_of_day
from firmware.pump import Pump
from firmware.receipts import Receipts
from firmware.reporter import Reporter
from firmware.resolver import Resolver
from firmware.sampler import Sampler
from firmware.sensors.board import Board
from firmware.sensors.plant import Plant
from firmware.status_page import page
from firmware.supervisor import Supervisor
from firmware.ticker import Ticker
from firmware.time_server import TimeServer
from firmware.uplink import Uplink
from firmware.watcher import Watcher
from millpond.batch import make_writer
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import CRITICAL, HIGH, NORMAL, QOS_AT_LEAST_ONCE, TopicTable, make_tag
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.sender import Sender
from millpond.watchdog import DeliveryWatchdog

_LANES = CRITICAL + 1
_COMMANDS_MS = const(50)
_LEAVE_MS = const(100)  # for the end of the connection, before a reset
_SLACK_MS = const(10000)  # how much longer than its period a task may be silent


class App:
    """The whole of millpond on one board; `config` is a `firmware.settings.Config`.

    `wlan` is the Wi-Fi station or None for the host's network; `wdt` the class `machine.WDT` or
    None; `started_by` the cause of the last reset in words; `reset` a function that resets the
    board, or None; `rtc` the class `machine.RTC` or None. `run` is the main coroutine; `stop` ends
    it; it may be run again.
    """

    def __init__(self, config, wlan=None, wdt=None, started_by="", reset=None, rtc=None):
        self.config = config
        self.name = config["device.name"]
        self.started_by = started_by
        self.clock = Clock(time.ticks_ms)
        self.log = Log(config["log.level"], self.clock)
        self.network = self._make_network(wlan)
        self.device = Device(config, started_by)
        self._make_intake()
        self._make_ring()
        self._make_time_server(rtc)
        sensors = self._sensors()
        self._make_uplink(self.device.announcement(tags_of(sensors)))
        self._make_pump()
        self._make_samplers(sensors)
        self.hardware_watchdog = HardwareWatchdog(wdt, config["watchdog.hardware_timeout_s"])
        self._make_watcher()
        self._reset = reset
        self._make_commands()
        self.running = False
        self.snapshot = None
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
        self._data_topic = self.topics.index(self.device.data)
        self._alert_topic = self.topics.index(self.device.alert)
        health = self.topics.index(self.device.health)
        self._health_tag = make_tag(health, QOS_AT_LEAST_ONCE, False)
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
                Board(
                    c["board.period_ms"],
                    gc.mem_free,
                    lambda: self.ticker.take_lag(),
                    self.ring.fill_percent,
                )
            )
        return sensors

    def _make_uplink(self, announcement):
        c = self.config
        self.link = Link(
            self.name,
            c["mqtt.host"],
            c["mqtt.port"],
            c["mqtt.user"] or None,
            c["mqtt.password"] or None,
            c["mqtt.keepalive_s"],
            largest=max(self.ring.page_payload, len(announcement)) + self.device.topic_bytes(),
            connect_timeout_s=c["mqtt.connect_timeout_s"],
            resolve=self._make_resolver(lambda: self.uplink.connects).resolve,
            tls=self._make_tls(),
        )
        self.link.set_last_will(self.device.status, LAST_WILL, True, QOS_AT_LEAST_ONCE)
        self.opening = Opening(
            self.link,
            self.sender,
            self.clock,
            self.log,
            lambda: self._greetings(announcement),
            ((self.device.cmd, QOS_AT_LEAST_ONCE),) if c["commands.enabled"] else (),
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

    def _make_resolver(self, connects):
        c = self.config
        named = listed(c["network.dns"])
        return Resolver(
            (lambda: named) if named else self.network.name_servers,
            self.clock,
            self.log,
            random.getrandbits,
            800 * c["mqtt.connect_timeout_s"],  # its own words come before the link's deadline
            self.network.hosts,
            connects,
        )

    def _make_time_server(self, rtc):
        self.time_server = TimeServer(
            self.config["network.ntp"],
            self.clock,
            PortClock(rtc),
            self._make_resolver(lambda: 0).resolve,
            exchange,
            self.network.up,
            self.log,
            random.getrandbits,
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
            return "TLS waits for the time of day: {}".format(self.time_server.why_unknown())
        return None

    def _greetings(self, announcement):
        yield self.device.status, self.device.birth(self.clock.unix(), self.uplink.connects)
        yield self.device.tags, announcement

    def _make_pump(self):
        self.pump = Pump(self.queue, self.packer, self.ring, self.receipts, self.uplink, self.clock)
        self.receipts.hand_to(self.packer, self.pump.poll)
        self.ticker = Ticker(self.uplink, self.clock)

    def _make_samplers(self, sensors):
        self.samplers = []
        for sensor in sensors:
            outlet = Outlet(
                sensor, self.queue, self.clock, self._data_topic, self._alert_topic, self.log
            )
            self.samplers.append(Sampler(sensor, outlet, self.clock, self.log, self.pump.now))

    def _make_watcher(self):
        self.supervisor = Supervisor(self.clock, self.log)
        self.delivery_watchdog = DeliveryWatchdog(
            self.config["watchdog.delivery_timeout_s"], self.clock.now()
        )
        self.advisor = Advisor(self.queue, self.ring, self.uplink)
        self.watcher = Watcher(
            self.config,
            self.clock,
            self.log,
            self.supervisor,
            self.uplink,
            self.sender,
            self.ring,
            self.advisor,
            self.delivery_watchdog,
            self.hardware_watchdog,
            time_of_day,
        )

    def _make_commands(self):
        self.commands = None
        if not self.config["commands.enabled"]:
            return
        from firmware.commands import Commands
        from firmware.run_time import RunTime

        reply_topic = self.device.reply
        self.topics.index(reply_topic)
        self.commands = Commands(
            self.device.cmd,
            RunTime(self, self._reset is not None),
            self.clock,
            lambda reply, on_complete: self.publish(reply_topic, reply, HIGH, on_complete),
            self.ring.page_payload,
            self.log,
        )
        self.link.on_message = self.commands.take

    # -- tasks -----------------------------------------------------------------------------------

    def _add_tasks(self):
        c = self.config
        add = self.supervisor.add
        reporter = Reporter(self, self._health_tag)
        for sampler in self.samplers:
            add(sampler.name, sampler.run, 2 * sampler.period_ms + _SLACK_MS)
        add("packer", self.pump.run, _SLACK_MS)
        add("ticker", self.ticker.run, _SLACK_MS)
        add("network", self.network.run, _SLACK_MS)
        add("time", self.time_server.run, 1000 * c["mqtt.connect_timeout_s"] + _SLACK_MS)
        add("link", self.uplink.run, 1000 * c["mqtt.connect_timeout_s"] + _SLACK_MS)
        add("health", reporter.publish_health, _SLACK_MS)
        add("watcher", self.watcher.run, _SLACK_MS)
        if self.commands:
            add("commands", self._obey, _SLACK_MS)
        if c["log.status_s"]:
            add("status", reporter.log_line, _SLACK_MS)

    async def _obey(self, beat):
        while True:
            beat()
            if self.commands.work() and self._reset:
                self.log.warning("reset by a command")
                # Without leave of the broker, which so announces the board as offline.
                self.uplink.give_up("reset by a command")
                await asyncio.sleep_ms(_LEAVE_MS)
                self._reset()
            await asyncio.sleep_ms(_COMMANDS_MS)

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
        self.pump.flush()

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
