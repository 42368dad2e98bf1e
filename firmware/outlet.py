"""Outlet: where one sensor hands over what it has seen, on its way to the intake queue.

It knows the sensor's tags and priority, so that the sensor need not: a reading becomes a record
(`millpond.reading`) on the data topic, an alert a JSON message on the alert topic. A full intake
decides by its own rule what gives way, and counts it; nothing here waits.
"""

import json

from millpond.message import CRITICAL, NORMAL, QOS_AT_LEAST_ONCE
from millpond.reading import RECORD_HEAD, kind_of, pack_reading

STATUS_FAILED = 255


class Outlet:
    """What `sensor.read(out)` gets as `out`.

    `data_topic` and `alert_topic` are indexes of `queue.topics`. A sensor whose tags are wrong is
    a ValueError here, before it is ever read.
    """

    def __init__(self, sensor, queue, clock, data_topic, alert_topic):
        self._kinds = {}
        for tag_id, name, kind, _, _ in sensor.tags:
            if not 1 <= tag_id <= 65535:
                raise ValueError("tag {} of {}: id {}".format(name, sensor.name, tag_id))
            self._kinds[tag_id] = kind_of(kind)
        self._sensor = sensor
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

        When it raises, each of its tags gets a reading with a status and no value, and the error
        goes on to the caller.
        """
        self._now = self._clock.now()
        self._seconds = self._clock.seconds
        try:
            self._sensor.read(self)
        except Exception:
            for tag_id in self._kinds:
                self.reading(tag_id, 0, STATUS_FAILED)
            raise

    def reading(self, tag_id, value, status=0):
        """Hand over a reading: a number or a sequence of them, or a status (1 to 255).

        ValueError or TypeError names a value out of its kind's range; nothing is handed over.
        """
        kind = self._kinds.get(tag_id)
        if kind is None:
            raise ValueError("tag id {}: not among the sensor's tags".format(tag_id))
        record = self._record
        length = pack_reading(record, 0, tag_id, kind, value, self._seconds, status)
        view = self._views.get(length)
        if view is None:
            view = memoryview(record)[:length]
        self._queue.enqueue(
            self._data_topic, view, QOS_AT_LEAST_ONCE, self._priority, False, 0, self._now
        )

    def alert(self, name, text, priority=CRITICAL):
        """Hand over an alert. Text that does not fit a slot is cut, so that the alert gets out."""
        message = {"ts": self._clock.unix(), "name": name, "text": text}
        payload = json.dumps(message).encode()
        while len(payload) > self._queue.slot_size and message["text"]:
            excess = len(payload) - self._queue.slot_size
            message["text"] = message["text"][: -max(1, excess // 6)]
            payload = json.dumps(message).encode()
        self._queue.enqueue(
            self._alert_topic, payload, QOS_AT_LEAST_ONCE, priority, False, 0, self._now
        )
