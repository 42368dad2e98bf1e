"""What devices publish, as plain records: bytes in, records out, no I/O.

A `Decoder` is fed every message below a prefix and gives a list of JSON-able dicts for each. It
remembers what each device announced about its tags, since a 0xF7 batch does not say which type
its values have. Nothing a device sends makes it raise: what can't be understood becomes a record
of type "malformed" with the reason, and is counted. An empty payload is no fault: it is how a
retained message is taken back.

A reading has no "type" and these members, and "status" where there is no value:

    device, id, name, value, unit, ts, received

`value` is a number, a boolean, a list where the tag has several, or None: no value, a float that
is no number, or a type not announced yet (then "raw" has the bytes in hex). An integer is already
multiplied by its scale. `ts` is Unix time or, below UNKNOWN_BELOW, seconds since the device's
start; `received` is the host's Unix time. Every other record has a "type", a "device" and
"received".
"""

import contextlib
import json
import math
import struct
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from tools._core import batch

_FLOAT = "float32"
_MAX_DECIMALS = 12
_SHOWN_BYTES = 32


@dataclass(frozen=True)
class Tag:
    """One announced tag. `decimals` is what its scale is given to."""

    id: int
    name: str
    kind: str
    unit: str
    scale: float
    decimals: int

    def value_of(self, raw):
        """A raw value as a person reads it: an integer scaled, a float as short as float32 is."""
        if isinstance(raw, bool):
            return raw
        if self.kind == _FLOAT:
            return _shortest(raw)
        return raw if self.scale == 1 else round(raw * self.scale, self.decimals)


def parse_topic(prefix: str, topic: str) -> tuple[str, str] | None:
    """(device, what) of `<prefix>/<device>/<what>`, or None for another topic."""
    if not topic.startswith(prefix + "/"):
        return None
    device, _, what = topic[len(prefix) + 1 :].partition("/")
    return (device, what) if device and what else None


def parse_tags(payload: bytes) -> dict[int, Tag]:
    """The tags of an announcement by id; ValueError naming what is wrong with it."""
    announced = _json(payload)
    rows = announced.get("tags")
    if not isinstance(rows, list):
        raise ValueError('an announcement needs "tags", an array')
    tags = [_tag(row) for row in rows]
    return {tag.id: tag for tag in tags}


def readings_of(payload: bytes, tags: dict[int, Tag]) -> list[dict]:
    """The readings of one batch, in their order, without device and time of receipt.

    BatchError when the batch is malformed. A value that does not match its announced type has a
    "problem" and no value.
    """
    return [
        reading_of(timestamp, value, tags)
        for timestamp, _type, _serial, values in batch.decode(payload)
        for value in values
    ]


class Decoder:
    """Turns the messages below `prefix` into records.

    `tags` has what each device announced, by device and id; `malformed` counts what could not be
    understood, by device.
    """

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.tags: dict[str, dict[int, Tag]] = {}
        self.malformed: Counter[str] = Counter()
        self._handlers = {
            "data": self._data,
            "tags": self._tags,
            "status": self._report,
            "health": self._report,
            "alert": self._alert,
        }

    def feed(self, topic: str, payload: bytes, received: float) -> list[dict]:
        """The records of one message; `received` is the host's Unix time."""
        place = parse_topic(self.prefix, topic)
        if place is None:
            return []
        device, what = place
        head = {"device": device, "received": round(received, 3)}
        handler = self._handlers.get(what)
        if handler is None:
            return [{"type": "other", **head, "topic": topic, "length": len(payload)}]
        try:
            return handler(what, payload, head)
        except (ValueError, batch.BatchError) as error:
            return [self._malformed(head, topic, str(error), payload)]

    def _malformed(self, head: dict, topic: str, reason: str, payload: bytes) -> dict:
        self.malformed[head["device"]] += 1
        shown = payload[:_SHOWN_BYTES].hex()
        return {"type": "malformed", **head, "topic": topic, "reason": reason, "begins": shown}

    def _data(self, what: str, payload: bytes, head: dict) -> list[dict]:
        records = []
        for reading in readings_of(payload, self.tags.get(head["device"], {})):
            problem = reading.pop("problem", None)
            if problem:
                topic = f"{self.prefix}/{head['device']}/{what}"
                records.append(self._malformed(head, topic, problem, payload))
            records.append({"device": head["device"], **reading, "received": head["received"]})
        return records

    def _tags(self, _what: str, payload: bytes, head: dict) -> list[dict]:
        tags = self.tags[head["device"]] = parse_tags(payload) if payload else {}
        return [{"type": "tags", **head, "tags": [tag.name for tag in tags.values()]}]

    def _report(self, what: str, payload: bytes, head: dict) -> list[dict]:
        return [{"type": what, **head, "data": _json(payload) if payload else {}}]

    def _alert(self, what: str, payload: bytes, head: dict) -> list[dict]:
        data = _json(payload)
        alert = {key: data.get(key) for key in ("ts", "name", "text")}
        if not isinstance(alert["ts"], int | float) or isinstance(alert["ts"], bool):
            raise ValueError(f"alert: ts {alert['ts']!r}, a number expected")
        return [{"type": what, **head, **alert}]


