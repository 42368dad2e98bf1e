"""How long a backlog takes to leave over a slow round trip, and how long one round trip is.

Arguments: host and port of a proxy that delays what passes, and the backlog's bytes. The backlog is
what the packer makes of readings while the link is down: full pages of the default size. The round
trip is the mean of pings over a bare socket through the same proxy, half of them before and half
after.
"""

import asyncio
import json
import socket
import sys
import time

from rig import Line, address

from firmware.mqtt_out import Outbound
from millpond.message import NORMAL
from millpond.reading import FLOAT32, pack_reading

_PAGE = 2048
_SPARE = 12
_TAGS = 20
_PINGS = 60


class Pings:
    """A blocking socket that says hello once, and then only pings."""

    def __init__(self):
        self._sock = socket.socket()
        self._sock.connect(socket.getaddrinfo(*address())[0][-1])
        self._sock.setsockopt(6, 1, 1)
        hello = Outbound(64)
        hello.connect(b"pings", 0, True)
        self._sock.write(hello.buffer, 0, hello.end)
        self._sock.read(4)
        self._count = 0
        self._spent_us = 0

    def more(self, n):
        for _ in range(n):
            start = time.ticks_us()
            self._sock.write(b"\xc0\x00")
            self._sock.read(2)
            self._spent_us += time.ticks_diff(time.ticks_us(), start)
        self._count += n

    def mean_ms(self):
        return self._spent_us / self._count / 1000


def fill(line, size):
    """Scans of `_TAGS` readings, one a second, until the ring holds `size` bytes."""
    record = bytearray(13)
    topic = line.queue.topics.index("bench/readings")
    second = 0
    while line.ring.bytes_held() < size:
        for tag in range(_TAGS):
            pack_reading(record, 0, tag, FLOAT32, 21.5, second)
            line.queue.enqueue(topic, record, 1, NORMAL)
        line.packer.poll(0, False)
        second += 1
    line.packer.flush()


async def main():
    size = int(sys.argv[3])
    line = Line("drain", ring=(size // _PAGE + _SPARE) * _PAGE, page=_PAGE, largest=_PAGE)
    fill(line, size)
    messages = line.ring.messages()
    held = line.ring.bytes_held()
    pings = Pings()
    pings.more(_PINGS // 2)
    await line.connect()
    start = time.ticks_us()
    await line.drained()
    spent_ms = time.ticks_diff(time.ticks_us(), start) / 1000
    line.close()
    pings.more(_PINGS // 2)
    print(
        json.dumps(
            {
                "messages": messages,
                "bytes": held,
                "drained_ms": spent_ms,
                "round_trip_ms": pings.mean_ms(),
            }
        )
    )


asyncio.run(main())
