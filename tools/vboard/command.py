"""`vboard`: build, put the build onto a virtual board's flash, and run the board until Ctrl-C.

The flash is a directory that stays from one run to the next. The port is printed, and kept in
build/vboard.port while the board runs, where `repl` and `status` find it.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from tools import ports, tree
from tools.build import BOARD, EXAMPLE, PROJECT, BuildError, build
from tools.vboard.board import HEAP, VirtualBoard, VirtualBoardError

FLASH = PROJECT / "build" / "vboard"
CONFIG = "config.json"

_SHOW_S = 0.1

_HOW = """\
virtual board at {port}
  mpremote connect {port} resume repl     its REPL (Ctrl-C stops the program, Ctrl-] leaves)
  make status                                  its status page
Ctrl-C here switches it off."""


def make_flash(
    root: Path, *, config: str | None = None, source: bool = False, built: Path = BOARD
) -> Path:
    """Build, and deploy to the directory `root`; `config` is the text of its config.json."""
    build(built, source=source)
    tree.install(built, root)
    if config is not None:
        (root / CONFIG).write_text(config)
    return root


def _configuration(root: Path, given: Path | None) -> str | None:
    """The configuration to put into flash: the file given, nothing where flash has one, the
    project's config.json, or else the example with a broker on this computer."""
    if given:
        return given.read_text()
    if (root / CONFIG).exists():
        return None
    if (PROJECT / CONFIG).exists():
        return (PROJECT / CONFIG).read_text()
    example = json.loads((PROJECT / EXAMPLE).read_text())
    example["mqtt"]["host"] = "127.0.0.1"
    return json.dumps(example, indent=2)


def _run(board: VirtualBoard, quiet: bool) -> None:
    """Show the board's output until it ends or Ctrl-C."""
    shown = 0
    while board.alive:
        end = board.mark()
        if end > shown and not quiet:
            typer.echo(board.output(shown, end).replace("\r", ""), nl=False)
        shown = end
        time.sleep(_SHOW_S)


def command(
    config: Annotated[Path | None, typer.Option(help="Becomes the board's config.json")] = None,
    root: Annotated[Path, typer.Option(help="The directory that is the board's flash")] = FLASH,
    source: Annotated[bool, typer.Option("--source", help="Use .py instead of .mpy")] = False,
    heap: Annotated[str, typer.Option(help="MicroPython's heap")] = HEAP,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show the board's output")] = False,
) -> None:
    """Run a virtual board until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        make_flash(root, config=_configuration(root, config), source=source)
        with VirtualBoard(root, heap=heap) as board:
            ports.VBOARD_PORT.write_text(f"{board.port} {os.getpid()}\n")
            typer.echo(_HOW.format(port=board.port))
            _run(board, quiet)
    except KeyboardInterrupt:
        typer.echo("\nvirtual board switched off")
    except (BuildError, VirtualBoardError, OSError) as error:
        typer.echo(f"vboard failed: {error}", err=True)
        raise typer.Exit(1) from None
    finally:
        ports.VBOARD_PORT.unlink(missing_ok=True)
