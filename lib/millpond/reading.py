"""Readings: the kinds a value can have, and the record that carries one reading to the packer.

A *reading* is what a sensor saw of one tag at one moment: one value or a few of the same kind, or
a status that says why there is none. On its way through the intake queue it is a *record*,
big-endian:

    tag id u16 | seconds since the start u32 | status u8 | kind u8 | count u8 | count values

Invariants: status 0 has 1 to 255 values, any other status has none; every value lies in the range
of its kind, which is checked here, since `pack_into` on MicroPython cuts what is too large without
a word. Seconds stay below the Unix times that a clock can know, so that the two can be told apart.
"""

from array import array
from struct import pack_into, unpack_from

from micropython import const

from millpond.limits import within

BOOL = const(0)
INT8 = const(1)
UINT8 = const(2)
INT16 = const(3)
UINT16 = const(4)
INT32 = const(5)
UINT32 = const(6)
FLOAT32 = const(7)

KIND_NAMES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
KIND_FORMATS = (">B", ">b", ">B", ">h", ">H", ">i", ">I", ">f")
KIND_SIZES = b"\x01\x01\x01\x02\x02\x04\x04\x04"

RECORD_HEAD = const(9)

# The first byte of a timestamp: below this it is in seconds since the start, else in Unix time.
UNIX_FROM = const(0x3C)

_MAX_SECONDS = const(999999999)  # below the Unix times that a clock can know
_FLOAT_MAX = unpack_from(">f", b"\x7f\x7f\xff\xff")[0]
_INFINITIES = (float("inf"), float("-inf"))
LOWEST = (0, -128, 0, -32768, 0, -2147483648, 0, -_FLOAT_MAX)
HIGHEST = (1, 127, 255, 32767, 65535, 2147483647, 4294967295, _FLOAT_MAX)
_SEQUENCES = (list, tuple, array, bytes, bytearray)
_INTEGERS = (int, bool)  # on MicroPython bool is no int


def kind_of(name):
    """The kind called `name` ("float32"); ValueError for a name that is not in KIND_NAMES."""
    for kind in range(len(KIND_NAMES)):
        if KIND_NAMES[kind] == name:
            return kind
    raise ValueError("kind {!r}: one of {} expected".format(name, ", ".join(KIND_NAMES)))


def pack_reading(buf, at, tag_id, kind, value, seconds, status=0):
    """Write a reading's record to `buf` from `at` on; its length in bytes.

    Allocates nothing; but MicroPython makes an object of every number it takes out of an array
    that is a float or beyond its small ints. `value` is a number, or 1 to 255 of them in a list,
    tuple or array; with a `status` (1 to 255) it is not looked at. `seconds` is the moment, in
    whole seconds since the start. ValueError (out of range, no room) or TypeError names the value
    and the limit; `buf` is unchanged then.
    """
    if tag_id >> 16 or kind >> 3 or status >> 8 or not 0 <= seconds <= _MAX_SECONDS:
        within("tag id", tag_id, 65535)
        within("kind", kind, FLOAT32)
        within("status", status, 255)
        within("seconds", seconds, _MAX_SECONDS)
    if at < 0 or _checked_length(kind, value, status) + at > len(buf):
        status = _checked_length(kind, value, status)
        _refuse_room(buf, at, status)
    buf[at] = tag_id >> 8
    buf[at + 1] = tag_id & 0xFF
    buf[at + 2] = seconds >> 24
    buf[at + 3] = (seconds >> 16) & 0xFF
    buf[at + 4] = (seconds >> 8) & 0xFF
    buf[at + 5] = seconds & 0xFF
    buf[at + 6] = status
    buf[at + 7] = kind
    return _put_values(buf, at, value)


def is_record(buf, at, length):
    """Whether buf[at:at + length] is a reading's record, with all that a batch writer relies on.

    Allocates nothing.
    """
    if length < RECORD_HEAD or buf[at + 2] >= UNIX_FROM or buf[at + 7] > FLOAT32:
        return False
    count = buf[at + 8]
    if (buf[at + 6] == 0) == (count == 0):
        return False
    return length == RECORD_HEAD + count * KIND_SIZES[buf[at + 7]]


def _refuse_room(buf, at, length):
    raise ValueError("reading of {} bytes: no room in {} from {}".format(length, len(buf), at))


def _checked_length(kind, value, status):
    """The length of a record, each of its values checked."""
    if status:
        return RECORD_HEAD
    if not isinstance(value, _SEQUENCES):
        _check_value(kind, value)
        return RECORD_HEAD + KIND_SIZES[kind]
    count = len(value)
    if not 1 <= count <= 255:
        raise ValueError("{} values: 1 to 255 expected".format(count))
    i = 0
    while i < count:
        _check_value(kind, value[i])
        i += 1
    return RECORD_HEAD + count * KIND_SIZES[kind]


def _check_value(kind, value):
    if kind == FLOAT32:
        if isinstance(value, float):
            if value != value or value in _INFINITIES:
                return
        elif not isinstance(value, _INTEGERS):
            raise TypeError("value {!r}: a number expected for float32".format(value))
    elif not isinstance(value, _INTEGERS):
        raise TypeError("value {!r}: an integer expected for {}".format(value, KIND_NAMES[kind]))
    if not LOWEST[kind] <= value <= HIGHEST[kind]:
        raise ValueError(
            "value {}: {} to {} expected for {}".format(
                value, LOWEST[kind], HIGHEST[kind], KIND_NAMES[kind]
            )
        )


def _put_values(buf, at, value):
    """Write a record's values behind the head that is there; the record's length in bytes."""
    kind = buf[at + 7]
    if buf[at + 6]:
        buf[at + 8] = 0
        return RECORD_HEAD
    if not isinstance(value, _SEQUENCES):
        buf[at + 8] = 1
        pack_into(KIND_FORMATS[kind], buf, at + RECORD_HEAD, value)
        return RECORD_HEAD + KIND_SIZES[kind]
    buf[at + 8] = len(value)
    at += RECORD_HEAD
    i = 0
    while i < len(value):
        pack_into(KIND_FORMATS[kind], buf, at, value[i])
        at += KIND_SIZES[kind]
        i += 1
    return RECORD_HEAD + i * KIND_SIZES[kind]
