"""`vboard`: build, put the build onto a virtual board's flash, and run the board until Ctrl-C.

The flash is a directory that stays from one run to the next. The port is printed, and kept in
build/vboard.port while the board runs, where `repl` and `status` find it.
"""

import os
import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from tools import ports
from tools.build import PROJECT, BuildError
from tools.vboard.board import HEAP, VirtualBoard, VirtualBoardError
from tools.vboard.flash import configuration, make_flash

FLASH = PROJECT / "build" / "vboard"
_SHOW_S = 0.1

_HOW = """\
virtual board at {port}
  mpremote connect {port} resume repl     its REPL (Ctrl-C stops the program, Ctrl-] leaves)
  make status                                  its status page
Ctrl-C here switches it off."""


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
        make_flash(root, config=configuration(root, config), source=source)
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
