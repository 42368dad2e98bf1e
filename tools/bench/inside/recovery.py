"""From the beginning of the try that reaches the broker to the first acknowledgement, in ms.

Arguments: host and port of a proxy that again and again refuses everybody for a while and then
lets all through, and how many recoveries to time. The back-off's own wait lies before that try and
is not in here; resolving the name, TCP, CONNECT and its answer, PUBLISH and its acknowledgement
are. Messages always wait.
"""

import asyncio
import json
import sys
import time

from rig import PAYLOAD, Line

_HELD = 8


class Watch:
    """Notes when each try begins, and the first acknowledgement after it, `wanted` times."""

    def __init__(self, link, wanted):
        self._wanted = wanted
        self.took_ms = []
        self.enough = asyncio.Event()
        self._began = None
        self._connect = link.connect
        self._acknowledged = link.on_acknowledged
        link.connect = self.connect
        link.on_acknowledged = self.acknowledged

    async def connect(self, clean_session):
        self._began = time.ticks_us()
        return await self._connect(clean_session)

    def acknowledged(self, packet_id):
        if self._began is not None:
            self.took_ms.append(time.ticks_diff(time.ticks_us(), self._began) / 1000)
            self._began = None
            if len(self.took_ms) == self._wanted:
                self.enough.set()
        self._acknowledged(packet_id)


async def traffic(line):
    while True:
        while line.ring.messages() < _HELD:
            line.ring.append(PAYLOAD, 1, line.tag)
        line.uplink.kick()
        line.uplink.tick()
        await asyncio.sleep_ms(20)


async def main():
    line = Line("recovery")
    wanted = int(sys.argv[3]) + 1  # the first is the start, not a recovery
    watch = Watch(line.link, wanted)
    load = asyncio.create_task(traffic(line))
    await line.connect()
    await watch.enough.wait()
    load.cancel()
    line.close()
    print(json.dumps({"took_ms": watch.took_ms[1:wanted]}))


asyncio.run(main())
