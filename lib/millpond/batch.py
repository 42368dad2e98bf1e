"""Batches: many readings in one payload, and everything that tells the two encodings apart.

The encodings are 0xF7 (`batch_f7`) and JSON (`batch_json`). A stored batch names its own: 0xF7
begins with that byte, JSON with `[`. So a batch can be counted, stamped and read without knowing
what the device was configured to write.

JSON and the reader (`batch_reader`) are loaded when they are first asked for.
"""

from millpond.batch_f7 import MAGIC, F7Writer, count_f7, restamp_f7
from millpond.reading import KIND_NAMES, kind_of, pack_reading

__all__ = ("KIND_NAMES", "F7Writer", "kind_of", "pack_reading")

_READER = ("BatchError", "decode", "decode_f7", "decode_json", "interpret")
_batch_json = None


def __getattr__(name):
    if name in _READER:
        from millpond import batch_reader

        return getattr(batch_reader, name)
    if name == "JsonWriter":
        return _json().JsonWriter
    raise AttributeError(name)


def _json():
    """The module for JSON, kept, for an import allocates even when there is nothing to load."""
    global _batch_json
    if _batch_json is None:
        from millpond import batch_json

        _batch_json = batch_json
    return _batch_json


def make_writer(encoding, device_type, serial):
    """A writer for the encoding "f7" or "json"; ValueError for another."""
    if encoding == "f7":
        return F7Writer(device_type, serial)
    if encoding == "json":
        return _json().JsonWriter(device_type, serial)
    raise ValueError('encoding {!r}: "f7" or "json" expected'.format(encoding))


def count_readings(buf, at, length):
    """How many readings the stored batch buf[at:at + length] holds. Allocates nothing."""
    if buf[at] == MAGIC:
        return count_f7(buf, at, length)
    return _json().count_json(buf, at, length)


def restamp(buf, at, length, clock):
    """Give a batch written before the time was known its Unix times, in place.

    Times that are Unix times already stay. Without a known time nothing changes.
    """
    if buf[at] == MAGIC:
        restamp_f7(buf, at, length, clock)
    else:
        _json().restamp_json(buf, at, length, clock)
