"""MQTT in: the packets of MQTT 3.1.1 out of the bytes of a connection, with no I/O.

`Inbound.feed` takes the byte stream in pieces of any size. It is in one of four states:

    TYPE    the next byte begins a packet
    LENGTH  its remaining length is being read
    BODY    its body is being collected
    SKIP    a PUBLISH too large to keep is passed over, all but its head

and calls the handler when a packet is complete. Whatever the standard forbids is a ProtocolError
with the reason (L4); after one the stream is lost and the link must be closed.
"""

from micropython import const

from millpond.message import ProtocolError

_CONNACK = const(0x20)
_PUBLISH = const(0x30)
_PUBACK = const(0x40)
_PUBREC = const(0x50)
_PUBREL = const(0x62)
_PUBCOMP = const(0x70)
_SUBACK = const(0x90)
_PINGRESP = const(0xD0)

_TYPE = const(0)
_LENGTH = const(1)
_BODY = const(2)
_SKIP = const(3)

SUBSCRIPTION_REFUSED = const(0x80)  # the code in a SUBACK, in place of the QoS granted

# Packets of fixed size that a broker may send: first byte -> remaining length.
_FIXED = {_CONNACK: 2, _PUBACK: 2, _PUBREC: 2, _PUBREL: 2, _PUBCOMP: 2, _PINGRESP: 0}
# Those that bear nothing but a packet id, in words.
_NAMES = {_PUBACK: "PUBACK", _PUBREC: "PUBREC", _PUBREL: "PUBREL", _PUBCOMP: "PUBCOMP"}

# Who else begins to speak with this byte.
_STRANGERS = {0x15: "TLS", 0x16: "TLS", 0x48: "HTTP", 0x53: "SSH"}


class Inbound:
    """Reads the packets of one connection; `limit` is the largest body kept, in bytes.

    `handler` has `on_connack(session_present, code)`, `on_puback(packet_id)`,
    `on_pubrec(packet_id)`, `on_pubrel(packet_id)`, `on_pubcomp(packet_id)`,
    `on_suback(packet_id, code)`, `on_pingresp()` and
    `on_publish(topic, payload, qos, retained, packet_id)`, where topic and payload are views
    that hold only during the call, and payload is None for a message that was too large. Meanwhile
    `dup` says whether the message was marked as sent before.
    """

    dup = False

    def __init__(self, handler, limit=1024):
        self._handler = handler
        self._body = bytearray(limit)
        self._view = memoryview(self._body)
        self.reset()

    def reset(self):
        """Begin a new connection."""
        self._state = _TYPE
        self._first = 0
        self._remaining = 0
        self._shift = 0
        self._have = 0
        self._want = 0

    def feed(self, buf, n):
        """Take the stream's next `n` bytes, buf[0:n]."""
        i = 0
        while i < n:
            state = self._state
            if state == _TYPE:
                # A whole PUBACK, the packet that comes once a message.
                if n - i > 3 and buf[i] == _PUBACK and buf[i + 1] == 2:
                    packet_id = (buf[i + 2] << 8) | buf[i + 3]
                    if packet_id:
                        i += 4
                        self._handler.on_puback(packet_id)
                        continue
                self._begin(buf[i])
                i += 1
            elif state == _LENGTH:
                self._length(buf[i])
                i += 1
            else:
                i = self._collect(buf, i, n)

    def _begin(self, first):
        kind = first & 0xF0
        if kind == _PUBLISH:
            if first & 6 == 6:
                raise ProtocolError("PUBLISH with QoS 3")
        elif first not in _FIXED and first != _SUBACK:
            stranger = None if self._first else _STRANGERS.get(first)
            hint = ", as {} does".format(stranger) if stranger else ""
            raise ProtocolError("packet begins with 0x{:02x}{}".format(first, hint))
        self._first = first
        self._remaining = 0
        self._shift = 0
        self._state = _LENGTH

    def _length(self, byte):
        self._remaining |= (byte & 127) << self._shift
        if byte & 128:
            self._shift += 7
            if self._shift > 21:
                raise ProtocolError("remaining length of more than 4 bytes")
            return
        self._check_length(self._first, self._remaining)
        self._have = 0
        self._want = min(self._remaining, len(self._body))
        self._state = _BODY
        if not self._remaining:
            self._finish()

    def _check_length(self, first, remaining):
        expected = _FIXED.get(first)
        if expected is not None and remaining != expected:
            hint = "; MQTT 5 has more" if first == _CONNACK and remaining > expected else ""
            raise ProtocolError(
                "packet 0x{:02x} of {} bytes: {} expected{}".format(
                    first, remaining, expected, hint
                )
            )
        if first == _SUBACK and remaining != 3:
            raise ProtocolError("SUBACK of {} bytes: 3 expected".format(remaining))
        if first & 0xF0 == _PUBLISH and remaining < (5 if first & 6 else 3):
            raise ProtocolError("PUBLISH of {} bytes".format(remaining))

    def _collect(self, buf, at, end):
        """Take what belongs to this packet's body; the index of what follows."""
        if self._state == _SKIP:
            taken = min(end - at, self._remaining - self._have)
            self._have += taken
            if self._have == self._remaining:
                self._state = _TYPE
            return at + taken
        have = self._have
        taken = min(end - at, self._want - have)
        self._view[have : have + taken] = memoryview(buf)[at : at + taken]
        self._have = have + taken
        if self._have == self._want:
            self._finish()
        return at + taken

    def _finish(self):
        first = self._first
        body = self._body
        self._state = _TYPE if self._want == self._remaining else _SKIP
        if first & 0xF0 == _PUBLISH:
            self._publish(body)
        elif first in _NAMES:
            self._answer(first, (body[0] << 8) | body[1])
        elif first == _CONNACK:
            if body[0] > 1:
                raise ProtocolError("CONNACK with flags 0x{:02x}".format(body[0]))
            self._handler.on_connack(body[0] == 1, body[1])
        elif first == _SUBACK:
            self._suback((body[0] << 8) | body[1], body[2])
        else:
            self._handler.on_pingresp()

    def _answer(self, first, packet_id):
        if not packet_id:
            raise ProtocolError("{} with packet id 0".format(_NAMES[first]))
        if first == _PUBACK:
            self._handler.on_puback(packet_id)
        elif first == _PUBREC:
            self._handler.on_pubrec(packet_id)
        elif first == _PUBREL:
            self._handler.on_pubrel(packet_id)
        else:
            self._handler.on_pubcomp(packet_id)

    def _suback(self, packet_id, code):
        if code > 2 and code != SUBSCRIPTION_REFUSED:
            raise ProtocolError("SUBACK with code 0x{:02x}".format(code))
        self._handler.on_suback(packet_id, code)

    def _publish(self, body):
        first = self._first
        start = 2 + ((body[0] << 8) | body[1])
        packet_id = 0
        payload_at = start + (2 if first & 6 else 0)
        if payload_at > self._remaining or start == 2:
            raise ProtocolError("PUBLISH with a topic of {} bytes".format(start - 2))
        if payload_at > self._want:
            raise ProtocolError("PUBLISH with a topic of {} bytes: too long".format(start - 2))
        if first & 6:
            packet_id = (body[start] << 8) | body[start + 1]
            if not packet_id:
                raise ProtocolError("PUBLISH with packet id 0")
        self.dup = bool(first & 8)
        whole = self._want == self._remaining
        payload = self._view[payload_at : self._remaining] if whole else None
        topic = self._view[2:start]
        self._handler.on_publish(topic, payload, (first >> 1) & 3, first & 1, packet_id)
