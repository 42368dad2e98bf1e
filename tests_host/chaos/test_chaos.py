"""Chaos on the real thing: 200 faults between a virtual board and mosquitto, and nothing lost.

The order of the faults comes from a seed, which stands at the head of what a failing run prints:
`CHAOS_SEED=n` runs that order again, `CHAOS=n` that many faults (`make soak CHAOS=n`). How the run
is judged stands in `stage`; what the faults are, in `plan`.
"""

import contextlib
import os
import random
import re
from collections import Counter

import pytest

from firmware.config import TABLE
from tests_host.chaos.acts import act
from tests_host.chaos.plan import SESSION_LOST, plan
from tests_host.chaos.stage import Stage

LEVELS = range(1, dict((row[0], row[3]) for row in TABLE)["mqtt.qos"][1] + 1)
FAULTS = int(os.environ.get("CHAOS") or 200)
SEED = os.environ.get("CHAOS_SEED") or str(random.randrange(1 << 31))
ASK_EVERY = 20  # faults
HEAP_BOUND = 4096  # bytes
WORDS = re.compile(
    r"connection refused: no broker listens at 127\.0\.0\.1:\d+"
    r"|the broker at 127\.0\.0\.1:\d+ closed the connection"
    r"|no CONNACK within 1 s|TCP connection not made within 1 s"
    r"|no acknowledgement within 1 s|no answer to a ping within \d+ s"
)


@pytest.mark.parametrize("qos", LEVELS)
@pytest.mark.timeout(120 + 5 * FAULTS)
def test_nothing_is_lost_in_chaos(qos, tmp_path):
    faults = plan(f"{SEED}/{qos}", FAULTS // len(LEVELS))
    print(f"CHAOS_SEED={SEED} CHAOS={FAULTS}: {len(faults)} faults at QoS {qos}", flush=True)
    with contextlib.ExitStack() as stack:
        stage = Stage(stack, tmp_path, qos)
        stage.proxy.reset()
        stage.wait_for_delivery(10)
        free = stage.free_bytes()
        _act_all(stage, faults)
        stage.drain()
        # Before the program is stopped for good: its heap must be as it was, but for garbage.
        left = stage.free_bytes()
        counters, gauges = stage.account()
        _judge(stage, counters, gauges, faults)
        print(f"free heap: {free} bytes at the start, {left} at the end")
        assert left > free - HEAP_BOUND


def _act_all(stage: Stage, faults) -> None:
    for number, fault in enumerate(faults, 1):
        if fault.settled:
            stage.wait_for_delivery()
        print(f"{stage.seconds():7.1f} s {number:4d}  {_shown(fault)}", flush=True)
        act(stage, fault)
        for reason in stage.follow():
            print(f"{'':16}{reason}", flush=True)
        if number % ASK_EVERY == 0:
            reason = stage.reason_on_page()
            stage.follow()
            assert reason in (*stage.reasons, "stopped"), "the status page knows no reason"
    stage.wait_for_delivery()


def _judge(stage: Stage, counters: dict, gauges: dict, faults) -> None:
    verdict = stage.audit.verdict(counters)
    stage.follow()
    link = gauges["link"]
    print(verdict)
    print(link)
    print(f"{stage.seconds():.1f} s, {len(stage.tap.repeats)} messages came twice;", end=" ")
    print("connections ended by:", Counter(stage.reasons))
    assert not verdict.faults
    assert len(stage.tap.repeats) <= _repeats_allowed(stage, link, faults)
    assert stage.proxy.repeated["down"] == 0 or link["stray_acks"] > 0
    assert stage.board.boots == 1
    assert gauges["uptime_s"] > stage.seconds() - 30
    assert (gauges["tasks"], gauges["unwell"], gauges["last_error"]) == ({}, [], "")
    assert "Traceback" not in stage.console
    assert [reason for reason in stage.reasons if not WORDS.fullmatch(reason)] == []


def _repeats_allowed(stage: Stage, link: dict, faults) -> int:
    """QoS 1 may come twice where it was sent again, QoS 2 only where the session was lost."""
    if stage.qos == 1:
        return link["resent"]
    return sum(fault.kind in SESSION_LOST for fault in faults)


def _shown(fault) -> str:
    text = f"{fault.kind:18} {fault.ms:4d} ms, {fault.count:3d}"
    return f"{text}{', under ' + fault.under if fault.under else ''}{'' if fault.settled else ' !'}"
