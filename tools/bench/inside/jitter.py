"""The worst lateness of a 100 Hz sampler, in ms, with the link up and through its outages.

Arguments: host, then the ports of a broker, of nobody, of a listener that never accepts, and of
one that accepts and never answers.
"""

import asyncio
import json
import sys
import time

from rig import Line

_PERIOD_US = 10000
_SAMPLES = 500
_PHASES = ("up", "refused", "gone", "no_connack")


async def sample():
    """Sample 100 times a second; the worst lateness in us, of which rounding up to a ms is part."""
    worst = 0
    due = time.ticks_us()
    for _ in range(_SAMPLES):
        due = time.ticks_add(due, _PERIOD_US)
        left_us = time.ticks_diff(due, time.ticks_us())
        await asyncio.sleep_ms(max(0, -(-left_us // 1000)))
        worst = max(worst, time.ticks_diff(time.ticks_us(), due))
    return worst


async def traffic(line):
    """Twenty messages every 50 ms when the link takes them; deadlines checked as in the app."""
    while True:
        for _ in range(20):
            line.ring.append(b"sample", 1, line.tag)
        line.uplink.kick()
        line.uplink.tick()
        await asyncio.sleep_ms(50)


async def phase(name, port):
    sys.argv[2] = port
    line = Line("jitter-" + name)
    uplink = asyncio.create_task(line.uplink.run(lambda: None))
    load = asyncio.create_task(traffic(line))
    await asyncio.sleep_ms(200)
    worst = await sample()
    tries = line.uplink.attempts
    load.cancel()
    uplink.cancel()
    await asyncio.sleep_ms(10)
    line.link.close()
    return worst / 1000, tries


async def main():
    ports = sys.argv[2:]
    worst = {}
    for name, port in zip(_PHASES, ports):
        ms, tries = await phase(name, port)
        worst[name] = {"worst_ms": ms, "attempts": tries}
    print(json.dumps(worst))


asyncio.run(main())
