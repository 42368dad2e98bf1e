"""Peers that fail in one way each, for the benchmarks: a port to connect to, while it is needed."""

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme

from tools.broker import Broker
from tools.loopback import HOST, free_port
from tools.proxy import Proxy

_CUT_EVERY_S = 0.1
CA_FILE = Path(__file__).resolve().parents[2] / "build" / "bench_ca.pem"


@contextmanager
def nobody(broker: int) -> Iterator[int]:
    """Nobody listens: a SYN is refused at once."""
    yield free_port()


@contextmanager
def full_listener(broker: int) -> Iterator[int]:
    """A listener whose backlog is full: a SYN is never answered."""
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
            fillers.append(filler)
        try:
            yield server.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()


@contextmanager
def silent_listener(broker: int) -> Iterator[int]:
    """A listener that accepts and never answers: the kernel's backlog does it."""
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen(128)
        yield server.getsockname()[1]


@contextmanager
def cut_often(broker: int) -> Iterator[int]:
    """The broker, behind a proxy that resets every connection ten times a second."""
    with Proxy(broker) as proxy, repeated(lambda ended: cut(proxy, ended)):
        yield proxy.port


@contextmanager
def silent_name_server(broker: int) -> Iterator[int]:
    """A name server that takes queries and never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((HOST, 0))
        yield server.getsockname()[1]


@contextmanager
def tls_cut_often(broker: int) -> Iterator[int]:
    """A broker with TLS, whose certificate CA_FILE has signed, and as `cut_often`."""
    ca = trustme.CA()
    cert = ca.issue_cert("localhost")
    CA_FILE.parent.mkdir(exist_ok=True)
    ca.cert_pem.write_to_path(CA_FILE)
    with tempfile.TemporaryDirectory() as folder:
        pem, key = Path(folder, "pem"), Path(folder, "key")
        cert.cert_chain_pems[0].write_to_path(pem)
        cert.private_key_pem.write_to_path(key)
        lines = (f"cafile {CA_FILE}", f"certfile {pem}", f"keyfile {key}")
        with (
            Broker(kind="mosquitto", extra=lines) as secured,
            Proxy(secured.port) as proxy,
            repeated(lambda ended: cut(proxy, ended)),
        ):
            yield proxy.port


def cut(proxy: Proxy, ended: threading.Event) -> None:
    """Reset what is open, after a while."""
    if not ended.wait(_CUT_EVERY_S):
        proxy.reset()


@contextmanager
def repeated(step) -> Iterator[None]:
    """Call `step(ended)` again and again in a thread; `ended` is an Event that says to return."""
    ended = threading.Event()

    def work():
        while not ended.is_set():
            step(ended)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
