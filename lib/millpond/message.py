"""Message: what the queue and the ring carry, and the small vocabulary every module shares.

A message is a payload for a topic with a QoS and a priority. Topics are kept once, in a
TopicTable, so that a stored message spends one byte on its topic. What the ring must know of a
message beside its bytes is packed in a 16-bit tag: topic index, QoS, retained, and what the
payload is.
"""

from micropython import const

from millpond.limits import within

QOS_AT_MOST_ONCE = const(0)
QOS_AT_LEAST_ONCE = const(1)
QOS_EXACTLY_ONCE = const(2)

LOW = const(0)
NORMAL = const(1)
HIGH = const(2)
CRITICAL = const(3)
PRIORITIES = const(4)

TAG_TOPIC_MASK = const(0x00FF)
TAG_QOS_SHIFT = const(8)
TAG_QOS_MASK = const(0x0300)
TAG_RETAINED = const(0x0400)
TAG_BATCH = const(0x0800)
TAG_UNSTAMPED = const(0x1000)
TAG_TRACKED = const(0x2000)

MAX_TOPICS = const(256)
MAX_TOPIC_BYTES = const(65535)
MAX_SLOT_SIZE = const(65535)


class ProtocolError(Exception):
    """The peer broke the protocol; the text says how."""


def make_tag(topic_index, qos, retained):
    """The 16-bit tag of a message (R2); add TAG_BATCH or TAG_UNSTAMPED with `|`."""
    if topic_index >> 8 or not 0 <= qos <= QOS_EXACTLY_ONCE:
        within("topic index", topic_index, MAX_TOPICS - 1)
        within("QoS", qos, QOS_EXACTLY_ONCE)
    tag = topic_index | qos << TAG_QOS_SHIFT
    return tag | TAG_RETAINED if retained else tag


class Message:
    """One message outside the queue (Q1), made once by its user and filled by `dequeue`.

    `payload` is a bytearray of `slot_size` bytes of which the first `length` count. `created` and
    `expiry` are moments on the 2**30 ms ring; `expiry` 0 means never. `id` is 0 until filled.
    `delivery_count` and `acknowledged` are for whoever sends the message to keep.
    """

    def __init__(self, slot_size):
        within("slot size", slot_size, MAX_SLOT_SIZE, 1)
        self.id = 0
        self.topic = ""
        self.topic_index = 0
        self.payload = bytearray(slot_size)
        self.length = 0
        self.qos = QOS_AT_LEAST_ONCE
        self.priority = NORMAL
        self.created = 0
        self.expiry = 0
        self.retained = False
        self.delivery_count = 0
        self.acknowledged = False


def encode_topic(topic):
    """The topic's UTF-8 bytes; ValueError when nothing may be published to it (Q11)."""
    if not isinstance(topic, str):
        raise TypeError("topic {!r}: text expected".format(topic))
    encoded = topic.encode()
    if not 1 <= len(encoded) <= MAX_TOPIC_BYTES:
        raise ValueError("topic of {} bytes: 1 to 65535 expected".format(len(encoded)))
    for forbidden in "+#\0":
        if forbidden in topic:
            raise ValueError("topic {!r}: {!r} is not allowed in it".format(topic, forbidden))
    return encoded


class TopicTable:
    """Up to `capacity` (1 to 256) topics, numbered from 0 in the order they came; none leaves.

    `get(topic)` gives the index of a known topic, or of an index in use, else None. Being the
    dictionary's own, it costs a quarter of `index`.
    """

    def __init__(self, capacity=16):
        within("topic table of", capacity, MAX_TOPICS, 1)
        self.capacity = capacity
        self._texts = []
        self._encoded = []
        # An index is found under itself too, so one look-up serves a topic and its index.
        self._indexes = {}
        self.get = self._indexes.get

    def index(self, topic):
        """The index of a topic, new or known; an index is given back as it is.

        Allocates only when the topic is new. ValueError: a topic nothing may be published to, a
        full table, an index that stands for no topic (Q11). TypeError: neither text nor index.
        """
        found = self.get(topic)
        return self._add(topic) if found is None else found

    def _add(self, topic):
        if isinstance(topic, int):
            raise ValueError("topic index {}: {} topics are known".format(topic, len(self)))
        encoded = encode_topic(topic)
        i = len(self._texts)
        if i == self.capacity:
            raise ValueError("topic {!r}: the table of {} topics is full".format(topic, i))
        self._texts.append(topic)
        self._encoded.append(encoded)
        self._indexes[topic] = i
        self._indexes[i] = i
        return i

    def text(self, i):
        """Topic `i` as text."""
        return self._texts[i]

    def encoded(self, i):
        """Topic `i` as UTF-8 bytes, as it goes on the wire."""
        return self._encoded[i]

    def __len__(self):
        return len(self._texts)
