"""`vboard`: build, put the build onto a virtual board's flash, and run the board until Ctrl-C.

The flash is a directory that stays from one run to the next, and only one board at a time has it:
DIR.lock beside it says which. The port is printed, and kept in build/vboard.port while the board
runs, where `repl` and `status` find it; of several boards the first has that file.
"""

import os
import re
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tools import ports
from tools.build import PROJECT, BuildError
from tools.claim import Claim, Taken
from tools.vboard.banner import banner
from tools.vboard.board import HEAP, VirtualBoard, VirtualBoardError
from tools.vboard.flash import configuration, make_flash, reason_against
from tools.vboard.foreground import Foreground

FLASH = PROJECT / "build" / "vboard"
_SHOW_S = 0.1
_SIZE = re.compile(r"(\d+)([KMkm]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
_LEAST_HEAP, _MOST_HEAP = 32 << 10, 1 << 30


def heap_size(text: str) -> str:
    """A heap size that MicroPython accepts; BadParameter with the accepted form."""
    found = _SIZE.fullmatch(text)
    size = int(found[1]) * _UNITS[found[2].upper()] if found else 0
    if not _LEAST_HEAP <= size <= _MOST_HEAP:
        raise typer.BadParameter(f"{text!r}: a size from 32K to 1024M, such as 512K or 2M")
    return text


def _claims(stack: ExitStack, root: Path) -> tuple[Claim, Claim | None]:
    """The flash, and, if no other board has it, the file in which `status` looks for a port."""
    root = root.resolve()
    beside = root.with_name(root.name + ".lock")
    try:
        flash = stack.enter_context(Claim(beside, f"pid {os.getpid()}"))
    except Taken as taken:
        shown = root.relative_to(PROJECT) if root.is_relative_to(PROJECT) else root
        raise VirtualBoardError(
            f"{shown} is in use by another virtual board ({taken});"
            " give --root DIR (make vboard ROOT=DIR)"
        ) from None
    try:
        return flash, stack.enter_context(Claim(ports.VBOARD_PORT))
    except Taken:
        return flash, None


def _run(board: VirtualBoard, quiet: bool) -> None:
    """Show the board's output until it ends or Ctrl-C."""
    foreground = Foreground(lambda text: typer.style(text, dim=True))
    shown = 0
    while board.alive:
        end = board.mark()
        if end > shown and not quiet:
            typer.echo(foreground.feed(board.output(shown, end)), nl=False)
        shown = end
        time.sleep(_SHOW_S)


def _start_and_run(root: Path, config: Path | None, source: bool, heap: str, quiet: bool) -> None:
    if reason := reason_against(root):
        raise VirtualBoardError(
            f"{root}: a board's flash is written over, and {reason};"
            " give a directory that is empty or new: --root DIR (make vboard ROOT=DIR)"
        )
    with ExitStack() as stack:
        flash, found = _claims(stack, root)
        text = configuration(root, config)
        built = stack.enter_context(tempfile.TemporaryDirectory(prefix="millpond-vboard-"))
        make_flash(root, config=text, source=source, built=Path(built) / "tree")
        board = stack.enter_context(VirtualBoard(root, heap=heap))
        flash.note(f"pid {os.getpid()}, port {board.port}")
        if found:
            found.note(f"{board.port} {os.getpid()}")
        typer.echo(banner(board.port, root, found is not None))
        _run(board, quiet)


def command(
    config: Annotated[Path | None, typer.Option(help="Becomes the board's config.json")] = None,
    root: Annotated[Path, typer.Option(help="The directory that is the board's flash")] = FLASH,
    source: Annotated[bool, typer.Option("--source", help="Use .py instead of .mpy")] = False,
    heap: Annotated[
        str, typer.Option(help="MicroPython's heap, such as 512K or 2M", callback=heap_size)
    ] = HEAP,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show the board's output")] = False,
) -> None:
    """Run a virtual board until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _start_and_run(root, config, source, heap, quiet)
    except KeyboardInterrupt:
        typer.echo("\nvirtual board switched off")
    except (BuildError, VirtualBoardError, OSError) as error:
        typer.echo(f"vboard failed: {error}", err=True)
        raise typer.Exit(1) from None
