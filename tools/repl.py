"""Attach to a board's REPL with mpremote, without a reset.

Ctrl-C stops the program, `resume()` lets it go on, Ctrl-] leaves.
"""

import os
import shutil
import sys
from pathlib import Path

from tools import ports


def mpremote_command() -> str:
    """The mpremote of this Python's environment, or of the PATH."""
    beside = Path(sys.executable).parent / "mpremote"
    found = str(beside) if beside.exists() else shutil.which("mpremote")
    if not found:
        raise FileNotFoundError("no `mpremote` command: run `make setup`")
    return found


def command(port: ports.PortOption = "") -> None:
    """Attach to a board's REPL without a reset."""
    port = ports.given_or_found(port)
    mpremote = mpremote_command()
    os.execv(mpremote, [mpremote, "connect", port, "resume", "repl"])
