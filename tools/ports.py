"""Which serial port a command is meant for: the one given, or the running virtual board's."""

import os
from pathlib import Path
from typing import Annotated

import typer
from serial.tools import list_ports

VBOARD_PORT = Path(__file__).resolve().parent.parent / "build" / "vboard.port"

PortOption = Annotated[str, typer.Option(envvar="PORT", help="Serial port of the board")]

_NO_HARDWARE = "n/a"
_START_ONE = "start a virtual board with `make vboard`"


def virtual_board() -> str:
    """The port of a virtual board that `vboard` runs, "" for none."""
    try:
        port, pid = VBOARD_PORT.read_text().split()
        os.kill(int(pid), 0)
    except (OSError, ValueError):
        return ""
    return port if Path(port).exists() else ""


def given_or_found(port: str) -> str:
    """`port`, or the running virtual board's, which is then said on stderr; Exit(2) for none."""
    if port:
        return port
    found = virtual_board()
    if not found:
        typer.echo(none_given(), err=True)
        raise typer.Exit(2)
    typer.echo(f"the virtual board at {found}:", err=True)
    return found


def found() -> list[str]:
    """A line for each port a board may be at. Ports that the system lists without any hardware
    behind them, as PCs' unused /dev/ttyS*, are left out."""
    ports = sorted(port for port in list_ports.comports() if port.hwid != _NO_HARDWARE)
    lines = [f"{port.device}  {port.description}" for port in ports]
    if virtual := virtual_board():
        lines.append(f"{virtual}  virtual board")
    return lines


def none_given() -> str:
    """What to tell a user who named no port."""
    lines = found()
    if not lines:
        return (
            "no port given (PORT=...), and no board found:\n"
            f"{_START_ONE}, or connect a board and name its port (PORT=/dev/ttyUSB0)"
        )
    return (
        f"no port given (PORT=...): {_START_ONE},\nor name your board's port; found:\n  "
        + "\n  ".join(lines)
    )
