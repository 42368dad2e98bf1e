"""Bring the build onto a board with mpremote's transport, and see that it runs.

The program on the board is stopped by Ctrl-C. When the board has all it should have, the program
goes on, with nothing lost. Else a soft reset ends it, files that differ are copied, files that an
earlier deploy put there and that are no longer wanted are removed, the board is reset, and we wait
for what main.py says. Ours is what the board's manifest names (tools.tree); the
manifest names old and new files while we work, so that a deploy cut short is made good by the
next. config.json and all other files of the user's stay as they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from tools import ports, program, tree
from tools.build import BOARD, BuildError, build
from tools.remote import BoardError, Remote

CONFIG = "config.json"
_BLOCK = 4096
_START_S = 30
_ENDED = program.RUNS + r"|>>> "
_LAST = ("boot.py", "main.py")

_NO_CONFIG = """\
There is no config.json on the board yet. To make one from the template:
  cp config.example.json config.json      and edit it
  mpremote connect {port} cp config.json :config.json
  mpremote connect {port} reset"""


class Lines:
    """Shows progress as a line for each file."""

    def __init__(self, echo=typer.echo):
        self._echo = echo

    def say(self, text: str) -> None:
        self._echo(text)

    @contextmanager
    def copying(self, files: int, size: int) -> Iterator["Lines"]:
        self._left = files
        self._all = files
        yield self

    @contextmanager
    def file(self, path: str, size: int) -> Iterator[None]:
        yield None
        self._left -= 1
        self._echo(f"copied {path} ({size} bytes), {self._all - self._left} of {self._all}")


class Bar:
    """Shows progress as a bar, on a terminal."""

    def __init__(self, console: Console):
        self._console = console

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False)

    @contextmanager
    def copying(self, files: int, size: int) -> Iterator["Bar"]:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Progress(*columns, console=self._console, transient=True) as self._progress:
            self._task = self._progress.add_task(f"{files} files", total=size)
            yield self

    @contextmanager
    def file(self, path: str, size: int) -> Iterator:
        self._progress.update(self._task, description=path)
        start = self._progress.tasks[self._task].completed
        yield lambda done: self._progress.update(self._task, completed=start + done)
        self._progress.update(self._task, completed=start + size)


def needed_bytes(sizes: dict[str, int], present: dict[str, int]) -> int:
    """The flash that copying files of `sizes` takes, where `present` sizes are replaced.

    A file being written needs its space beside that of the one it replaces.
    """
    blocks = sum(-(-size // _BLOCK) for size in sizes.values())
    blocks -= sum(-(-present.get(path, 0) // _BLOCK) for path in sizes)
    spare = max((-(-size // _BLOCK) for size in sizes.values()), default=0)
    return max(0, blocks + spare) * _BLOCK if sizes else 0


def bring(remote: Remote, built: Path, show: Lines | Bar) -> tree.Plan:
    """Make the board's files those of the tree `built`; what was done. The program is stopped."""
    remote.restart()
    wanted, ours, found, todo = _survey(remote, built)
    if ours != wanted:
        remote.write(tree.MANIFEST, tree.dump(ours | wanted))
    _remove(remote, todo.remove, show)
    _copy(remote, built, todo.copy, {path: size for path, (size, _) in found.items()}, show)
    if ours != wanted:
        remote.write(tree.MANIFEST, tree.dump(wanted))
    show.say(f"{len(todo.copy)} copied, {len(todo.same)} up to date, {len(todo.remove)} removed")
    return todo


def _survey(remote: Remote, built: Path):
    """The wanted manifest, the board's, its files' sizes and digests, and what is to be done."""
    wanted = tree.scan(built)
    ours = tree.parse(remote.read(tree.MANIFEST))
    found = remote.digests(tree.of_interest(wanted, ours))
    todo = tree.plan(wanted, ours, {path: digest for path, (_, digest) in found.items()})
    return wanted, ours, found, todo


def _remove(remote: Remote, paths: list[str], show: Lines | Bar) -> None:
    for path in paths:
        remote.remove(path)
        show.say(f"removed {path}")
    for folder in reversed(tree.folders(paths)):
        remote.remove_folder_if_empty(folder)


def _copy(
    remote: Remote, built: Path, paths: list[str], present: dict[str, int], show: Lines | Bar
) -> None:
    sizes = {path: (built / path).stat().st_size for path in paths}
    needed, free = needed_bytes(sizes, present), remote.free_bytes()
    if needed > free:
        raise BoardError(
            f"{remote.port}: no space: {needed // 1024} KB are needed, {free // 1024} KB are free"
        )
    for folder in tree.folders(paths):
        remote.make_folder(folder)
    with show.copying(len(paths), sum(sizes.values())):
        for path in sorted(paths, key=lambda path: (path in _LAST, path)):
            with show.file(path, sizes[path]) as progress:
                remote.write(path, (built / path).read_bytes(), progress)


def start(remote: Remote, show: Lines | Bar) -> bool:
    """Reset the board; True when the program runs, or waits for its first configuration."""
    has_config = bool(remote.digests([CONFIG]))
    remote.reset()
    said = remote.wait_for(_ENDED, _START_S)
    if said is None:
        show.say("The board was reset; its start was not seen: look with `make repl`.")
        return remote.lost
    if program.RUNS in said:
        show.say("The program runs.")
        return True
    if not has_config:
        show.say(_NO_CONFIG.format(port=remote.port))
        return True
    show.say("The program does not run; the board says:\n" + said.replace("\r\n", "\n"))
    return False


def deploy(port: str, built: Path, show: Lines | Bar, reset: bool = False) -> bool:
    """Bring the tree `built` onto the board at `port`; whether the program then runs.

    A board that has it all, with the program in memory, is not reset unless `reset` is true.
    """
    with Remote(port) as remote:
        if _is_current(remote, built, show, reset):
            return True
        bring(remote, built, show)
        return start(remote, show)


def _is_current(remote: Remote, built: Path, show: Lines | Bar, reset: bool) -> bool:
    """Whether nothing is to be done: the program, which holds what a reset would lose, goes on.

    Else it is stopped, and what will be lost has been said.
    """
    try:
        was_running = program.stop(remote)
        held = program.held(remote)
    except BoardError:
        return False
    if held < 0:
        return False
    wanted, ours, _, todo = _survey(remote, built)
    files = len(todo.copy) + len(todo.remove)
    if files or reset:
        show.say(
            f"Files that differ: {files}. A reset follows; buffered data is lost: {held} items."
        )
        return False
    if ours != wanted:
        remote.write(tree.MANIFEST, tree.dump(wanted))
    show.say(f"{len(todo.same)} files, all up to date; not reset, buffered data kept.")
    if was_running:
        program.resume(remote)
    else:
        show.say("The program is stopped, as it was; resume() at the REPL lets it go on.")
    return True


def command(
    port: ports.PortOption = "",
    source: Annotated[bool, typer.Option("--source", help="Deploy .py instead of .mpy")] = False,
    march: Annotated[str, typer.Option(help="For native code: xtensawin, rv32imc, ...")] = "",
    reset: Annotated[
        bool, typer.Option("--reset", help="Reset the board even if it is up to date")
    ] = False,
) -> None:
    """Build, bring the build onto a board, reset it if that changed it, and see that it runs."""
    if not port:
        typer.echo(ports.none_given(), err=True)
        raise typer.Exit(2)
    console = Console()
    try:
        build(source=source, march=march)
        runs = deploy(port, BOARD, Bar(console) if console.is_terminal else Lines(), reset)
    except (BuildError, BoardError) as error:
        typer.echo(f"deploy failed: {error}", err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(0 if runs else 1)
