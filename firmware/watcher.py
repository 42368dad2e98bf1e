"""Watcher: looks after what could go wrong without anybody noticing (SPEC §7).

Several times within the hardware watchdog's time-out it asks the supervisor whether every task is
well, and feeds the watchdog only then. On its own period it asks the DeliveryWatchdog whether the
link still delivers, and the health judges how intake and ring are doing (Q10). A link that is lost
again and again is never down for long, so that is looked for too. As long as nobody has set the
time it asks the port's clock.
"""

import asyncio

from micropython import const

from millpond.clock import diff
from millpond.health import HealthJudge

_PERIOD_MS = const(1000)
_WINDOW_MS = const(60000)
_UNSTEADY = const(3)  # losses of the link in a window


class Watcher:
    """Watches `uplink`, `queue` and `ring`; `advice` is what the judges last said, in words."""

    def __init__(self, config, clock, log, parts, time_of_day):
        self._clock = clock
        self._log = log
        self._uplink, self._sender, self._queue, self._ring = parts[:4]
        self._delivery, self._hardware, self._supervisor = parts[4:]
        self._time_of_day = time_of_day
        self._config = config
        hardware_ms = 1000 * config["watchdog.hardware_timeout_s"]
        self._period_ms = min(_PERIOD_MS, hardware_ms // 4) if hardware_ms else _PERIOD_MS
        self._judges = (HealthJudge("the intake"), HealthJudge("the ring"))
        self._known = []
        self._losses = 0  # when the window began
        self._window_at = clock.now()
        self._unsteady = []
        self.advice = []

    async def run(self, beat):
        """Watch, for ever."""
        checked_at = self._window_at = self._clock.now()
        while True:
            beat()
            now = self._clock.now()
            self._look_at_tasks(now)
            if diff(now, checked_at) >= 1000 * self._config["watchdog.check_period_s"]:
                checked_at = now
                self._look_at_deliveries(now)
                self._judge(now)
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

    def _judge(self, now):
        ring = self._ring
        intake, pages = self._judges
        found = intake.judge(now, self._queue)
        in_use = ring.pages - ring.pages_free()
        found += pages.weigh(now, in_use, ring.pages, ring_totals(ring))
        self.advice = self._judge_link(now) + [text for _, text in found]

    def _judge_link(self, now):
        """What there is to say of the losses of the link, a line or none."""
        uplink = self._uplink
        ms = diff(now, self._window_at)
        lost = uplink.losses - self._losses
        if lost >= _UNSTEADY:
            text = "the link was lost {} times in {} s, last: {}"
            self._unsteady = [text.format(lost, ms // 1000, uplink.reason)]
        elif ms >= _WINDOW_MS:
            self._unsteady = []
        if ms >= _WINDOW_MS:
            self._losses = uplink.losses
            self._window_at = now
        return self._unsteady

    def set_clock(self):
        """Take the time of day from the port's clock, once that has it."""
        if not self._clock.known:
            unix = self._time_of_day()
            if unix is not None:
                self._clock.set_unix(unix)


def ring_totals(ring):
    """Messages offered to the ring, lost by it and delivered from it, and no waiting times."""
    lost = sum(ring.stolen) + sum(ring.expired) + sum(ring.dropped) + sum(ring.refused)
    acked = sum(ring.acked)
    return acked + lost + ring.messages(), lost, acked, 0
