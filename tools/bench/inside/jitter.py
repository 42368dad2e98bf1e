"""The lateness of a 100 Hz sampler, in ms, with the link up and through its outages.

Arguments: host, rounds, then NAME=PORT for each phase. All take turns, round after round, so that
what the machine does meanwhile falls on all alike. Of each phase the worst lateness of every round
is printed, the connections tried while it was taken, and the messages delivered.

A round samples for half a second, in which a peer that does not answer is given up and tried anew
five times, as if its deadline had passed. It is short because the longer it is, the surer its worst
sample is one that the machine was late with.
"""

import asyncio
import gc
import json
import random
import sys
import time

from rig import Line

from firmware.log import Log
from firmware.resolver import Resolver
from firmware.tls import Tls
from millpond.clock import Clock

_PERIOD_US = 10000
_SAMPLES = 50
_SETTLE_MS = 150
_DNS_TIMEOUT_MS = 8000

# Phases whose peer would keep us waiting for the whole of a deadline.
_GIVEN_UP = ("gone", "no_connack", "silent_dns")


def _asking(port):
    """Options of a Link that asks the name server at `port`."""
    log = Log("error", None)
    servers = ["127.0.0.1:{}".format(port)]
    resolver = Resolver(
        lambda: servers, Clock(time.ticks_ms), log, random.getrandbits, _DNS_TIMEOUT_MS
    )
    return {"resolve": lambda _host, port: resolver.resolve("broker.test", port)}


def _secured(port):
    return {"tls": Tls("build/bench_ca.pem", name="localhost")}


# What a phase asks of the Link, beside its port.
_LINK = {"silent_dns": _asking, "tls_handshake": _secured}


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


async def traffic(line, give_up):
    """Forty messages every 100 ms when the link takes them; deadlines checked as in the app."""
    while True:
        for _ in range(2):
            for _ in range(20):
                line.ring.append(b"sample", 1, line.tag)
            line.uplink.kick()
            line.uplink.tick()
            await asyncio.sleep_ms(50)
        if give_up:
            line.uplink.give_up("no answer")


async def window(name, port):
    """One round of one phase: the worst lateness in ms, and what the line did meanwhile."""
    options = _LINK[name](port) if name in _LINK else {}
    line = Line("jitter-" + name, port=port, **options)
    gc.collect()
    gc.threshold(gc.mem_free() // 4)  # as the firmware does
    uplink = asyncio.create_task(line.uplink.run(lambda: None))
    load = asyncio.create_task(traffic(line, name in _GIVEN_UP))
    await asyncio.sleep_ms(_SETTLE_MS)
    attempts = line.uplink.attempts
    worst = await sample()
    attempts = line.uplink.attempts - attempts
    if uplink.done() or load.done():
        raise RuntimeError(name + ": the line has ended meanwhile")
    load.cancel()
    uplink.cancel()
    await asyncio.sleep_ms(10)
    line.link.close()
    return worst / 1000, attempts, line.sender.delivered


async def main():
    phases = [phase.split("=") for phase in sys.argv[3:]]
    found = {name: {"worst_ms": [], "attempts": 0, "delivered": 0} for name, _ in phases}
    for _ in range(int(sys.argv[2])):
        for name, port in phases:
            ms, attempts, delivered = await window(name, int(port))
            found[name]["worst_ms"].append(ms)
            found[name]["attempts"] += attempts
            found[name]["delivered"] += delivered
    print(json.dumps(found))


asyncio.run(main())
