"""Records what the state machines do as traces, for `tests_host/core/test_replay.py`.

    python -m tests_host.models.record        write tests_host/core/traces_*.py anew

Each machine runs many examples, always the same ones; of these a few are kept, chosen one by one
so that each adds most to what the traces show together. What a trace shows is, for each of its
steps, the operation with the kind of its result and with the counters it changed, and those in
the trace's configuration.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests_host.models.machine import Machine

CORE = Path(__file__).resolve().parent.parent / "core"

_HEADER = '''"""Recorded traces ({count}): written by `python -m tests_host.models.record`, not by hand."""

# fmt: off
# ruff: noqa: E501

TRACES = (
'''


def record(machine: type[Machine], examples: int, **options) -> list[tuple]:
    """The traces of that many examples of a machine."""
    traces = []

    class Recorded(machine):
        recorder = traces.append

    limits = settings(max_examples=examples, database=None, deadline=None, **options)
    run_state_machine_as_test(Recorded, settings=limits)
    return traces


def shown(machine: type[Machine], trace: tuple) -> set[tuple]:
    """What a trace shows."""
    config, steps = trace
    marks = machine.marks(config)
    features = set()
    for operation, result, changed in steps:
        places = changed[::2]
        kind = result if isinstance(result, str) else bool(result)
        feature = (operation[0], kind, places)
        features.add(feature)
        for mark in marks:
            features.add((mark, operation[0], kind, len(places)))
    return features


def choose(machine: type[Machine], traces: Iterable[tuple], number: int) -> list[tuple]:
    """The `number` of traces that together show most."""
    left = [(trace, shown(machine, trace)) for trace in traces if trace[1]]
    chosen = []
    seen = set()
    while left and len(chosen) < number:
        best = max(left, key=lambda one: len(one[1] - seen) / len(one[0][1]))
        left.remove(best)
        if not best[1] - seen:
            break
        seen |= best[1]
        chosen.append(best[0])
    return chosen


def text(traces: list[tuple]) -> str:
    """A module with the traces, a step a line."""
    lines = [_HEADER.format(count=len(traces))]
    for config, steps in traces:
        lines.append(f"({_compact(config)}, (\n")
        lines += [f"{_compact(step)},\n" for step in steps]
        lines.append(")),\n")
    lines.append(")\n")
    return "".join(lines)


def _compact(values: object) -> str:
    return repr(values).replace(", ", ",").replace("'", '"')
