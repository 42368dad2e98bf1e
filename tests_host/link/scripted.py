"""A server that plays what a test wrote, for what no real broker can be made to do.

Each connection plays the next of the `plays`, the last one for ever. A play is a function of an
`End`; when it returns the connection is closed in an orderly way. `packets` has what was received,
a list for each connection.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

from tests_host.link.harness import WAIT_S
from tools.loopback import HOST, free_port
from tools.mqtt_packets import PINGREQ, PUBLISH, SUBSCRIBE

CONNACK_NEW = b"\x20\x02\x00\x00"
CONNACK_KEPT = b"\x20\x02\x01\x00"


class End:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.packets: list[bytes] = []
        sock.settimeout(WAIT_S)

    def read(self, count: int) -> bytes:
        """Exactly `count` bytes; EOFError when the client has closed."""
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def packet(self) -> bytes:
        """The next whole packet, which is noted too."""
        data = self.read(2)
        while data[-1] & 0x80:
            data += self.read(1)
        length = sum((byte & 0x7F) << (7 * n) for n, byte in enumerate(data[1:]))
        data += self.read(length)
        self.packets.append(data)
        return data

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def reset(self) -> None:
        """Close by a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def until_closed(self) -> None:
        """Note what comes, answer nothing."""
        while True:
            self.packet()

    def serve(self) -> None:
        """Answer as a broker does: PUBACK, SUBACK and PINGRESP."""
        while True:
            packet = self.packet()
            if packet[0] >> 4 == PUBLISH and packet[0] & 6:
                self.send(b"\x40\x02" + packet_id(packet))
            elif packet[0] >> 4 == SUBSCRIBE:
                self.send(b"\x90\x03" + packet[2:4] + b"\x01")
            elif packet[0] >> 4 == PINGREQ:
                self.send(b"\xd0\x00")


Play = Callable[[End], None]


class Scripted:
    """Listens on `port` while in `with`. A play's error, other than a lost peer, is raised there.

    `receive_buffer`: bytes that a connection takes in before the play reads them.
    """

    def __init__(self, *plays: Play, receive_buffer: int = 0):
        self._plays = plays
        self._errors: list[Exception] = []
        self._ends: list[End] = []
        self._changed = threading.Condition()
        self._closing = False
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.port = free_port()
        self._listener.bind((HOST, self.port))
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Scripted":
        self._thread.start()
        return self

    def __exit__(self, kind, *_exc) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        if self._ends:
            with contextlib.suppress(OSError):
                self._ends[-1].sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(WAIT_S)
        self._listener.close()
        assert not self._thread.is_alive()
        if self._errors and kind is None:
            raise self._errors[0]

    @property
    def packets(self) -> list[list[bytes]]:
        """What each connection has brought so far."""
        return [list(end.packets) for end in self._ends]

    def connection(self, n: int) -> End:
        """Wait for the `n`-th connection."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._ends) >= n, WAIT_S), f"connection {n}"
            return self._ends[n - 1]

    def _run(self) -> None:
        while not self._closing:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            end = End(sock)
            with self._changed:
                self._ends.append(end)
                self._changed.notify_all()
            self._play(self._plays[min(len(self._ends), len(self._plays)) - 1], end)

    def _play(self, play: Play, end: End) -> None:
        try:
            play(end)
        except (EOFError, OSError):
            pass
        except Exception as error:
            self._errors.append(error)
        finally:
            end.sock.close()


def answer(data: bytes) -> Play:
    """A play: read the CONNECT, send `data`, then take everything in and say nothing more."""

    def play(end: End) -> None:
        end.packet()
        end.send(data)
        end.until_closed()

    return play


def answer_and_close(data: bytes) -> Play:
    """A play: read the CONNECT, send `data`, close."""

    def play(end: End) -> None:
        end.packet()
        end.send(data)

    return play


def broker(end: End, connack: bytes = CONNACK_NEW) -> None:
    """A play: a broker with no subscribers."""
    end.packet()
    end.send(connack)
    end.serve()


def broker_with_session(end: End) -> None:
    """A play: the same, with the session kept."""
    broker(end, CONNACK_KEPT)


def packet_id(publish: bytes) -> bytes:
    """The packet id in a PUBLISH of QoS 1."""
    at = 1
    while publish[at] & 0x80:
        at += 1
    at += 1
    topic = int.from_bytes(publish[at : at + 2], "big")
    return publish[at + 2 + topic : at + 4 + topic]
