"""Reporter: says how the application is doing, unasked, on a period.

What it says is `report`'s knowledge: the health message, which goes into the ring in the lowest
lane, and a line for the console. A period that is made shorter counts at once.
"""

import asyncio

from firmware import report
from millpond.message import LOW


class Reporter:
    """Reports on `app`; the health message gets `health_tag` (R2)."""

    def __init__(self, app, health_tag):
        self._app = app
        self._health_tag = health_tag

    async def publish_health(self, beat):
        """The task for the health message, which comes at the end of each period."""
        await self._every("health.period_s", self._app.config["health.period_s"], self._put, beat)

    async def log_line(self, beat):
        """The task for the line on the console, which comes at the beginning of each period."""
        await self._every("log.status_s", 0, self._log, beat)

    def _put(self):
        app = self._app
        app.packer.put(report.health(app, app.ring.page_payload), LOW, self._health_tag)

    def _log(self):
        self._app.log.info(report.line(self._app))

    async def _every(self, key, left_s, act, beat):
        """Act in `left_s` seconds, and then on the period of `key`, as the configuration has it."""
        while True:
            beat()
            left_s = min(left_s, self._app.config[key])
            if left_s <= 0:
                left_s = self._app.config[key]
                act()
            left_s -= 1
            await asyncio.sleep_ms(1000)
