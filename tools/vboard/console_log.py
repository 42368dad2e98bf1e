"""The last bytes a board has written, for waiting on what it says.

Positions count all bytes ever written, so that they outlive the dropping of old ones.
"""

import re
import threading
import time


class ConsoleLog:
    """Keeps the newest `size` bytes; one writer, any number of threads that wait."""

    def __init__(self, size: int = 262144):
        self._size = size
        self._data = bytearray()
        self._base = 0
        self._closed = ""
        self._changed = threading.Condition(threading.RLock())

    def write(self, data: bytes) -> None:
        with self._changed:
            self._data += data
            surplus = len(self._data) - self._size
            if surplus > 0:
                del self._data[:surplus]
                self._base += surplus
            self._changed.notify_all()

    def close(self, reason: str) -> None:
        """Nothing more will come; those who wait fail with `reason`."""
        with self._changed:
            self._closed = self._closed or reason
            self._changed.notify_all()

    def position(self) -> int:
        """The position after the newest byte."""
        with self._changed:
            return self._base + len(self._data)

    def text(self, since: int = 0, until: int | None = None) -> str:
        """What was written from position `since` to before `until`, as far as it is kept."""
        with self._changed:
            stop = None if until is None else max(0, until - self._base)
            return self._data[max(0, since - self._base) : stop].decode(errors="replace")

    def wait_for(self, pattern: str, timeout: float, since: int) -> re.Match:
        """The first match of the regular expression after `since`.

        TimeoutError when it does not come in time, RuntimeError when nothing more will come.
        """
        wanted = re.compile(pattern, re.MULTILINE)
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                text = self.text(since)
                match = wanted.search(text)
                if match:
                    return match
                if self._closed:
                    raise RuntimeError(f"{self._closed}; wanted {pattern!r}, got:\n{text}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{timeout} s without {pattern!r}, got:\n{text}")
                self._changed.wait(left)
