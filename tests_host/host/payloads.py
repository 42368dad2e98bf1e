"""What a device publishes, made with the core's own writers, for the tests of the host tools."""

import json

from millpond import batch
from millpond.clock import Clock

PLANT = [
    [1, "temp0", "float32", "degC", 0.1],
    [2, "level", "int16", "mm", 0.5],
    [3, "run", "bool", "", 1],
    [4, "phase", "uint8", "", 1],
]
NOW = 1709337600


def announcement(rows=PLANT, device="mill"):
    """A device's retained tags message."""
    return json.dumps(
        {"device": device, "device_type": 7, "serial": 99, "encoding": "f7", "tags": rows}
    ).encode()


def payload(readings, encoding="f7", unix=NOW):
    """A batch of readings (tag id, kind name, value, status) taken now; unix None: no clock."""
    clock = Clock(lambda: 0)
    if unix is not None:
        clock.set_unix(unix)
    writer = batch.make_writer(encoding, 7, 99)
    buf, record = bytearray(4096), bytearray(600)
    writer.begin(buf, 0, len(buf))
    for tag_id, kind, value, status in readings:
        batch.pack_reading(record, 0, tag_id, batch.kind_of(kind), value, 0, status)
        assert writer.add(record, 0, clock)
    return bytes(buf[: writer.end()])


def one_of_each(encoding="f7", unix=NOW):
    """A batch with a float, a scaled integer, a flag, an array and a reading without a value."""
    return payload(
        [
            (1, "float32", 23.7, 0),
            (2, "int16", -241, 0),
            (3, "bool", True, 0),
            (4, "uint8", [1, 2, 3], 0),
            (1, "float32", 0, 9),
        ],
        encoding,
        unix,
    )
