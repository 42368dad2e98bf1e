"""Datagram: one question to a server over UDP, and its answer, without stalling the event loop.

One socket an exchange, connected, so that only the server asked can answer, and from a port of its
own; it is closed on every path. What is no answer to the question is passed over.
"""

import asyncio
import errno
import socket

from micropython import const

_STEP_MS = const(10)
_PACKETS = const(16)  # looked at in a step
_LARGEST = const(512)  # bytes that are read of a packet: DNS and SNTP have no more


async def exchange(sockaddr, packet, is_answer, timeout_ms):
    """The first packet that comes for which `is_answer(data)`.

    `sockaddr` is what `socket.connect` takes. OSError, ETIMEDOUT when none comes in time.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.connect(sockaddr)
        sock.send(packet)
        for _ in range(max(1, timeout_ms // _STEP_MS)):
            await asyncio.sleep_ms(_STEP_MS)
            for _ in range(_PACKETS):
                data = _receive(sock)
                if data is None:
                    break
                if is_answer(data):
                    return data
    finally:
        sock.close()
    raise OSError(errno.ETIMEDOUT)


def _receive(sock):
    """A packet that has come, or None."""
    try:
        return sock.recv(_LARGEST)
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise
        return None
