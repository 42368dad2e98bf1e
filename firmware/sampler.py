"""Sampler: reads one sensor on its period, whatever the sensor does.

A read that raises is logged with its traceback the first, second, fourth, eighth … time in a row,
counted, and shown in the status; the sensor is read again when its period is over, so a part that
is unplugged and plugged in again comes back by itself. A read that takes long held everything up
(nothing else runs meanwhile), and is named too.
"""

import asyncio

from micropython import const

from millpond.clock import add, diff

_SLOW_MS = const(200)
_LATE_MS = const(1000)  # so late, a period is not made up for
_NAP_MS = const(1000)  # longest sleep, so that a new period need not wait for the old one's end


class Sampler:
    """Reads the sensor behind `outlet` (an Outlet); `proceed()` is called after each read.

    `failing` says why the last read failed, and is empty while all is well. `failures` counts
    such reads; `slowest_ms` is what the longest read took.
    """

    def __init__(self, sensor, outlet, clock, log, proceed):
        self.name = sensor.name
        self.tags = sensor.tags
        self.period_ms = sensor.period_ms
        self._outlet = outlet
        self._clock = clock
        self._log = log
        self._proceed = proceed
        self._due = 0
        self._anew = False
        self._in_a_row = 0
        self.paused = False
        self.failing = ""
        self.failures = 0
        self.slowest_ms = 0

    @property
    def bad_values(self):
        """How many values were none that their tags can have."""
        return self._outlet.bad_values

    async def run(self, beat):
        """Read without end and without drift."""
        self._due = self._clock.now()
        while True:
            beat()
            if not self.paused:
                self._read()
            self._due = add(self._due, self.period_ms)
            left = diff(self._due, self._clock.now())
            if left < -_LATE_MS:
                self._due = self._clock.now()
            self._anew = False
            await asyncio.sleep_ms(min(max(0, left), _NAP_MS))
            left = diff(self._due, self._clock.now())
            while left > 0:  # longer than a nap, or now due later than it was
                beat()
                await asyncio.sleep_ms(min(left, _NAP_MS))
                left = diff(self._due, self._clock.now())
            if self._anew:
                self._due = self._clock.now()  # the nap is not made up for

    def set_period(self, period_ms):
        """Read every `period_ms` from now on."""
        self.period_ms = period_ms
        self._anew = True
        self._due = add(self._clock.now(), period_ms)

    def _read(self):
        started = self._clock.now()
        try:
            self._outlet.take()
        except Exception as error:
            self._failed(error)
        else:
            self._succeeded()
        took = diff(self._clock.now(), started)
        self.slowest_ms = max(self.slowest_ms, took)
        if took >= _SLOW_MS:
            self._log.warning("sensor {} took {} ms, and held up the rest".format(self.name, took))
        self._proceed()

    def _failed(self, error):
        self.failures += 1
        self._in_a_row += 1
        self.failing = "{}: {}".format(type(error).__name__, error)
        if not self._in_a_row & (self._in_a_row - 1):
            text = "sensor {} failed, {} in a row".format(self.name, self._in_a_row)
            self._log.exception(text, error)

    def _succeeded(self):
        if self.failing:
            text = "sensor {} is well again after {} failed reads"
            self._log.info(text.format(self.name, self._in_a_row))
            self.failing = ""
            self._in_a_row = 0
