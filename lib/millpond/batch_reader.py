"""The strict reader of batches, 0xF7 (`batch_f7`) and JSON (`batch_json`), for whoever gets one.

`decode` gives groups of values, `interpret` the Python values of one of them: a batch does not say
which kind its values have, only their size, so the kind is the one that the device announced.

It trusts nothing: a number of groups or values is believed only as far as the bytes that are really
there could hold it. BatchError is raised for whatever is no batch, whole and to its last byte. A
board that only writes batches does not load this module.
"""

import json
from struct import unpack_from

from micropython import const

from millpond.message import ProtocolError
from millpond.reading import BOOL, FLOAT32, HIGHEST, KIND_NAMES, KIND_SIZES, LOWEST

# As in batch_f7, which would have to keep shared names in RAM, where only batches are written.
_MAGIC = const(0xF7)
_BATCH_HEAD = const(5)
_GROUP_HEAD = const(14)
_VALUE_HEAD = const(5)
_STATUS_SIZE = const(3)  # a value that is a status
_GROUP_COUNT_AT = const(10)
_MAX_VALUES = const(255)

_LETTERS = "BbBhHiIf"
_NUMBERS = (int, float)
_JSON_VALUES = (int, float, bool)


class BatchError(ProtocolError):
    """A batch that is malformed, truncated or does not match its announcement."""


def decode(data):
    """Read a batch of either encoding: see `decode_f7` and `decode_json`; BatchError if none."""
    if len(data) and data[0] == _MAGIC:
        return decode_f7(data)
    return decode_json(data)


