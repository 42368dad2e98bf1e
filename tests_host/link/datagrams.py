"""A server over UDP of the tests' own, which answers as a test's play says."""

import contextlib
import socket
import threading

from tests_host.link.harness import WAIT_S
from tools.loopback import HOST


class DatagramServer:
    """Answers each packet of `asked`, in bytes, with those that `play` of it gives."""

    def __init__(self, play):
        self.play = play
        self.asked: list[bytes] = []
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind((HOST, 0))
        self.name = "{}:{}".format(*self._sock.getsockname())
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_exc):
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        self._thread.join(WAIT_S)

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                packet, who = self._sock.recvfrom(512)
                if not packet:
                    return
                self.asked.append(packet)
                for answer in self.answers(packet):
                    self._sock.sendto(answer, who)

    def answers(self, packet):
        return self.play(packet)
