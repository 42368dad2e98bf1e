"""The serial port of a virtual board, as its clients see it: a pty's slave.

The board's side holds the slave open too, so that clients may come and go. Output waits for a
client that reads; when nobody has read for STALL_S, nobody is there, and output is thrown away
as a serial line does, until somebody reads (or flushes) again.
"""

import array
import errno
import fcntl
import os
import pty
import termios
import time
import tty

STALL_S = 2.0
FULL = 8192
_KEEP = 4096
_AHEAD = 2048


class SerialPort:
    """`path` is what a client opens; `fileno()` is readable when a client has sent something."""

    def __init__(self):
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self._pending = bytearray()
        self._moved = 0.0
        self._alone = False

    def fileno(self) -> int:
        return self._master

    def close(self) -> None:
        os.close(self._master)
        os.close(self._slave)

    def read(self) -> bytes:
        """What clients have sent, b"" for nothing."""
        try:
            return os.read(self._master, 4096)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno == errno.EIO:
                return b""
            raise

    def write(self, data: bytes) -> None:
        """Send to the client, or keep for it, or throw away when nobody reads."""
        if self._alone and not self._unread():
            self._alone = False
        if self._alone:
            self._keep_newest(data)
            return
        if not self._pending:
            self._moved = time.monotonic()
        self._pending += data
        self.flush()

    def pending(self) -> int:
        """The number of bytes that wait for the client to read."""
        return len(self._pending)

    def flush(self) -> None:
        """Pass on what waits, as far as the client reads."""
        while self._pending and self._unread() < _AHEAD:
            try:
                sent = os.write(self._master, self._pending[:_AHEAD])
            except BlockingIOError:
                sent = 0
            if not sent:
                break
            del self._pending[:sent]
            self._moved = time.monotonic()
        if self._pending and time.monotonic() - self._moved > STALL_S:
            self._alone = True
            data = bytes(self._pending[-_KEEP:])
            self._pending.clear()
            self._keep_newest(data)

    def _unread(self) -> int:
        """How many bytes lie before a client that it has not read."""
        count = array.array("i", [0])
        fcntl.ioctl(self._slave, termios.FIONREAD, count)
        return count[0]

    def _keep_newest(self, data: bytes) -> None:
        """Put `data` where the next client reads, in place of older output if need be."""
        data = data[-_KEEP + 1 :]
        if self._unread() + len(data) >= _KEEP:
            termios.tcflush(self._slave, termios.TCIFLUSH)
        try:
            os.write(self._master, data)
        except BlockingIOError:
            termios.tcflush(self._slave, termios.TCIFLUSH)
