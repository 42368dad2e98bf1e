"""VirtualBoard: what tests and tools hold of a virtual board. The work is the supervisor's."""

import re
import threading
from pathlib import Path

from tools.vboard.supervisor import HARD_RESET, Supervisor, VirtualBoardError

WIFI = {"ok": b"W", "no_ap": b"A", "wrong_password": b"P", "down": b"D"}
FLASH_BYTES = 2 << 20
HEAP = "512K"


class VirtualBoard:
    """A board whose filesystem is the directory `root`.

    `heap`: MicroPython's heap. Objects take twice a 32-bit board's room here, buffers do not.
    `flash_bytes`: the filesystem's size; the default is that of an ESP32 with 4 MB. `port` is
    the path for `mpremote connect`. Usable in a `with`; to be stopped by whoever started it.
    """

    def __init__(self, root: str | Path, *, heap: str = HEAP, flash_bytes: int = FLASH_BYTES):
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise VirtualBoardError(f"{self.root} is not a directory")
        self._supervisor = Supervisor(self.root, heap, flash_bytes)
        self._thread = threading.Thread(target=self._supervisor.run, name="vboard", daemon=True)
        self.port = self._supervisor.serial.path

    def start(self, timeout: float = 10) -> "VirtualBoard":
        """Switch on; returns when boot.py is about to run. VirtualBoardError when it cannot."""
        self._thread.start()
        ready = self._supervisor.ready.wait(timeout)
        if not ready or self._supervisor.failure:
            self.stop()
            reason = self._supervisor.failure or f"nothing ran after {timeout} s"
            raise VirtualBoardError(f"{reason}: {self.output()[-2000:]}")
        return self

    def stop(self) -> None:
        """Switch off; the port is gone. Does nothing the second time."""
        self._supervisor.post(None)
        if self._thread.ident:
            self._thread.join()

    def __enter__(self) -> "VirtualBoard":
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether the board is on."""
        return self._thread.is_alive()

    @property
    def pid(self) -> int:
        """The process id of MicroPython, 0 between two of them."""
        return self._supervisor.pid()

    @property
    def boots(self) -> int:
        """How often MicroPython has been started, resets of any kind included."""
        return self._supervisor.boots

    def hard_reset(self, cause: int = HARD_RESET) -> None:
        """Press the reset button, or reset for another `cause` (machine's …_RESET)."""
        self._supervisor.post(lambda: self._supervisor.hard_reset(cause))

    def type(self, text: str | bytes) -> None:
        """Send as a client would; "\\x03" is Ctrl-C."""
        data = text.encode() if isinstance(text, str) else text
        self._supervisor.post(lambda: self._supervisor.from_client(data))

    def set_wifi(self, state: str) -> None:
        """What the access point does from now on: "ok", "no_ap", "wrong_password", "down"."""
        code = WIFI[state]
        self._supervisor.post(lambda: self._supervisor.set_wifi(code))

    def mark(self) -> int:
        """The present position in the board's output, for `since`."""
        return self._supervisor.log.position()

    def output(self, since: int = 0, until: int | None = None) -> str:
        """What the board has written from `since` on (the last 256 KB), to before `until`."""
        return self._supervisor.log.text(since, until)

    def wait_for(self, pattern: str, timeout: float = 10, since: int = 0) -> re.Match:
        """The first match of a regular expression in the output from `since` on.

        TimeoutError when none comes, RuntimeError when the board is or goes off.
        """
        return self._supervisor.log.wait_for(pattern, timeout, since)
