"""MQTT 3.1.1 on the wire: packets out of and into plain buffers, with no I/O.

Outbound, the `write_*` functions put one whole packet into a bytearray and return where it ends,
so that it can leave in one write (L2). All strings are bytes, counted as such (L9).

Inbound, `Inbound.feed` takes the byte stream in pieces of any size. It is in one of four states:

    TYPE    the next byte begins a packet
    LENGTH  its remaining length is being read
    BODY    its body is being collected
    SKIP    a PUBLISH too large to keep is passed over, all but its head

and calls the handler when a packet is complete. Whatever the standard forbids is a ProtocolError
with the reason (L4); after one the stream is lost and the link must be closed.
"""

from micropython import const

from millpond.message import ProtocolError

_CONNECT = const(0x10)
_CONNACK = const(0x20)
_PUBLISH = const(0x30)
_PUBACK = const(0x40)
_SUBACK = const(0x90)
_PINGRESP = const(0xD0)

_TYPE = const(0)
_LENGTH = const(1)
_BODY = const(2)
_SKIP = const(3)

MAX_REMAINING = const(268435455)
HEAD_MAX = const(9)  # bytes of a PUBLISH beside topic and payload: 1 + 4 + 2 + 2

# Packets of fixed size that a broker may send: first byte -> remaining length.
_FIXED = {_CONNACK: 2, _PUBACK: 2, _PINGRESP: 0}


def _write_head(buf, at, first, remaining):
    buf[at] = first
    at += 1
    while remaining > 127:
        buf[at] = (remaining & 127) | 128
        remaining >>= 7
        at += 1
    buf[at] = remaining
    return at + 1


def _write_string(buf, at, text):
    n = len(text)
    buf[at] = n >> 8
    buf[at + 1] = n & 0xFF
    at += 2
    buf[at : at + n] = text
    return at + n


def write_publish(buf, at, topic, payload, packet_id, flags):
    """PUBLISH at buf[at:]; its end. `flags` is DUP << 3 | QoS << 1 | RETAIN.

    `payload` is bytes or a memoryview; `packet_id` is written for QoS 1 and 2 only.
    """
    n = len(topic)
    size = len(payload)
    qos = flags & 6
    remaining = n + size + (4 if qos else 2)
    if remaining > 127:
        at = _write_head(buf, at, _PUBLISH | flags, remaining)
    else:
        buf[at] = _PUBLISH | flags
        buf[at + 1] = remaining
        at += 2
    buf[at] = n >> 8
    buf[at + 1] = n & 0xFF
    at += 2
    buf[at : at + n] = topic
    at += n
    if qos:
        buf[at] = packet_id >> 8
        buf[at + 1] = packet_id & 0xFF
        at += 2
    buf[at : at + size] = payload
    return at + size


def write_connect(buf, client_id, flags, keepalive_s, strings):
    """CONNECT at the start of `buf`; its end. ValueError when it does not fit.

    `strings` are what follows the client id: will topic and message, user name, password.
    """
    remaining = 12 + len(client_id)
    for text in strings:
        remaining += 2 + len(text)
    if remaining + 5 > len(buf):
        raise ValueError("CONNECT of {} bytes: at most {}".format(remaining + 5, len(buf)))
    at = _write_head(buf, 0, _CONNECT, remaining)
    buf[at : at + 10] = b"\x00\x04MQTT\x04\x00\x00\x00"
    buf[at + 7] = flags
    buf[at + 8] = keepalive_s >> 8
    buf[at + 9] = keepalive_s & 0xFF
    at = _write_string(buf, at + 10, client_id)
    for text in strings:
        at = _write_string(buf, at, text)
    return at


def write_subscribe(buf, at, topic, packet_id, qos):
    """SUBSCRIBE to one topic filter at buf[at:]; its end."""
    at = _write_head(buf, at, 0x82, 5 + len(topic))
    buf[at] = packet_id >> 8
    buf[at + 1] = packet_id & 0xFF
    at = _write_string(buf, at + 2, topic)
    buf[at] = qos
    return at + 1


class Inbound:
    """Reads the packets of one connection; `limit` is the largest body kept, in bytes.

    `handler` has `on_connack(session_present, code)`, `on_puback(packet_id)`,
    `on_suback(packet_id, code)`, `on_pingresp()` and
    `on_publish(topic, payload, qos, retained, packet_id)`, where topic and payload are views that
    hold only during the call, and payload is None for a message that was too large.
    """

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
                i += self._collect(buf, i, n)

    def _begin(self, first):
        kind = first & 0xF0
        if kind == _PUBLISH:
            if first & 6 > 2:
                raise ProtocolError("PUBLISH with QoS {}: not subscribed".format((first >> 1) & 3))
        elif first not in _FIXED and first != _SUBACK:
            raise ProtocolError("packet begins with 0x{:02x}".format(first))
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
            raise ProtocolError(
                "packet 0x{:02x} of {} bytes: {} expected".format(first, remaining, expected)
            )
        if first == _SUBACK and remaining != 3:
            raise ProtocolError("SUBACK of {} bytes: 3 expected".format(remaining))
        if first & 0xF0 == _PUBLISH and remaining < (5 if first & 6 else 3):
            raise ProtocolError("PUBLISH of {} bytes".format(remaining))

    def _collect(self, buf, at, end):
        """Take what belongs to this packet's body; how many bytes that was."""
        if self._state == _SKIP:
            taken = min(end - at, self._remaining - self._have)
            self._have += taken
            if self._have == self._remaining:
                self._state = _TYPE
            return taken
        have = self._have
        taken = min(end - at, self._want - have)
        self._view[have : have + taken] = memoryview(buf)[at : at + taken]
        self._have = have + taken
        if self._have == self._want:
            self._finish()
        return taken

    def _finish(self):
        first = self._first
        body = self._body
        self._state = _TYPE if self._want == self._remaining else _SKIP
        if first & 0xF0 == _PUBLISH:
            self._publish(body)
        elif first == _PUBACK:
            self._puback((body[0] << 8) | body[1])
        elif first == _CONNACK:
            if body[0] > 1:
                raise ProtocolError("CONNACK with flags 0x{:02x}".format(body[0]))
            self._handler.on_connack(body[0] == 1, body[1])
        elif first == _SUBACK:
            self._handler.on_suback((body[0] << 8) | body[1], body[2])
        else:
            self._handler.on_pingresp()

    def _puback(self, packet_id):
        if not packet_id:
            raise ProtocolError("PUBACK with packet id 0")
        self._handler.on_puback(packet_id)

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
        whole = self._want == self._remaining
        payload = self._view[payload_at : self._remaining] if whole else None
        topic = self._view[2:start]
        self._handler.on_publish(topic, payload, (first >> 1) & 3, first & 1, packet_id)
