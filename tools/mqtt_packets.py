"""Where MQTT packets begin and end in a stream of bytes, cut anywhere.

A `PacketFilter` follows one direction of one connection. It decides at each packet's first byte
whether the whole packet passes or is swallowed, so it never holds bytes back; one that is to be
repeated passes and is sent again behind its last byte. What is no MQTT (a length of more than
four bytes) passes untouched from there on.
"""

from collections.abc import Callable

CONNECT, CONNACK, PUBLISH, PUBACK = 1, 2, 3, 4
PUBREC, PUBREL, PUBCOMP = 5, 6, 7
SUBSCRIBE, SUBACK = 8, 9
PINGREQ, PINGRESP, DISCONNECT = 12, 13, 14

_HEADER, _LENGTH, _BODY, _OPAQUE = range(4)
_MAX_SHIFT = 21


class PacketFilter:
    """Bytes in, bytes out. `swallow(type) -> bool` is asked at the first byte of each packet, and
    then `repeat(type)` about one that passes.

    `finished` lists the types of the packets that passed entirely, until the caller clears it.
    """

    def __init__(
        self,
        swallow: Callable[[int], bool],
        repeat: Callable[[int], bool] = lambda _type: False,
    ):
        self._swallow = swallow
        self._repeat = repeat
        self._copy: bytearray | None = None
        self._state = _HEADER
        self._type = 0
        self._pass = True
        self._left = 0
        self._shift = 0
        self.finished: list[int] = []

    def feed(self, data: bytes) -> bytes:
        """What of `data` passes."""
        out = bytearray()
        at = 0
        while at < len(data):
            taken = self._take(data, at)
            if self._pass:
                out += data[at : at + taken]
            if self._copy is not None:
                self._copy += data[at : at + taken]
            at += taken
            if self._state == _BODY and self._left == 0:
                out += self._finish()
        return bytes(out)

    def _take(self, data: bytes, at: int) -> int:
        if self._state == _OPAQUE:
            return len(data) - at
        if self._state == _BODY:
            taken = min(self._left, len(data) - at)
            self._left -= taken
            return taken
        if self._state == _HEADER:
            self._begin(data[at])
        else:
            self._length(data[at])
        return 1

    def _begin(self, byte: int) -> None:
        self._type = byte >> 4
        self._pass = not self._swallow(self._type)
        self._copy = bytearray() if self._pass and self._repeat(self._type) else None
        self._left = self._shift = 0
        self._state = _LENGTH

    def _length(self, byte: int) -> None:
        self._left |= (byte & 0x7F) << self._shift
        if not byte & 0x80:
            self._state = _BODY
        elif self._shift == _MAX_SHIFT:
            self._state = _OPAQUE
            self._copy = None
        else:
            self._shift += 7

    def _finish(self) -> bytes:
        """End a packet; what is to be sent again of it."""
        again, self._copy = self._copy or b"", None
        self._state = _HEADER
        if self._pass:
            self.finished += [self._type] * (2 if again else 1)
        return bytes(again)
