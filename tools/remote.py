"""A board at the other end of a serial port, spoken to with mpremote's own transport.

Every method raises BoardError with a line that a person can act on. Nothing waits for ever: a
board that says nothing for ANSWER_S does not answer.
"""

import contextlib
import io
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from mpremote.transport import TransportError, TransportExecError
from mpremote.transport_serial import SerialTransport
from serial import SerialException

ANSWER_S = 15
_CHUNK = 1024
_QUIET_S = 0.2
_OLD_OUTPUT_S = 2
_REBOOT = "import time, machine; time.sleep_ms(100); machine.reset()"

# Prints size and SHA-256 of each of the files that are there.
_DIGESTS = """
import hashlib, os
from binascii import hexlify
def digest(path, buf=bytearray(512)):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        n = f.readinto(buf)
        while n:
            h.update(memoryview(buf)[:n])
            n = f.readinto(buf)
    return hexlify(h.digest()).decode()
for path in %r:
    try:
        print(os.stat(path)[6], digest(path), path)
    except OSError:
        pass
del digest, path
"""
_EXISTS = """
import os
try:
    os.stat(%r)
    print(1)
except OSError:
    pass
"""
_MAKE_FOLDER = """
import os
try:
    os.mkdir(%r)
except OSError as error:
    if error.errno != 17:
        raise
"""


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


class BoardError(Exception):
    """What went wrong between us and the board."""


class Remote:
    """An open connection. `lost` is true once the port has vanished, as USB ports do at a reset."""

    def __init__(self, port: str):
        self.port = port
        self.lost = False
        self._open(wait_s=0)

    def _open(self, wait_s: int) -> None:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self._transport = SerialTransport(self.port, baudrate=115200, wait=wait_s)
        except TransportError:
            if Path(self.port).exists():
                raise BoardError(f"{self.port}: in use by another program, or no access") from None
            raise BoardError(f"{self.port}: no such port") from None
        self._transport.serial.timeout = ANSWER_S

    def __enter__(self) -> "Remote":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @contextlib.contextmanager
    def _errors(self, doing: str):
        """mpremote's errors as ours."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        except TransportExecError as error:
            lines = error.error_output.strip().splitlines() or ["failed"]
            raise BoardError(f"{self.port}: {doing}: {lines[-1]}") from None
        except (SerialException, TransportError) as error:
            raise BoardError(f"{self.port}: {doing}: {error}") from None
        except OSError as error:
            raise BoardError(f"{self.port}: {doing}: {_reason(error)}") from None

    def close(self) -> None:
        """Leave the board at its friendly REPL, or as it is."""
        with contextlib.suppress(OSError, SerialException, TransportError):
            if self._transport.in_raw_repl:
                self._transport.exit_raw_repl()
        with contextlib.suppress(OSError, SerialException):
            self._transport.close()

    def restart(self) -> None:
        """Stop the program by a soft reset: boot.py runs, main.py does not."""
        with self._errors("stopping the program"):
            self._transport.enter_raw_repl(soft_reset=True)

    def press(self, key: str) -> None:
        """Send a key to whatever runs."""
        with self._errors("typing"):
            self._transport.serial.write(key.encode())

    def ask(self, key: str, pattern: str, timeout: float) -> str | None:
        """Send a key to whatever runs; the first group of `pattern` in its answer, or None."""
        with self._errors("typing"):
            self._skip_old_output()
        self.press(key)
        said = self.wait_for(pattern, timeout)
        return said and re.search(pattern, said)[1]

    def interrupt(self) -> str:
        """Stop the program with Ctrl-C, keeping all it holds; what it said to that."""
        with self._errors("stopping the program"):
            self._skip_old_output()
            self._transport.serial.write(b"\r\x03\r\x02")
            said = self._listen(re.compile(rb"\nMicroPython [^\n]*\n[^\n]*\n>>> $"), ANSWER_S)
            if said is None:
                raise TransportError("no answer")
            self._transport.enter_raw_repl(soft_reset=False)
        return said

    def exec(self, code: str) -> str:
        """Run code on the board; what it printed."""
        with self._errors("running code"):
            return self._transport.exec(code).decode(errors="replace")

    def type_line(self, line: str) -> None:
        """Type a line at the friendly REPL."""
        with self._errors("typing"):
            self._transport.exit_raw_repl()
            self._transport.serial.write(line.encode() + b"\r")

    def digests(self, paths: list[str]) -> dict[str, tuple[int, str]]:
        """Size and SHA-256 (hex) of those of the files that the board has."""
        lines = self.exec(_DIGESTS % (paths,)).splitlines()
        found = (line.split(" ", 2) for line in lines)
        return {path: (int(size), digest) for size, digest, path in found}

    def free_bytes(self) -> int:
        """Free space of the board's filesystem."""
        return int(self.exec("import os; s = os.statvfs('/'); print(s[0] * s[3])"))

    def read(self, path: str) -> bytes:
        """A file's content, b"" for none."""
        with self._errors(f"reading {path}"):
            if not self._transport.exec(_EXISTS % path):
                return b""
            return bytes(self._transport.fs_readfile(path, chunk_size=_CHUNK))

    def write(self, path: str, data: bytes, progress: Callable[[int], None] | None = None) -> None:
        """Write a file; `progress` gets the number of bytes written so far."""
        with self._errors(f"writing {path}"):
            report = (lambda done, _: progress(done)) if progress else None
            self._transport.fs_writefile(path, data, chunk_size=_CHUNK, progress_callback=report)

    def remove(self, path: str) -> None:
        """Remove a file."""
        with self._errors(f"removing {path}"):
            self._transport.fs_rmfile(path)

    def make_folder(self, path: str) -> None:
        """Make a folder, unless it is there."""
        with self._errors(f"making {path}"):
            self._transport.exec(_MAKE_FOLDER % path)

    def remove_folder_if_empty(self, path: str) -> None:
        """Remove a folder with nothing in it."""
        self.exec(f"import os\nif not os.listdir({path!r}): os.rmdir({path!r})")

    def reset(self) -> None:
        """Reset the board as its reset button does."""
        with self._errors("resetting"):
            self._transport.exec_raw_no_follow(_REBOOT)
            self._transport.in_raw_repl = False

    def wait_for(self, pattern: str, timeout: float) -> str | None:
        """The board's output up to the first match; None when none came in time."""
        return self._listen(re.compile(pattern.encode()), timeout)

    def _listen(self, pattern: re.Pattern[bytes], timeout: float) -> str | None:
        data = b""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            data += self._read_some()
            if pattern.search(data):
                return data.decode(errors="replace")
        return None

    def _skip_old_output(self) -> None:
        """Read until the board is quiet for a moment, or prints without end."""
        deadline = time.monotonic() + _OLD_OUTPUT_S
        while self._read_some() and time.monotonic() < deadline:
            pass

    def _read_some(self) -> bytes:
        """What has come within a moment; opens a vanished port again."""
        try:
            self._transport.serial.timeout = _QUIET_S
            data = self._transport.serial.read(self._transport.serial.in_waiting or 1)
            self._transport.serial.timeout = ANSWER_S
            return data
        except (OSError, SerialException):
            self.lost = True
            with contextlib.suppress(OSError, SerialException):
                self._transport.close()
            self._open(wait_s=ANSWER_S)
            return b""
