"""PagedRing.append of 64 bytes against a plain slice assignment of the same 64 bytes, in ns.

Each is the least of many short runs: what the code costs, not what the machine did meanwhile.
"""

import json
import time

from rig import PAYLOAD

from millpond.paged_ring import PagedRing

_RUNS = 60
_CALLS = 1000


def plain(ring):
    buffer = ring.buffer
    payload = PAYLOAD
    for _ in range(_CALLS):
        buffer[128:192] = payload


def append(ring):
    payload = PAYLOAD
    for _ in range(_CALLS):
        ring.append(payload, 1, 5)


def main():
    ring = PagedRing(49152, 4096, 4)
    least = {}
    for _ in range(_RUNS):
        for work in (plain, append):
            start = time.ticks_us()
            work(ring)
            spent = time.ticks_diff(time.ticks_us(), start) * 1000 // _CALLS
            least[work.__name__] = min(spent, least.get(work.__name__, spent))
    ring.check()
    print(json.dumps(least))


main()
