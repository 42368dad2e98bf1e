"""Field reports: which test shows that what broke elsewhere cannot, as docs/field-reports.md.

A test or case anywhere in tests_host names the public reports that it answers in a line of its
docstring, by the names of `field_report_lines`:

    Report: lib#94, EMS-ESP32#305.

A report that no test names, and a name that is no report, are faults.
"""

import ast
import re
from pathlib import Path

import typer

from tools.field_report_lines import GROUPS, PROJECTS

ROOT = Path(__file__).resolve().parent.parent
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
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("test_", "case_")):
            lines = _LINE.findall(ast.get_docstring(node) or "")
            names = [name.strip() for line in lines for name in line.split(",")]
            if names:
                found[node.name] = names
    return found


def collect(folder: Path = TESTS) -> dict[str, list[str]]:
    """The tests that answer each report as file::name, in the order of the files and within."""
    shown: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        if not path.name.startswith(("test_", "cases_")):
            continue
        for test, names in named_in(path.read_text(encoding="utf-8")).items():
            for name in names:
                shown.setdefault(name, []).append(f"{path.relative_to(folder).as_posix()}::{test}")
    return shown


def faults(shown: dict[str, list[str]]) -> list[str]:
    """What is wrong, in words; empty when nothing is."""
    known = reports()
    missing = [f"{name}: no test names it" for name in known if not shown.get(name)]
    unknown = [
        f"{name}: not in tools/field_report_lines.py, but named by {', '.join(shown[name])}"
        for name in sorted(set(shown) - set(known))
    ]
    return missing + unknown


def markdown(shown: dict[str, list[str]]) -> str:
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
    wrong = faults(shown)
    if wrong:
        typer.echo("\n".join(wrong), err=True)
        raise typer.Exit(1)
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(markdown(shown), encoding="utf-8")
    typer.echo(f"{DOCUMENT.name}: {len(reports())} reports, each with its tests")
