"""Ports on this machine, for the brokers, proxies and boards that the tools start.

A port is taken from below the range the kernel uses for outgoing connections. A server that goes
away and comes back on the same port (a restarted broker, a closed and reopened proxy) then finds
it free, and a client that knocks meanwhile can't by chance be given that port as its own end.
"""

import random
import socket
import time
from collections.abc import Callable

HOST = "127.0.0.1"
_LOWEST = 10240
_HIGHEST = 32767
_TRIES = 200


def free_port() -> int:
    """A TCP port on HOST that nobody listens on; OSError when none is found."""
    for _ in range(_TRIES):
        port = random.randint(_LOWEST, _HIGHEST)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {_LOWEST} to {_HIGHEST} on {HOST} in {_TRIES} tries")


def accepts(port: int, host: str = HOST) -> bool:
    """Whether something accepts a TCP connection there now."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(
    condition: Callable[[], bool], timeout_s: float, what: str, poll_s: float = 0.01
) -> None:
    """Return as soon as `condition()` is true; TimeoutError naming `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(poll_s)
