"""Evidence: which test shows what was promised, for the pages that say so.

A test names what it shows. A claim that no test names is a fault, and so is a name that stands for
no claim; while there is one, the page is not written.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import typer

Shown = dict[str, list[str]]
ROOT = Path(__file__).resolve().parent.parent


def functions(source: str, *prefixes: str) -> Iterator[tuple[str, str]]:
    """Name and docstring of each function of a file's text whose name begins with a prefix."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith(prefixes):
            yield node.name, ast.get_docstring(node) or ""


def collect(
    paths: Iterable[Path], named_in: Callable[[str], dict], title: Callable[[Path, str], str]
) -> Shown:
    """The tests that show each name, in the order of the files and within them.

    `named_in(source)` gives, for each test of a file's text, what it names; `title(path, test)` is
    how the page calls that test.
    """
    shown: Shown = {}
    for path in sorted(paths):
        for test, names in named_in(path.read_text(encoding="utf-8")).items():
            for name in names:
                shown.setdefault(name, []).append(title(path, test))
    return shown


def faults(shown: Shown, known: list[str], otherwise: str) -> list[str]:
    """What is wrong, in words, where `otherwise` says what a name is that is not `known`."""
    missing = [f"{name}: no test names it" for name in known if not shown.get(name)]
    unknown = [
        f"{name}: {otherwise}, but named by {', '.join(shown[name])}"
        for name in sorted(set(shown) - set(known))
    ]
    return missing + unknown


def write(document: Path, text: str, wrong: list[str], summary: str) -> None:
    """Write the page, unless something is at fault."""
    if wrong:
        typer.echo("\n".join(wrong), err=True)
        raise typer.Exit(1)
    document.parent.mkdir(exist_ok=True)
    document.write_text(text, encoding="utf-8")
    typer.echo(f"{document.name}: {summary}, each with its tests")
