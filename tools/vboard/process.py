"""One run of MicroPython, from reset to reset.

Ctrl-C: while code runs with the interrupt character on (`micropython.kbd_intr`), MicroPython has
a handler for SIGINT; else SIGINT would kill it. Whether it has one stands in /proc. The process
is stopped while we look and send, so that the answer is still true when the signal arrives. So
Ctrl-C is an interrupt when wanted, else an ordinary byte, as an ESP32's UART driver has it.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def micropython_command() -> str:
    """$MICROPYTHON, or the `micropython` of this Python's environment, or of the PATH."""
    beside = Path(sys.executable).parent / "micropython"
    found = os.environ.get("MICROPYTHON") or (beside if beside.exists() else None)
    found = found or shutil.which("micropython")
    if not found:
        raise FileNotFoundError("no `micropython` command: run `make setup`, or set MICROPYTHON")
    return str(found)


class Process:
    """MicroPython, started at once, with console `uart_fd` and wire `wire_fd`."""

    def __init__(self, root: Path, uart_fd: int, wire_fd: int, heap: str, settings: dict[str, str]):
        command = [micropython_command(), "-X", f"heapsize={heap}", "-i"]
        command.append(str(HERE / "inside" / "start.py"))
        if dying_with_us := shutil.which("setpriv"):
            command[:0] = [dying_with_us, "--pdeathsig", "KILL"]
        self._popen = subprocess.Popen(
            command,
            stdin=uart_fd,
            stdout=uart_fd,
            stderr=uart_fd,
            pass_fds=[wire_fd],
            cwd=root,
            env=self._environment(root, wire_fd, settings),
            start_new_session=True,
        )
        self._pidfd = os.pidfd_open(self._popen.pid)

    @staticmethod
    def _environment(root: Path, wire_fd: int, settings: dict[str, str]) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "MICROPYPATH": ".frozen",
            "VBOARD_ROOT": str(root),
            "VBOARD_STANDINS": str(HERE / "standins"),
            "VBOARD_WIRE": str(wire_fd),
            **settings,
        }

    def fileno(self) -> int:
        """Readable once the process has ended."""
        return self._pidfd

    @property
    def pid(self) -> int:
        return self._popen.pid

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the running code; False when it does not want that."""
        try:
            os.kill(self.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            wanted = self._catches_interrupt()
            if wanted:
                os.kill(self.pid, signal.SIGINT)
            os.kill(self.pid, signal.SIGCONT)
        except (ProcessLookupError, ChildProcessError, FileNotFoundError):
            return False
        return wanted

    def _catches_interrupt(self) -> bool:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "SigCgt":
                return bool(int(value, 16) >> (signal.SIGINT - 1) & 1)
        return False

    def end(self) -> int:
        """Kill it if it still runs; the exit code, negative for a signal."""
        self._popen.kill()
        code = self._popen.wait()
        os.close(self._pidfd)
        return code
