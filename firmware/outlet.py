"""Outlet: where one sensor hands over what it has seen, on its way to the intake queue.

It knows the sensor's tags and priority, so that the sensor need not: a reading becomes a record
(`millpond.reading`) on the data topic, an alert a JSON message on the alert topic. A full intake
decides by its own rule what gives way, and counts it; nothing here waits.
"""

import json

from micropython import const

from millpond.message import CRITICAL, NORMAL, QOS_AT_LEAST_ONCE
from millpond.reading import RECORD_HEAD, kind_of, pack_reading

STATUS_FAILED = 255  # the sensor's read raised
STATUS_BAD_VALUE = 254  # the sensor gave a value that its tag cannot have

_TAKES = const(0x3FFFFFFF)


class Outlet:
    """What `sensor.read(out)` gets as `out`.

    `data_topic` and `alert_topic` are indexes of `queue.topics`; `log` has `error(text)`. A sensor
    whose tags are wrong is a ValueError here, before it is ever read.
    """

    def __init__(self, sensor, queue, clock, data_topic, alert_topic, log):
        self._kinds = {}
        for tag_id, name, kind, _, _ in sensor.tags:
            if not 1 <= tag_id <= 65535:
                raise ValueError("tag {} of {}: id {}".format(name, sensor.name, tag_id))
            self._kinds[tag_id] = kind_of(kind)
        self._sensor = sensor
        self._reported = {tag_id: 0 for tag_id in self._kinds}
        self._take = 0
        self._log = log
        self.bad_values = 0
        self._queue = queue
        self._clock = clock
        self._now = clock.now()
        self._seconds = clock.seconds
        self._data_topic = data_topic
        self._alert_topic = alert_topic
        self._priority = getattr(sensor, "priority", NORMAL)
        self._record = bytearray(queue.slot_size)
        view = memoryview(self._record)
        # A view for each length a single value can give, so that a reading allocates nothing.
        self._views = {n: view[:n] for n in range(RECORD_HEAD, RECORD_HEAD + 5)}

    def take(self):
        """Read the sensor once; all that it hands over shares this moment.

        When it raises, each tag that it has not reported gets a reading with STATUS_FAILED and no
        value, and the error goes on to the caller.
        """
        self._now = self._clock.now()
        self._seconds = self._clock.seconds
        self._take = self._take + 1 & _TAKES
        try:
            self._sensor.read(self)
        except Exception:
            for tag_id in self._kinds:
                if self._reported[tag_id] != self._take:
                    self._hand_over(tag_id, self._kinds[tag_id], 0, STATUS_FAILED)
            raise

    def reading(self, tag_id, value, status=0):
        """Hand over a reading: a number or a sequence of them, or a status (1 to 255).

        A value out of its kind's range, or too many values for a slot, is handed over as
        STATUS_BAD_VALUE without a value, logged and counted in `bad_values`, so that it is not
        lost in silence. ValueError for a tag that is not the sensor's.
        """
        kind = self._kinds.get(tag_id)
        if kind is None:
            raise ValueError("tag id {}: not among the sensor's tags".format(tag_id))
        self._reported[tag_id] = self._take
        try:
            self._hand_over(tag_id, kind, value, status)
        except (ValueError, TypeError) as error:
            self._hand_over(tag_id, kind, 0, STATUS_BAD_VALUE)
            self.bad_values += 1
            if not self.bad_values & (self.bad_values - 1):
                text = "sensor {}, tag {}: {} ({} bad values so far)"
                self._log.error(text.format(self._sensor.name, tag_id, error, self.bad_values))

    def _hand_over(self, tag_id, kind, value, status):
        record = self._record
        length = pack_reading(record, 0, tag_id, kind, value, self._seconds, status)
        view = self._views.get(length)
        if view is None:
            view = memoryview(record)[:length]
        self._queue.enqueue(
            self._data_topic, view, QOS_AT_LEAST_ONCE, self._priority, False, 0, self._now
        )

    def alert(self, name, text, priority=CRITICAL):
        """Hand over an alert. What does not fit a slot is cut, so that the alert gets out."""
        message = {"ts": self._clock.unix(), "name": name, "text": text}
        payload = json.dumps(message).encode()
        for part in ("text", "name"):
            while len(payload) > self._queue.slot_size and message[part]:
                excess = len(payload) - self._queue.slot_size
                message[part] = message[part][: -max(1, excess // 6)]
                payload = json.dumps(message).encode()
        self._queue.enqueue(
            self._alert_topic, payload, QOS_AT_LEAST_ONCE, priority, False, 0, self._now
        )
