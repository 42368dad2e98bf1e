"""MQTT out: packets of MQTT 3.1.1 laid into a plain buffer, with no I/O.

Whole packets stand one behind the other, so that each can leave in one write (L2). All strings are
bytes, counted as such (L9).
"""

from micropython import const

_CONNECT = const(0x10)
_PUBLISH = const(0x30)
_PUBACK = const(0x40)
_PUBREC = const(0x50)
_PUBREL = const(0x62)
_PUBCOMP = const(0x70)
_SUBSCRIBE = const(0x82)
_PINGREQ = const(0xC0)
_DISCONNECT = const(0xE0)

_LEVEL = const(4)  # MQTT 3.1.1

# In a CONNECT: what the session is to be, and what follows the client id.
_CLEAN = const(0x02)
_WILL = const(0x04)
_WILL_QOS = const(3)  # where it begins
_WILL_RETAINED = const(0x20)
_PASSWORD = const(0x40)
_USER = const(0x80)

HEAD_MAX = const(9)  # bytes of a PUBLISH beside topic and payload: 1 + 4 + 2 + 2


def _length_bytes(remaining):
    return 1 + (remaining > 127) + (remaining > 16383) + (remaining > 2097151)


def _write_head(buf, at, first, remaining):
    """A packet's first byte and remaining length; where it goes on."""
    buf[at] = first
    at += 1
    while remaining > 127:
        buf[at] = (remaining & 127) | 128
        remaining >>= 7
        at += 1
    buf[at] = remaining
    return at + 1


class Outbound:
    """Whole packets, laid one behind the other into a buffer of `size` bytes.

    `buffer[at:end]` has not left yet. Each method that adds a packet answers whether there was
    room; topics and strings are bytes. What runs for each message keeps its frame within 11 words
    (see `millpond.paged_ring`).
    """

    def __init__(self, size):
        self.buffer = bytearray(size)
        self.at = self.end = 0
        self._begin = bytearray()
        self._begins = {}
        self._topic = None
        self._size = self._flags = self._packet_size = 0

    def clear(self):
        """Forget what has left, or never will."""
        self.at = self.end = 0

    def publish(self, topic, payload, flags, packet_id):
        """PUBLISH. `flags` is DUP << 3 | QoS << 1 | RETAIN; `packet_id` is for QoS 1 and 2.

        `payload` is bytes or a memoryview of bytes.
        """
        if topic is not self._topic or len(payload) != self._size or flags != self._flags:
            self._prepare(topic, len(payload), flags)
        if self.end + self._packet_size > len(self.buffer):
            return False
        at = self.end + len(self._begin)
        self.buffer[self.end : at] = self._begin
        self.end += self._packet_size
        if flags & 6:
            self.buffer[at] = packet_id >> 8
            self.buffer[at + 1] = packet_id & 0xFF
        self.buffer[self.end - len(payload) : self.end] = payload
        return True

    def too_large(self):
        """Whether the last `publish` does not even fit the empty buffer."""
        return self._packet_size > len(self.buffer)

    def _prepare(self, topic, size, flags):
        """Lay aside how a PUBLISH begins, up to its topic; it serves until one differs."""
        remaining = 2 + len(topic) + (2 if flags & 6 else 0) + size
        begin = 3 + len(topic) + _length_bytes(remaining)
        if begin != len(self._begin):
            # One buffer for each length, kept: a new one each time would land anywhere in the
            # heap, outlive the next collection there, and part its free memory in two.
            if begin not in self._begins:
                self._begins[begin] = bytearray(begin)
            self._begin = self._begins[begin]
        self._topic = topic
        self._size = size
        self._flags = flags
        at = _write_head(self._begin, 0, _PUBLISH | flags, remaining)
        self._begin[at] = len(topic) >> 8
        self._begin[at + 1] = len(topic) & 0xFF
        self._begin[at + 2 :] = topic
        self._packet_size = at + remaining

    def connect(self, client_id, keepalive_s, clean, will=None, user=None, password=None):
        """CONNECT. `will` is (topic, payload, QoS, retained); what is None is left out.

        Without a user there is no password.
        """
        flags = _CLEAN if clean else 0
        strings = [client_id]
        if will:
            flags |= _WILL | will[2] << _WILL_QOS | (_WILL_RETAINED if will[3] else 0)
            strings += will[:2]
        if user is not None:
            flags |= _USER
            strings.append(user)
            if password is not None:
                flags |= _PASSWORD
                strings.append(password)
        remaining = 10 + sum([2 + len(text) for text in strings])
        if self.end + remaining + HEAD_MAX > len(self.buffer):
            return False
        self._head(_CONNECT, remaining)
        self._string(b"MQTT")
        self._number(_LEVEL << 8 | flags)
        self._number(keepalive_s)
        for text in strings:
            self._string(text)
        return True

    def subscribe(self, topic, packet_id, qos):
        """SUBSCRIBE to one topic filter."""
        if self.end + len(topic) + HEAD_MAX > len(self.buffer):
            return False
        self._head(_SUBSCRIBE, 5 + len(topic))
        self._number(packet_id)
        self._string(topic)
        self.buffer[self.end] = qos
        self.end += 1
        return True

    def acknowledge(self, packet_id, qos=1):
        """PUBACK for QoS 1, PUBREC for QoS 2."""
        return self._numbered(_PUBACK if qos == 1 else _PUBREC, packet_id)

    def complete(self, packet_id):
        """PUBCOMP."""
        return self._numbered(_PUBCOMP, packet_id)

    def release(self, packet_id):
        """PUBREL."""
        return self._numbered(_PUBREL, packet_id)

    def ping(self):
        """PINGREQ."""
        return self._bare(_PINGREQ)

    def disconnect(self):
        """DISCONNECT."""
        return self._bare(_DISCONNECT)

    def _numbered(self, first, packet_id):
        if self.end + 4 > len(self.buffer):
            return False
        self._head(first, 2)
        self._number(packet_id)
        return True

    def _bare(self, first):
        if self.end + 2 > len(self.buffer):
            return False
        self._head(first, 0)
        return True

    def _head(self, first, remaining):
        self.end = _write_head(self.buffer, self.end, first, remaining)

    def _number(self, value):
        at = self.end
        self.buffer[at] = value >> 8
        self.buffer[at + 1] = value & 0xFF
        self.end = at + 2

    def _string(self, text):
        self._number(len(text))
        at = self.end
        self.end = at + len(text)
        self.buffer[at : self.end] = text
