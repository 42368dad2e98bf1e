"""The two lines between the supervisor and MicroPython: the console (uart) and the wire.

Each is a socket pair of which the supervisor keeps both ends, so that it can tell what a process
has left unread: after a soft reset the next process reads it, after a hard reset it is gone.
The buffer is small, so that a program that prints without end waits for the line as on a board.
"""

import socket

_BUFFER = 16384


def _take(end: socket.socket, limit: int = 1 << 20) -> bytes:
    """What lies there to be read, at most about `limit` bytes; never waits."""
    data = b""
    while len(data) < limit:
        try:
            piece = end.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            break
        if not piece:
            break
        data += piece
    return data


class Line:
    """One line; `inner` is MicroPython's end."""

    def __init__(self):
        self._outer, self.inner = socket.socketpair()
        self._outer.setblocking(False)
        self.inner.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self._waiting = bytearray()

    def fileno(self) -> int:
        return self._outer.fileno()

    def read(self, limit: int = 1 << 20) -> bytes:
        """What MicroPython has written."""
        return _take(self._outer, limit)

    def write(self, data: bytes = b"") -> None:
        """Send `data` after what waits; what the process does not take goes on waiting."""
        self._waiting += data
        while self._waiting:
            try:
                sent = self._outer.send(self._waiting)
            except BlockingIOError:
                return
            del self._waiting[:sent]

    def waiting(self) -> bool:
        """Whether something could not be sent yet."""
        return bool(self._waiting)

    def unread(self) -> bytes:
        """Take back what the process has not read. It must not be reading now."""
        data = _take(self.inner) + bytes(self._waiting)
        self._waiting.clear()
        return data

    def close(self) -> None:
        self._outer.close()
        self.inner.close()
