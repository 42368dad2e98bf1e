"""Which serial port a command is meant for: the one given, or the running virtual board's."""

import os
from pathlib import Path
from typing import Annotated

import typer
from serial.tools import list_ports

VBOARD_PORT = Path(__file__).resolve().parent.parent / "build" / "vboard.port"

PortOption = Annotated[str, typer.Option(envvar="PORT", help="Serial port of the board")]


def virtual_board() -> str:
    """The port of a virtual board that `vboard` runs, "" for none."""
    try:
        port, pid = VBOARD_PORT.read_text().split()
        os.kill(int(pid), 0)
    except (OSError, ValueError):
        return ""
    return port if Path(port).exists() else ""


def found() -> list[str]:
    """A line for each port a board may be at, as for `mpremote connect list`."""
    lines = [f"{port.device}  {port.description}" for port in sorted(list_ports.comports())]
    if virtual := virtual_board():
        lines.append(f"{virtual}  virtual board")
    return lines


def none_given() -> str:
    """What to tell a user who named no port."""
    lines = found()
    if not lines:
        return "no port given, and none found: connect a board, or start one with `make vboard`"
    return "no port given (PORT=...); found:\n  " + "\n  ".join(lines)
