"""The serial port of a virtual board, as its clients see it: a pty's slave.

The board's side holds the slave open too, so that clients may come and go. Output waits for a
client that reads. When nothing has been read for STALL_S nobody is there: ALONE, and output is
thrown away, as a serial line does, but for 4 KB that the next client finds. A client ends that
by sending something, or by reading (or flushing) what lay there.
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
_KEEP = 4095
_AHEAD = 2048
_SETTLE_S = 0.05


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
        self._alone_since = 0.0

    def fileno(self) -> int:
        return self._master

    def close(self) -> None:
        os.close(self._master)
        os.close(self._slave)

    def read(self) -> bytes:
        """What clients have sent, b"" for nothing."""
        try:
            data = os.read(self._master, 4096)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno == errno.EIO:
                return b""
            raise
        self._alone = False
        return data

    def write(self, data: bytes) -> None:
        """Send to the client, or keep for it, or throw away when nobody reads."""
        if self._alone and not self._is_read():
            return
        self._alone = False
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
            sent = self._send(self._pending[:_AHEAD])
            if not sent:
                break
            del self._pending[:sent]
            self._moved = time.monotonic()
        if self._pending and time.monotonic() - self._moved > STALL_S:
            self._give_up()

    def _send(self, data: bytes) -> int:
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0

    def _is_read(self) -> bool:
        """Whether what lay there is gone. Our own writing takes a moment to arrive there."""
        settled = time.monotonic() - self._alone_since > _SETTLE_S
        return settled and not self._unread()

    def _unread(self) -> int:
        """How many bytes lie before a client that it has not read."""
        count = array.array("i", [0])
        fcntl.ioctl(self._slave, termios.FIONREAD, count)
        return count[0]

    def _give_up(self) -> None:
        """Nobody reads: leave the newest output there, and throw away from now on."""
        self._alone = True
        self._alone_since = time.monotonic()
        termios.tcflush(self._slave, termios.TCIFLUSH)
        self._send(self._pending[-_KEEP:])
        self._pending.clear()
