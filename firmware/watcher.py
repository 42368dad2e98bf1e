"""Watcher: looks after what could go wrong without anybody noticing (SPEC §7).

Several times within the hardware watchdog's time-out it asks the supervisor whether every task is
well, and feeds the watchdog only then. On its own period it asks the DeliveryWatchdog whether the
link still delivers, and has the Advisor look at intake and ring (Q10). As long as nobody has set
the time it asks the port's clock.
"""

import asyncio

from micropython import const

from millpond.clock import diff

_PERIOD_MS = const(1000)


class Watcher:
    """Watches the tasks of `supervisor`, and whether `uplink` delivers what `ring` holds.

    `delivery` and `hardware` are the two watchdogs; `time_of_day()` gives the Unix time, or None.
    """

    def __init__(
        self,
        config,
        clock,
        log,
        supervisor,
        uplink,
        sender,
        ring,
        advisor,
        delivery,
        hardware,
        time_of_day,
    ):
        self._config = config
        self._clock = clock
        self._log = log
        self._supervisor = supervisor
        self._uplink = uplink
        self._sender = sender
        self._ring = ring
        self._advisor = advisor
        self._delivery = delivery
        self._hardware = hardware
        self._time_of_day = time_of_day
        hardware_ms = 1000 * config["watchdog.hardware_timeout_s"]
        self._period_ms = min(_PERIOD_MS, hardware_ms // 4) if hardware_ms else _PERIOD_MS
        self._known = []

    async def run(self, beat):
        """Watch, for ever."""
        checked_at = self._clock.now()
        while True:
            beat()
            now = self._clock.now()
            self._look_at_tasks(now)
            if diff(now, checked_at) >= 1000 * self._config["watchdog.check_period_s"]:
                checked_at = now
                self._look_at_deliveries(now)
                self._advisor.look(now)
            self.set_clock()
            await asyncio.sleep_ms(self._period_ms)

    def _look_at_tasks(self, now):
        unwell = self._supervisor.unwell(now)
        if not unwell:
            self._hardware.feed()
        if len(unwell) != len(self._known):
            for line in unwell:
                self._log.warning(line)
            self._known = unwell

    def _look_at_deliveries(self, now):
        uplink = self._uplink
        pending = self._ring.messages() > 0
        progress = self._sender.delivered + uplink.connects
        if self._delivery.check(now, uplink.is_up(), pending, progress):
            timeout_s = self._config["watchdog.delivery_timeout_s"]
            uplink.give_up("nothing delivered for {} s".format(timeout_s))

    def set_clock(self):
        """Take the time of day from the port's clock, once that has it."""
        if not self._clock.known:
            unix = self._time_of_day()
            if unix is not None:
                self._clock.set_unix(unix)
