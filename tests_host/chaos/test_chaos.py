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
from tests_host.chaos.stage import DATA, Stage
from tools.proxy import DOWN

LEVELS = range(1, dict((row[0], row[3]) for row in TABLE)["mqtt.qos"][1] + 1)
FAULTS = int(os.environ.get("CHAOS") or 200)
SEED = os.environ.get("CHAOS_SEED") or str(random.randrange(1 << 31))
BREATH = 50  # faults
HELD = 200  # items: what waits for a second where nothing is wrong
HEAP_BOUND = 4096  # bytes
WORDS = re.compile(
    r"connection refused: no broker listens at 127\.0\.0\.1:\d+"
    r"|the broker at 127\.0\.0\.1:\d+ closed the connection"
    r"(, \d+ times in a row on the greetings: does it allow status and tags\?)?"
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
        ran_s = stage.seconds() - stage.runs_since
        counters, gauges = stage.account()
        _judge(stage, counters, gauges, faults)
        assert (stage.board.boots, gauges["uptime_s"] > ran_s - 2) == (1, True)
        print(f"free heap: {free} bytes at the start, {left} at the end")
        assert left > free - HEAP_BOUND


def _act_all(stage: Stage, faults) -> None:
    for number, fault in enumerate(faults, 1):
        if fault.settled:
            stage.wait_for_delivery()
        last = stage.watch.last
        held = f"held {last.held if last else '?':5}"
        print(f"{stage.seconds():7.1f} s {number:4d}  {held}  {_shown(fault)}", flush=True)
        act(stage, fault)
        for reason in stage.follow():
            print(f"{'':16}{reason}", flush=True)
        if number % BREATH == 0:
            _breathe(stage)


def _breathe(stage: Stage) -> None:
    """Left in peace, the board says what was wrong last, and gets rid of all that has waited."""
    reason = stage.reason_on_page()
    stage.follow()
    assert reason in (*stage.reasons, "stopped"), "the status page knows no reason"
    stage.wait_until_held(HELD)


def _judge(stage: Stage, counters: dict, gauges: dict, faults) -> None:
    """What was sent again may come twice at QoS 1; at QoS 2 only where the session was lost."""
    verdict = stage.audit.verdict(counters)
    stage.follow()
    link = gauges["link"]
    print(verdict)
    print(link)
    print(f"{stage.seconds():.1f} s, {len(stage.tap.repeats)} messages came twice;", end=" ")
    print("connections ended by:", Counter(stage.reasons))
    assert (verdict.faults, verdict.dropped) == ([], {})
    assert len(stage.tap.repeats) <= link["resent"]
    if stage.qos == 2:
        lost = sum(fault.kind in SESSION_LOST for fault in faults)
        assert stage.tap.repeats.count(DATA) <= lost, "QoS 2, and the session was there"
    assert stage.proxy.repeated[DOWN] < len(faults) // 20 or link["stray_acks"]
    assert (gauges["tasks"], gauges["unwell"], gauges["last_error"]) == ({}, [], "")
    assert stage.complaints == []
    assert [reason for reason in stage.reasons if not WORDS.fullmatch(reason)] == []


def _shown(fault) -> str:
    text = f"{fault.kind:18} {fault.ms:4d} ms, {fault.count:3d}"
    return f"{text}{', under ' + fault.under if fault.under else ''}{'' if fault.settled else ' !'}"