def interpret(kind, size, raw):
    """The Python values of a kind, from what a batch reader gave for one reading; a tuple.

    `raw` is, for a `size` of 1, 2 or 4, the values' bytes (0xF7); for a `size` of 0 the values
    themselves (JSON), where None stands for a float that is no number. BatchError when the size
    or a value does not match the kind; ValueError for an unknown kind.
    """
    if not 0 <= kind <= FLOAT32:
        raise ValueError("kind {}: 0 to 7 expected".format(kind))
    if size == 0:
        return tuple([_interpret_json(kind, value) for value in raw])
    if size != KIND_SIZES[kind]:
        raise BatchError(
            "value size {}: {} expected for {}".format(size, KIND_SIZES[kind], KIND_NAMES[kind])
        )
    if len(raw) % size:
        raise BatchError("{} bytes of values: not a multiple of {}".format(len(raw), size))
    values = unpack_from(">{}{}".format(len(raw) // size, _LETTERS[kind]), raw, 0)
    return tuple([value != 0 for value in values]) if kind == BOOL else values


def _interpret_json(kind, value):
    if kind == FLOAT32 and value is None:
        return float("nan")
    matches = _NUMBERS if kind == FLOAT32 else int
    if isinstance(value, bool):
        matches = bool if kind == BOOL else ()
    if not isinstance(value, matches) or not LOWEST[kind] <= value <= HIGHEST[kind]:
        raise BatchError("value {}: out of place for {}".format(value, KIND_NAMES[kind]))
    if kind == FLOAT32:
        return float(value)
    return value != 0 if kind == BOOL else int(value)


# -- 0xF7 -----------------------------------------------------------------------------------------


def decode_f7(data):
    """Read a batch strictly: a list of groups (timestamp, device type, serial, values).

    A value is (tag id, status, size, bytes): `size` bytes each, or size 0 and b"" with a status.
    BatchError for whatever is no complete batch, to the last byte.
    """
    end = len(data)
    if end < _BATCH_HEAD:
        raise BatchError("batch of {} bytes: at least {} expected".format(end, _BATCH_HEAD))
    if data[0] != _MAGIC:
        raise BatchError("batch begins with {}: {} expected".format(data[0], _MAGIC))
    groups = []
    pos = _BATCH_HEAD
    for _ in range(_believable(data, 1, end - pos, _GROUP_HEAD, "groups")):
        pos = _decode_group(data, pos, end, groups)
    if pos != end:
        raise BatchError("{} bytes after the last group".format(end - pos))
    return groups


def _decode_group(data, pos, end, groups):
    if pos + _GROUP_HEAD > end:
        raise BatchError("group at {}: the batch ends at {}".format(pos, end))
    timestamp = _get32(data, pos)
    device_type = data[pos + 4] << 8 | data[pos + 5]
    serial = _get32(data, pos + 6)
    count_at = pos + _GROUP_COUNT_AT
    pos += _GROUP_HEAD
    values = []
    for _ in range(_believable(data, count_at, end - pos, _STATUS_SIZE, "values")):
        pos = _decode_value(data, pos, end, values)
    groups.append((timestamp, device_type, serial, values))
    return pos


def _decode_value(data, pos, end, values):
    if pos + _STATUS_SIZE > end:
        raise BatchError("value at {}: the batch ends at {}".format(pos, end))
    tag_id = data[pos] << 8 | data[pos + 1]
    status = data[pos + 2]
    if status:
        values.append((tag_id, status, 0, b""))
        return pos + _STATUS_SIZE
    start = pos + _VALUE_HEAD
    if start > end:
        raise BatchError("value at {}: the batch ends at {}".format(pos, end))
    count = data[pos + 3]
    size = data[pos + 4]
    if size not in (1, 2, 4):
        raise BatchError("value at {}: size {}, 1, 2 or 4 expected".format(pos, size))
    stop = start + count * size
    if stop > end:
        raise BatchError("value at {}: the batch ends at {}".format(pos, end))
    values.append((tag_id, 0, size, bytes(data[start:stop])))
    return stop


def _believable(data, at, room, least, what):
    """The number at data[at], if `room` bytes can hold as many items of `least` bytes."""
    number = _get32(data, at)
    if number > room // least:
        raise BatchError("{} {}: {} bytes are left".format(number, what, room))
    return number


def _get32(buf, at):
    return buf[at] << 24 | buf[at + 1] << 16 | buf[at + 2] << 8 | buf[at + 3]


# -- JSON -----------------------------------------------------------------------------------------


def decode_json(data):
    """Read a batch strictly: groups (timestamp, None, None, values) as `decode_f7` gives them.

    Consecutive objects of the same timestamp are a group.

    A value is (tag id, status, 0, values): a tuple of numbers, booleans and None, or () with a
    status. BatchError for whatever is no array of such objects.
    """
    try:
        # RuntimeError: brackets nested deeper than the interpreter goes.
        batch = json.loads(str(bytes(data), "utf-8"))
    except (ValueError, TypeError, RuntimeError) as error:
        raise BatchError("not JSON: {}".format(error))
    if not isinstance(batch, list):
        raise BatchError("JSON batch: an array of objects expected")
    groups = []
    for reading in batch:
        timestamp, value = _decode_object(reading)
        if not groups or groups[-1][0] != timestamp:
            groups.append((timestamp, None, None, []))
        groups[-1][3].append(value)
    return groups


def _decode_object(reading):
    """Check one object; its timestamp and its value."""
    if not isinstance(reading, dict) or len(reading) != 3:
        raise BatchError("JSON reading: an object of three members expected")
    timestamp = _integer(reading, "ts", 0, 4294967295)
    tag_id = _integer(reading, "id", 0, 65535)
    if "values" not in reading:
        return timestamp, (tag_id, _integer(reading, "status", 1, 255), 0, ())
    values = reading["values"]
    if not isinstance(values, list) or len(values) > _MAX_VALUES:
        raise BatchError("JSON reading: values must be an array of at most 255")
    for value in values:
        if value is not None and not isinstance(value, _JSON_VALUES):
            raise BatchError("JSON reading: a value that is no number, boolean or null")
        if isinstance(value, float) and value - value != 0:
            raise BatchError("JSON reading: a value out of range")
    return timestamp, (tag_id, 0, 0, tuple(values))


def _integer(reading, name, lowest, highest):
    number = reading.get(name)
    if isinstance(number, bool) or not isinstance(number, int):
        raise BatchError("JSON reading: {} must be an integer".format(name))
    if not lowest <= number <= highest:
        raise BatchError("JSON reading: {} {}, {} to {}".format(name, number, lowest, highest))
    return number
