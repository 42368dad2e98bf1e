"""Print the status page of the program on a board, without losing what it holds.

Ctrl-C stops the program at a safe point and leaves it in memory; we call `status()` and, when it
was we who stopped it, type `resume()`.
"""

import typer

from tools import ports
from tools.remote import BoardError, Remote

_STOPPED = "millpond is stopped"
_RUNS = "millpond runs"
_RESUME_S = 15


def status(port: str) -> tuple[str, bool]:
    """The status page of the board at `port`, and whether its program runs (again)."""
    with Remote(port) as remote:
        was_running = _STOPPED in remote.interrupt()
        if remote.exec("print('status' in globals())").strip() != "True":
            raise BoardError(f"{port}: millpond is not in the board's memory; reset the board")
        page = remote.exec("status()")
        if not was_running:
            return page, False
        remote.type_line("resume()")
        if remote.wait_for(_RUNS, _RESUME_S) is None:
            raise BoardError(f"{port}: the program was stopped and did not go on:\n{page}")
        return page, True


def command(port: ports.PortOption = "") -> None:
    """Print a running board's status page, and let it go on."""
    port = port or ports.virtual_board()
    if not port:
        typer.echo(ports.none_given(), err=True)
        raise typer.Exit(2)
    try:
        page, runs = status(port)
    except BoardError as error:
        typer.echo(f"status failed: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(page.replace("\r\n", "\n").rstrip())
    if not runs:
        typer.echo("(the program is stopped; resume() at the REPL lets it go on)")
