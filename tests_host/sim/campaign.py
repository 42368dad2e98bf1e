"""Campaign: many seeds one after the other, and what is to be said of those that fail."""

import gc
import sys

from tests_host.sim import history
from tests_host.sim.breaks import BREAKS
from tests_host.sim.known import KNOWN
from tests_host.sim.run import play

_SHRINKS = 300
_ENOUGH = 3


def shrink(made, broken):
    """The shortest history found that still fails: steps are left out, halves first."""
    config, start, steps = made
    tries = 0
    size = max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps) and tries < _SHRINKS:
            fewer = steps[:at] + steps[at + size :]
            tries += 1
            if play((config, start, fewer), broken):
                steps = fewer
            else:
                at += size
        size //= 2
    return config, start, steps


def tell(seed, wrong, name):
    """Say what went wrong with a seed, how to see it again, and the least that makes it."""
    broken = BREAKS.get(name)
    shortest = shrink(history.draw(seed), broken)
    print("seed {}: {}".format(seed, wrong))
    print("again: .venv/bin/python -m tests_host.sim {} {} {}".format(seed, seed, name).rstrip())
    print("the shortest history that fails: {}".format(play(shortest, broken)))
    print(history.in_words(*shortest))


def level():
    """Bytes of heap in use after one and the same seed: the least of some looks."""
    least = 1 << 29
    for _ in range(5):
        play(0)
        gc.collect()
        least = min(least, gc.mem_alloc())
    return least


def play_known():
    """Play the histories that are kept; the exit code."""
    wrong = [(name, play(KNOWN[name])) for name in KNOWN]
    for name, what in wrong:
        print("{}: {}".format(name, what or "well"))
    return 1 if any([what for _, what in wrong]) else 0


def main(arguments):
    """Play the seeds from the first to the last argument, with a break by name; the exit code.

    "known" for them plays the histories that are kept, and
    "digest" for a name prints the digest of each seed instead.
    """
    if arguments and arguments[0] == "known":
        return play_known()
    first = int(arguments[0]) if arguments else 0
    last = int(arguments[1]) if len(arguments) > 1 else first
    name = arguments[2] if len(arguments) > 2 else ""
    failed = 0
    heap = 0
    for seed in range(first, last + 1):
        digests = []
        wrong = play(seed, BREAKS.get(name), digests)
        if wrong:
            failed += 1
            tell(seed, wrong, name)
            if failed >= _ENOUGH or name in BREAKS:
                break
        if name == "digest":
            print(seed, digests)
        if sys.implementation.name == "micropython" and seed == first + 20:
            heap = level()
    print("{} seeds played, {} failed".format(seed - first + 1, failed))
    if heap:
        print("heap grew by {} bytes".format(level() - heap))
    return 1 if failed else 0
