"""Records what the state machines do as traces, which `tests_host/core/test_replay.py` does again.

    make traces         write tests_host/core/traces_*.py anew

First come the sequences written by hand (sequences.py). Then each machine runs many examples,
always the same ones; of these a few are kept, chosen one by one so that each adds most, for its
length, to what the traces show together. What a trace shows is, for each of its steps, the
operation with the kind of its result, with the counters it changed, and after which other one it
came; and that the operation was done in such a configuration.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests_host.models.machine import Machine
from tests_host.models.sequences import SEQUENCES
from tests_host.models.test_dispatch_machine import DispatchMachine
from tests_host.models.test_queue_machine import QueueMachine
from tests_host.models.test_ring_machine import RingMachine

CORE = Path(__file__).resolve().parent.parent / "core"
MACHINES = {"dispatch": DispatchMachine, "queue": QueueMachine, "ring": RingMachine}

_EXAMPLES = 1000
_BYTES = 50_000
_LONGEST = 150

_HEADER = '''"""Recorded traces, written by `make traces`."""

# fmt: off
# ruff: noqa: E501

TRACES = (
'''


def record(machine: type[Machine], examples: int, **options) -> list[tuple]:
    """The traces of that many examples of a machine."""
    traces = []

    class Recorded(machine):
        recorder = traces.append

    options = {"derandomize": True, "stateful_step_count": 40} | options
    limits = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **options,
    )
    run_state_machine_as_test(Recorded, settings=limits)
    return traces


def shown(machine: type[Machine], trace: tuple) -> set[tuple]:
    """What a trace shows."""
    config, steps = trace
    marks = machine.marks(config)
    features = set()
    before = ""
    for (name, *_), result, changed in steps:
        features.add((name, _kind(result), changed[::2]))
        features.add((before, name, _kind(result), bool(changed)))
        before = name
        for mark in marks:
            features.add((mark, name, bool(changed)))
    return features


def _kind(result: object) -> object:
    """A result without its numbers: an error's name, the names of events, or whether it is true."""
    if isinstance(result, str) and "Error" in result:
        return result
    if isinstance(result, tuple) and result and isinstance(result[0], tuple):
        return tuple(event[0] for event in result)
    return bool(result)


def by_hand(name: str) -> list[tuple]:
    """The traces of the sequences written by hand."""
    return [MACHINES[name].trace(*sequence[1:]) for sequence in SEQUENCES[name]]


def choose(machine: type[Machine], traces: Iterable[tuple], limit: int) -> list[tuple]:
    """The traces that together show most, in at most `limit` bytes of text."""
    left = [(trace, shown(machine, trace), len(text([trace]))) for trace in traces if trace[1]]
    chosen = []
    seen = set()
    while True:
        left = [one for one in left if one[1] - seen and one[2] <= limit]
        if not left:
            return chosen
        trace, features, size = max(left, key=lambda one: len(one[1] - seen) / one[2])
        chosen.append(trace)
        seen |= features
        limit -= size


def text(traces: list[tuple]) -> str:
    """A module with the traces, a step a line."""
    lines = [_HEADER]
    for config, steps in traces:
        lines.append(f"({_compact(config)}, (\n")
        lines += [f"{_compact(step)},\n" for step in steps]
        lines.append(")),\n")
    lines.append(")\n")
    return "".join(lines)


def _compact(value: object) -> str:
    if isinstance(value, tuple):
        return f"({','.join(map(_compact, value))}{',' * (len(value) == 1)})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def main() -> None:
    for name, machine in MACHINES.items():
        traces = record(machine, _EXAMPLES)
        # A page of 64 KB is much to lay out, and to copy, on a small interpreter.
        traces = [one for one in traces if len(one[1]) <= _LONGEST and 65536 not in one[0]]
        chosen = by_hand(name) + choose(machine, traces, _BYTES)
        path = CORE / f"traces_{name}.py"
        path.write_text(text(chosen))
        steps = sum(len(steps) for _, steps in chosen)
        print(f"{path.name}: {len(chosen)} traces of {steps} steps, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
