"""A claim on something that only one process may use at a time: a locked file with a note in it.

The lock ends with the process, however that ends. The note says who holds the claim, for those
who come second; the file goes when its owner gives the claim up, and nobody else removes it.
"""

import fcntl
import os
from pathlib import Path


class Taken(Exception):
    """Another process holds the claim; the text is its note."""


class Claim:
    """Holds `path` from here until `close`, or while a `with` block runs. Taken when it is held."""

    def __init__(self, path: Path, note: str = ""):
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._lock()
        self.note(note)

    def _lock(self):
        """The file, locked. Its last owner may have removed it while we waited to open it."""
        while True:
            file = self._path.open("a+")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                with file:
                    raise Taken(file.read().strip()) from None
            if self._path.exists() and os.path.samestat(os.fstat(file.fileno()), self._path.stat()):
                return file
            file.close()

    def note(self, text: str) -> None:
        """Say this to those who find it taken."""
        self._file.truncate(0)
        self._file.write(text + "\n")
        self._file.flush()

    def close(self) -> None:
        """Give it up. Does nothing the second time."""
        if not self._file.closed:
            self._path.unlink(missing_ok=True)
            self._file.close()

    def __enter__(self) -> "Claim":
        return self

    def __exit__(self, *_) -> None:
        self.close()
