"""0xF7 once more, as plainly as can be: a judge of the batches that `millpond.batch` reads.

`write` gives a batch's bytes and `read` its groups, both in the shape of `decode_f7`; `read` raises
Malformed for what is no batch. They share no code with the core, and do not care for speed.
"""

import struct

HEAD = struct.Struct(">BI")
GROUP = struct.Struct(">IHII")
VALUE = struct.Struct(">HB")
COUNT = struct.Struct(">BB")
MAGIC = 0xF7


class Malformed(Exception):
    pass


def write(groups):
    """The batch, and the places of what steers a reader in it: (position, size in bytes)."""
    data = bytearray(HEAD.pack(MAGIC, len(groups)))
    places = [(0, 1), (1, 4)]
    for timestamp, device_type, serial, values in groups:
        places.append((len(data) + 10, 4))
        data += GROUP.pack(timestamp, device_type, serial, len(values))
        for tag_id, status, size, raw in values:
            places.append((len(data) + 2, 1))
            data += VALUE.pack(tag_id, status)
            if not status:
                places += [(len(data), 1), (len(data) + 1, 1)]
                data += COUNT.pack(len(raw) // size, size) + raw
    return bytes(data), places


def read(data):
    data = bytes(data)
    at = 0

    def take(form):
        nonlocal at
        if len(data) - at < form.size:
            raise Malformed("cut short")
        at += form.size
        return form.unpack_from(data, at - form.size)

    def value():
        nonlocal at
        tag_id, status = take(VALUE)
        if status:
            return tag_id, status, 0, b""
        count, size = take(COUNT)
        if size not in (1, 2, 4):
            raise Malformed("size")
        raw = data[at : at + count * size]
        if len(raw) < count * size:
            raise Malformed("cut short")
        at += len(raw)
        return tag_id, 0, size, raw

    def group():
        *head, number = take(GROUP)
        return (*head, [value() for _ in range(number)])

    magic, number = take(HEAD)
    if magic != MAGIC:
        raise Malformed("magic")
    groups = [group() for _ in range(number)]
    if at < len(data):
        raise Malformed("bytes behind")
    return groups
