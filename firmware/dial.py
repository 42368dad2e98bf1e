"""Dial: the steps that open a TCP connection, none of which waits by itself.

    sockaddr, new_socket -> waits -> begin -> await writable

The socket is non-blocking throughout. It is made and handed over before it is connected, so that
its owner can close it whatever comes next (L10). Why a connection could not be made is shown by
the first write, as the sockets API has it.
"""

import asyncio
import errno
import socket

from micropython import const

_IPPROTO_TCP = const(6)
_TCP_NODELAY = const(1)


class Ready:
    """Awaits one direction of a socket through the event loop's poller, reusing one object."""

    def __init__(self, queue, sock):
        self._queue = queue
        self._sock = sock
        self._armed = False
        self._stop = StopIteration()

    def __iter__(self):
        self._armed = False
        return self

    __await__ = __iter__  # its name in CPython, where simulations run

    def __next__(self):
        if self._armed:
            self._armed = False
            self._stop.__traceback__ = None
            raise self._stop
        self._armed = True
        self._queue(self._sock)


def sockaddr(address, port):
    """What `begin` takes for an address in numbers; no name server is asked."""
    return socket.getaddrinfo(address, port, 0, socket.SOCK_STREAM)[0][-1]


def new_socket():
    """A non-blocking TCP socket that sends each packet at once."""
    sock = socket.socket()
    sock.setblocking(False)
    try:
        # Without it a second packet waits for the acknowledgement of the first, ~40 ms.
        sock.setsockopt(_IPPROTO_TCP, _TCP_NODELAY, 1)
    except OSError:
        pass
    return sock


def waits(sock):
    """Two awaitables: until `sock`, plain or TLS, can be read, and until it can be written."""
    sock = getattr(sock, "raw", sock)
    queue = asyncio.core._io_queue  # pyright: ignore[reportAttributeAccessIssue]
    return Ready(queue.queue_read, sock), Ready(queue.queue_write, sock)


def begin(sock, address):
    """Begin to connect; it is done, or has failed, when `sock` can be written."""
    try:
        sock.connect(address)
    except OSError as error:
        if error.errno != errno.EINPROGRESS:
            raise
