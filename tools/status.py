"""Print the status page of the program on a board, without losing what it holds.

A running program prints it when we type `s`, and is not disturbed. One that does not answer to
that is stopped by Ctrl-C; we call `status()` and, when it was we who stopped it, `resume()`.
"""

import typer

from tools import ports, program
from tools.remote import BoardError, Remote

RUNNING, STOPPED, NOT_STARTED = "running", "stopped", "not started"
_NOTES = {STOPPED: "(the program is stopped; resume() at the REPL lets it go on)"}


def status(port: str) -> tuple[str, str]:
    """The status page of the board at `port`, and in which state its program is now."""
    with Remote(port) as remote:
        page = program.page_of_running(remote)
        if page is not None:
            return page, RUNNING
        was_running = program.stop(remote)
        if remote.exec("print('status' in globals())").strip() != "True":
            raise BoardError(f"{port}: millpond is not in the board's memory; reset the board")
        page = remote.exec("status()")
        if not was_running:
            return page, NOT_STARTED if program.held(remote) < 0 else STOPPED
        program.resume(remote)
        return page, RUNNING


def command(port: ports.PortOption = "") -> None:
    """Print a running board's status page, and let it go on."""
    port = ports.given_or_found(port)
    try:
        page, state = status(port)
    except BoardError as error:
        typer.echo(f"status failed: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(page.replace("\r\n", "\n").rstrip())
    if state in _NOTES:
        typer.echo(_NOTES[state])
