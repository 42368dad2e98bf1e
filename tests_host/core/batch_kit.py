"""What the tests of batches and of the packer share."""

from millpond.clock import Clock
from millpond.reading import pack_reading

START = 1709337600  # 0x65E26C00
FLOAT_237 = b"\x41\xbd\x99\x9a"


def clock_set(unix=START):
    """A clock that stands at second 0, which was `unix`; 0 for one that was never set."""
    clock = Clock(lambda: 0)
    if unix:
        clock.set_unix(unix)
    return clock


def record(tag_id, kind, value, seconds=0, status=0):
    """A reading's record as bytes of its own."""
    buf = bytearray(600)
    return bytes(buf[: pack_reading(buf, 0, tag_id, kind, value, seconds, status)])


def written(writer, records, clock, limit=1000):
    """The batch that `writer` makes of records that must all fit."""
    buf = bytearray(limit + 8)
    writer.begin(buf, 8, limit)
    for one in records:
        assert writer.add(one, 0, clock)
    return bytes(buf[8 : 8 + writer.end()])
