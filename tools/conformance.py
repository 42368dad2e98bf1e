"""Conformance: which test shows each requirement on DispatchQueue, as docs/conformance.md.

A test of `tests_host/core/test_dispatch*.py` names what it shows in its name or its docstring:
`SRS_09_036`, `D12`. The requirements stand in `conformance_lines`; what is a fault, in `evidence`.
"""

import re
from pathlib import Path

from tools import evidence
from tools.conformance_lines import CHAPTERS, DECISIONS, FIRST_DEVIATION
from tools.evidence import ROOT, Shown

DOCUMENT = ROOT / "docs" / "conformance.md"
TESTS = ROOT / "tests_host" / "core"
PATTERN = "test_dispatch*.py"

_NAMED = re.compile(r"(?<![A-Za-z0-9])(SRS_09_\d+|D\d+)(?![A-Za-z0-9])")
_HEAD = """\
# Conformance of DispatchQueue

`millpond.DispatchQueue` is the processing queue of seed 002. This page is written by
`python -m tools conformance` from the tests' own names and docstrings; a test fails when it is
stale, when a requirement has no test, or when a test names a requirement that does not exist.

The tests are those of `tests_host/core/test_dispatch*.py`. Each runs on CPython and inside
MicroPython. The numbers 003, 046, 052 and 056 do not exist.

Python is not C: a NULL handle becomes a wrong argument, which raises; what can fail at run time
returns 0; what is allocated in the seed is a slot here, made once.

Of callbacks that raise, and of calls within calls, the seed cannot speak. Here

- an exception of on_process goes to the caller of do_work, and its item is told ERROR; one of
  on_complete goes to the caller too, and the items still to be told are told by the next call;
- a do_work within do_work, and a remove_all within remove_all, leave the work to the one running;
- a move_all_back_to_pending within do_work ends its processing, as what it moves goes first;
- time is what the clock advances; the seconds it takes back count as none.
"""
_KEPT = """
## What the text leaves open, settled as the original behaves
"""
_DEVIATIONS = """
## Declared deviations from the original
"""


def srs(number: int) -> str:
    """A requirement's name, as tests use it."""
    return f"SRS_09_{number:03}"


def requirements() -> list[str]:
    """The names of all requirements."""
    numbered = [srs(row[0]) for _, rows in CHAPTERS for row in rows]
    return numbered + [f"D{row[0]}" for row in DECISIONS]


def named_in(source: str) -> dict[str, set[str]]:
    """For each test function of a file's text, what it names."""
    tests = evidence.functions(source, "test_")
    return {name: set(_NAMED.findall(f"{name} {says}")) for name, says in tests}


def collect(folder: Path = TESTS) -> Shown:
    """The tests that show each name, in the order of the files and within them."""
    return evidence.collect(folder.glob(PATTERN), named_in, lambda path, test: test)


def faults(shown: Shown) -> list[str]:
    """What is wrong, in words; empty when nothing is."""
    return evidence.faults(shown, requirements(), "no such requirement")


def markdown(shown: Shown) -> str:
    """The text of docs/conformance.md."""
    parts = [_HEAD]
    for heading, rows in CHAPTERS:
        parts.append(f"\n## {heading}\n")
        table = [(f"{n:03}", asks, how, _met(where), srs(n)) for n, asks, how, where in rows]
        parts.append(_table(("SRS 09", "asks", "here", "met in", "shown by"), table, shown))
    for heading, rows in (
        (_KEPT, [row for row in DECISIONS if row[0] < FIRST_DEVIATION]),
        (_DEVIATIONS, [row for row in DECISIONS if row[0] >= FIRST_DEVIATION]),
    ):
        parts.append(heading)
        table = [(f"D{n}", says, _met(where), f"D{n}") for n, says, where in rows]
        parts.append(_table(("", "says", "met in", "shown by"), table, shown))
    return "\n".join(parts)


def _met(where: str) -> str:
    return "`DispatchQueue`" if where == "__init__" else f"`DispatchQueue.{where}`"


def _table(head: tuple, rows: list[tuple], shown: Shown) -> str:
    """Rows whose last cell is a requirement's name, which becomes its tests."""
    lines = [head, ("---",) * len(head)]
    for *cells, name in rows:
        lines.append((*cells, "<br>".join(f"`{test}`" for test in shown.get(name, []))))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def command() -> None:
    """Write docs/conformance.md, unless a requirement or a test is at fault."""
    shown = collect()
    summary = f"{len(requirements())} requirements"
    evidence.write(DOCUMENT, markdown(shown), faults(shown), summary)
