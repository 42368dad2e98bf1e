"""Field reports: which test shows that what broke elsewhere cannot, as docs/field-reports.md.

A test or case anywhere in tests_host names the public reports that it answers in a line of its
docstring, by the names of `field_report_lines`:

    Report: lib#94, EMS-ESP32#305.

What is a fault stands in `evidence`.
"""

import re
from pathlib import Path

from tools import evidence
from tools.evidence import ROOT, Shown
from tools.field_report_lines import GROUPS, PROJECTS

DOCUMENT = ROOT / "docs" / "field-reports.md"
TESTS = ROOT / "tests_host"

_LINE = re.compile(r"^\s*Report: (.*?)\.?\s*$", re.MULTILINE)
_HEAD = """\
# What broke elsewhere

Firmware of this kind has failed in public for years, mostly in the same few ways. These are such
reports, what broke there, and the tests here that show that it cannot break so in millpond. This
page is written by `python -m tools field-reports` from what the tests say of themselves; a test
fails when the page is stale, when a report has no test, or when a test names an unknown one.

The tests are in `tests_host`. Those in `core` and `app` run on CPython and inside MicroPython,
64-bit and 32-bit; those in `link` run MicroPython against a real broker or one that was written to
misbehave. `cases_*.py` are run by `link/test_inside.py`, some of them in time-lapse: the whole
program, with the clock put on whenever nothing is left to do.
"""


def reports() -> list[str]:
    """The names of all reports."""
    return [name for _, rows in GROUPS for names, _ in rows for name in names]


def named_in(source: str) -> dict[str, list[str]]:
    """For each test or case of a file's text that names reports, which."""
    found = {}
    for test, says in evidence.functions(source, "test_", "case_"):
        names = [name.strip() for line in _LINE.findall(says) for name in line.split(",")]
        if names:
            found[test] = names
    return found


def collect(folder: Path = TESTS) -> Shown:
    """The tests that answer each report as file::name, in the order of the files and within."""
    paths = [p for p in folder.rglob("*.py") if p.name.startswith(("test_", "cases_"))]
    return evidence.collect(
        paths, named_in, lambda path, test: f"{path.relative_to(folder).as_posix()}::{test}"
    )


def faults(shown: Shown) -> list[str]:
    """What is wrong, in words; empty when nothing is."""
    return evidence.faults(shown, reports(), "not in tools/field_report_lines.py")


def markdown(shown: Shown) -> str:
    """The text of docs/field-reports.md."""
    parts = [_HEAD]
    for heading, rows in GROUPS:
        parts.append(f"\n## {heading}\n\n| report | what broke there | shown here by |\n")
        parts.append("| --- | --- | --- |\n")
        for names, words in rows:
            tests = dict.fromkeys(test for name in names for test in shown.get(name, []))
            cells = ", ".join(map(_in_full, names)), words, "<br>".join(f"`{t}`" for t in tests)
            parts.append("| " + " | ".join(cells) + " |\n")
    return "".join(parts)


def _in_full(name: str) -> str:
    """A report as others name it: micropython-lib#94."""
    project, mark, rest = re.split("([#/])", name, maxsplit=1)
    project = PROJECTS.get(project, project)
    return f"{project}#{rest}" if mark == "#" else f"{project}, its code ({rest})"


def command() -> None:
    """Write docs/field-reports.md, unless a report or a test is at fault."""
    shown = collect()
    evidence.write(DOCUMENT, markdown(shown), faults(shown), f"{len(reports())} reports")