def _json(payload: bytes) -> dict:
    try:
        data = json.loads(payload)
    except RecursionError:
        raise ValueError("JSON is nested too deep") from None
    if not isinstance(data, dict):
        raise ValueError("a JSON object expected")
    return data


def _tag(row) -> Tag:
    if not isinstance(row, list) or len(row) != 5:
        raise ValueError(f"tag {row!r}: [id, name, type, unit, scale] expected")
    number, name, kind, unit, scale = row
    if type(number) is not int or not 0 <= number <= 65535:
        raise ValueError(f"tag id {number!r}: 0 to 65535 expected")
    if kind not in batch.KIND_NAMES:
        raise ValueError(f"tag {number}: type {kind!r}, one of {batch.KIND_NAMES} expected")
    if not isinstance(name, str) or not isinstance(unit, str):
        raise ValueError(f"tag {number}: name and unit must be text")
    if type(scale) not in (int, float) or not 0 < scale < math.inf:
        raise ValueError(f"tag {number}: scale {scale!r}, a number over 0 expected")
    decimals = max(0, -int(Decimal(str(scale)).as_tuple().exponent))
    return Tag(number, name, kind, unit, scale, min(decimals, _MAX_DECIMALS))


def reading_of(timestamp: int, value: tuple, tags: dict[int, Tag]) -> dict:
    """One reading as `readings_of` gives it, from one value of `batch.decode`."""
    tag_id, status, size, raw = value
    tag = tags.get(tag_id)
    reading = {
        "id": tag_id,
        "name": tag.name if tag else None,
        "value": None,
        "unit": tag.unit if tag else None,
        "ts": timestamp,
    }
    if status:
        reading["status"] = status
    elif tag is None and size:
        reading["raw"] = raw.hex()
    elif tag is None:
        reading["value"] = _one_or_list(list(raw))
    else:
        _interpret(reading, tag, size, raw)
    return reading


def _interpret(reading: dict, tag: Tag, size: int, raw) -> None:
    try:
        values = batch.interpret(batch.kind_of(tag.kind), size, raw)
    except batch.BatchError as error:
        reading["problem"] = f"tag {tag.id} ({tag.name}): {error}"
        return
    reading["value"] = _one_or_list([tag.value_of(value) for value in values])


def _one_or_list(values: list):
    return values[0] if len(values) == 1 else values


def _shortest(value: float) -> float | None:
    """The float with the fewest digits that is the same float32; None for NaN and infinity."""
    if not math.isfinite(value):
        return None
    wanted = struct.pack(">f", value)
    for digits in range(1, 9):
        short = float(f"{value:.{digits}g}")
        with contextlib.suppress(OverflowError):
            if struct.pack(">f", short) == wanted:
                return short
    return float(f"{value:.9g}")
