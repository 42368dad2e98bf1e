"""Plays seeds: `python -m tests_host.sim FIRST LAST`, or this file in MicroPython.

A seed that fails is told of with the shortest history found that still fails, and how to play it
again. The exit code is 1 when any failed.
"""

import sys

if __name__ == "__main__":
    if sys.implementation.name == "cpython":
        sys.path[1:1] = ["lib", "tests_host/shims", ".deps"]
    from tests_host.sim import run

    run.install()

    from tests_host.sim import campaign

    sys.exit(campaign.main(sys.argv[1:]))
