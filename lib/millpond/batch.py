"""Batches: many readings in one payload, and everything that tells the two encodings apart.

The encodings are 0xF7 (`batch_f7`) and JSON (`batch_json`). A stored batch names its own: 0xF7
begins with that byte, JSON with `[`. So a batch can be counted, stamped and read without knowing
what the device was configured to write.
"""

from millpond.batch_f7 import MAGIC, F7Writer, count_f7, decode_f7, restamp_f7
from millpond.batch_json import JsonWriter, count_json, decode_json, restamp_json
from millpond.reading import KIND_NAMES, BatchError, interpret, kind_of, pack_reading

__all__ = (
    "KIND_NAMES",
    "BatchError",
    "F7Writer",
    "JsonWriter",
    "count_readings",
    "decode",
    "decode_f7",
    "decode_json",
    "interpret",
    "kind_of",
    "make_writer",
    "pack_reading",
    "restamp",
)

_WRITERS = {"f7": F7Writer, "json": JsonWriter}


def make_writer(encoding, device_type, serial):
    """A writer for the encoding "f7" or "json"; ValueError for another."""
    if encoding not in _WRITERS:
        raise ValueError('encoding {!r}: "f7" or "json" expected'.format(encoding))
    return _WRITERS[encoding](device_type, serial)


def count_readings(buf, at, length):
    """How many readings the stored batch buf[at:at + length] holds. Allocates nothing."""
    if buf[at] == MAGIC:
        return count_f7(buf, at, length)
    return count_json(buf, at, length)


def restamp(buf, at, length, clock):
    """Give a batch written before the time was known its Unix times, in place.

    Times that are Unix times already stay. Without a known time nothing changes.
    """
    if buf[at] == MAGIC:
        restamp_f7(buf, at, length, clock)
    else:
        restamp_json(buf, at, length, clock)


def decode(data):
    """Read a batch of either encoding: see `decode_f7` and `decode_json`; BatchError if none."""
    if len(data) and data[0] == MAGIC:
        return decode_f7(data)
    return decode_json(data)
