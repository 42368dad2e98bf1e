"""MQTT packets: exact bytes out, any split of the byte stream in."""

from firmware.mqtt_in import Inbound
from firmware.mqtt_out import Outbound
from millpond.message import ProtocolError
from tests_host.kit import no_alloc, raises


class Heard:
    """Notes what Inbound calls."""

    def __init__(self):
        self.calls = []

    def on_connack(self, present, code):
        self.calls.append(("connack", present, code))

    def on_puback(self, packet_id):
        self.calls.append(("puback", packet_id))

    def on_pubrec(self, packet_id):
        self.calls.append(("pubrec", packet_id))

    def on_pubrel(self, packet_id):
        self.calls.append(("pubrel", packet_id))

    def on_pubcomp(self, packet_id):
        self.calls.append(("pubcomp", packet_id))

    def on_suback(self, packet_id, code):
        self.calls.append(("suback", packet_id, code))

    def on_pingresp(self):
        self.calls.append(("pingresp",))

    def on_publish(self, topic, payload, qos, retained, packet_id):
        payload = payload if payload is None else bytes(payload)
        self.calls.append(("publish", bytes(topic), payload, qos, retained, packet_id))


class HeardDup(Heard):
    """Notes of each PUBLISH whether it was marked as sent before."""

    inbound: Inbound

    def on_publish(self, topic, payload, qos, retained, packet_id):
        self.calls.append(self.inbound.dup)


STREAM = (
    b"\x20\x02\x01\x00"
    b"\x40\x02\x12\x34"
    b"\x50\x02\x12\x35"
    b"\x70\x02\x12\x36"
    b"\xd0\x00"
    b"\x90\x03\x00\x07\x01"
    b"\x31\x06\x00\x01tabc"
    b"\x32\x07\x00\x01t\x00\x09ab"
    b"\x30\x03\x00\x01t"
    b"\x34\x06\x00\x01t\x00\x0az"
    b"\x62\x02\x00\x0a"
    b"\x40\x02\xff\xff"
)
CALLS = [
    ("connack", True, 0),
    ("puback", 0x1234),
    ("pubrec", 0x1235),
    ("pubcomp", 0x1236),
    ("pingresp",),
    ("suback", 7, 1),
    ("publish", b"t", b"abc", 0, 1, 0),
    ("publish", b"t", b"ab", 1, 0, 9),
    ("publish", b"t", b"", 0, 0, 0),
    ("publish", b"t", b"z", 2, 0, 10),
    ("pubrel", 10),
    ("puback", 65535),
]


def heard(stream, *pieces, **options):
    """What is heard when the stream comes in pieces of these sizes, then the rest."""
    handler = Heard()
    inbound = Inbound(handler, **options)
    at = 0
    for size in pieces:
        inbound.feed(stream[at : at + size], len(stream[at : at + size]))
        at += size
    inbound.feed(stream[at:], len(stream) - at)
    return handler.calls


def refused(stream):
    return raises(ProtocolError, heard, stream)


# -- outbound ------------------------------------------------------------------------------------


def laid(lay, size=64):
    """The bytes of a packet that `lay(out)` lays into a buffer of `size` bytes."""
    out = Outbound(size)
    assert lay(out)
    return bytes(out.buffer[out.at : out.end])


def test_L2_publish_is_one_packet_with_exact_bytes():
    packet = laid(lambda out: out.publish(b"a/b", b"xyz", 1 << 1, 0x0102))
    assert packet == b"\x32\x0a\x00\x03a/b\x01\x02xyz"
    assert laid(lambda out: out.publish(b"a/b", b"", 1, 9)) == b"\x31\x05\x00\x03a/b"
    packet = laid(lambda out: out.publish(b"t", memoryview(b"q"), 8 | 2, 65535))
    assert packet == b"\x3a\x06\x00\x01t\xff\xffq"


def test_L2_packets_stand_one_behind_the_other():
    out = Outbound(40)
    out.ping()
    out.publish(b"t", b"a", 2, 1)
    out.acknowledge(7)
    assert bytes(out.buffer[: out.end]) == b"\xc0\x00\x32\x06\x00\x01t\x00\x01a\x40\x02\x00\x07"
    out.clear()
    assert out.at == out.end == 0


def test_remaining_length_grows_at_128_and_16384():
    for size, head in ((122, b"\x7f"), (123, b"\x80\x01"), (16379, b"\x80\x80\x01")):
        packet = laid(lambda out, n=size: out.publish(b"abc", bytes(n), 0, 0), size + 20)
        assert packet[1 : 1 + len(head)] == head
        assert len(packet) == 1 + len(head) + 5 + size


def test_L9_strings_are_counted_in_bytes():
    """Report: mq#66, lib#746, lib#1073."""
    topic = "21°C".encode()
    packet = laid(lambda out: out.publish(topic, "°".encode(), 0, 0))
    assert packet == b"\x30\x09\x00\x05" + topic + b"\xc2\xb0"
    will = ("wé".encode(), b"off", 0, False)
    assert laid(lambda out: out.connect("né".encode(), 60, True, will, b"u", b"p")) == (
        b"\x10\x1f\x00\x04MQTT\x04\xc6\x00\x3c"
        b"\x00\x03n\xc3\xa9\x00\x03w\xc3\xa9\x00\x03off\x00\x01u\x00\x01p"
    )


def test_a_packet_that_does_not_fit_is_not_laid():
    for lay in (
        lambda out: out.publish(b"topic", bytes(22), 2, 1),
        lambda out: out.connect(bytes(20), 0, True),
        lambda out: out.subscribe(bytes(30), 1, 1),
    ):
        out = Outbound(32)
        assert not lay(out)
        assert out.end == 0
    for size, lays in (
        (3, (lambda out: out.acknowledge(1), lambda out: out.release(1))),
        (1, (Outbound.ping, Outbound.disconnect)),
    ):
        for lay in lays:
            out = Outbound(size)
            assert not lay(out)
            assert out.end == 0
            assert laid(lay, size + 1)


def test_small_packets():
    for lay, packet in (
        (lambda out: out.acknowledge(0x0102), b"\x40\x02\x01\x02"),
        (lambda out: out.release(0xFFFE), b"\x62\x02\xff\xfe"),
        (Outbound.ping, b"\xc0\x00"),
        (Outbound.disconnect, b"\xe0\x00"),
    ):
        assert laid(lay) == packet


def test_a_connect_flags_what_it_bears():
    def flags(clean=False, will=None, user=None, password=None):
        return laid(lambda out: out.connect(b"c", 9, clean, will, user, password))[9]

    assert flags() == 0
    assert flags(clean=True) == 0x02
    assert flags(will=(b"t", b"", 0, False)) == 0x04
    assert flags(will=(b"t", b"", 1, False)) == 0x0C
    assert flags(will=(b"t", b"", 2, True)) == 0x34
    assert flags(user=b"") == 0x80
    assert flags(user=b"u", password=b"") == 0xC0
    assert flags(password=b"p") == 0
    assert flags(True, (b"t", b"m", 1, True), b"u", b"p") == 0xEE


def test_subscribe_bytes():
    packet = laid(lambda out: out.subscribe(b"a/#", 0x0304, 1))
    assert packet == b"\x82\x08\x03\x04\x00\x03a/#\x01"


def test_a_message_is_laid_without_allocating():
    out = Outbound(400)
    payload = memoryview(bytes(200))

    def work():
        for n in range(50):
            out.publish(b"topic", payload, 2, n)
            out.ping()
            out.acknowledge(n)
            out.release(n)
            out.clear()

    work()
    no_alloc(work)


def test_a_message_unlike_the_last_is_laid_as_it_is():
    out = Outbound(400)
    for topic, size, flags in (
        (b"t", 3, 0),
        (b"t", 3, 2),
        (b"t", 200, 2),
        (b"tt", 200, 1),
        (b"u", 3, 0),
    ):
        out.clear()
        out.publish(topic, b"p" * size, flags, 258)
        fresh = laid(lambda new, t=topic, n=size, f=flags: new.publish(t, b"p" * n, f, 258), 400)
        assert bytes(out.buffer[: out.end]) == fresh


# -- inbound -------------------------------------------------------------------------------------


def test_L4_all_packets_in_one_piece():
    assert heard(STREAM) == CALLS


def test_L4_any_two_cuts_give_the_same():
    n = len(STREAM)
    for first in range(n + 1):
        assert heard(STREAM, first) == CALLS
        assert heard(STREAM, first, (n - first) // 2) == CALLS


def test_L4_single_bytes_give_the_same():
    assert heard(STREAM, *[1] * len(STREAM)) == CALLS


def test_L4_message_larger_than_the_buffer_is_skipped_but_named():
    """Report: MiniMQTT#82, MiniMQTT#107."""
    big = b"\x32\xac\x02\x00\x01t\x00\x05" + bytes(295)
    stream = big + b"\x40\x02\x00\x01"
    expected = [("publish", b"t", None, 1, 0, 5), ("puback", 1)]
    for cut in (0, 1, 4, 9, 40, 41, 100, len(big)):
        assert heard(stream, cut, limit=40) == expected


def test_L4_message_of_exactly_the_buffer_is_kept():
    stream = b"\x30\x28\x00\x01t" + b"p" * 37
    assert heard(stream, limit=40) == [("publish", b"t", b"p" * 37, 0, 0, 0)]


def test_L4_malformed_packets_close_with_a_reason():
    for stream, words in (
        (b"\x00\x00", "0x00"),
        (b"\x10\x00", "0x10"),
        (b"\x41\x02\x00\x01", "0x41"),
        (b"\x51\x02\x00\x01", "0x51"),
        (b"\x60\x02\x00\x01", "0x60"),
        (b"\x62\x03\x00\x01\x00", "2 expected"),
        (b"\x62\x02\x00\x00", "PUBREL with packet id 0"),
        (b"\x50\x02\x00\x00", "PUBREC with packet id 0"),
        (b"\x70\x02\x00\x00", "PUBCOMP with packet id 0"),
        (b"\x50\x03\x00\x01\x00", "2 expected"),
        (b"\x70\x01\x00", "2 expected"),
        (b"\xf0\x00", "0xf0"),
        (b"\x40\x03\x00\x01\x00", "2 expected"),
        (b"\x40\x02\x00\x00", "packet id 0"),
        (b"\xd0\x01\x00", "0 expected"),
        (b"\x20\x02\x02\x00", "flags"),
        (b"\x20\x01\x00", "2 expected"),
        (b"\x90\x02\x00\x01", "3 expected"),
        (b"\x34\x05\x00\x01t\x00\x00", "packet id 0"),
        (b"\x34\x04\x00\x01t\x00", "PUBLISH of 4 bytes"),
        (b"\x36\x05\x00\x01t\x00\x01", "QoS 3"),
        (b"\x30\x02\x00\x00", "2 bytes"),
        (b"\x30\x03\x00\x00x", "topic of 0"),
        (b"\x30\x03\x00\x02t", "topic of 2"),
        (b"\x32\x05\x00\x02tt\x00", "topic of 2"),
        (b"\x32\x05\x00\x01t\x00\x00", "packet id 0"),
        (b"\x30\x80\x80\x80\x80\x01", "more than 4"),
    ):
        message = refused(stream)
        assert words in message, (stream, message)


def test_L4_who_else_may_have_been_met_is_said_where_a_connection_begins():
    for stream, words in (
        (b"\x15\x03\x01\x00\x02\x02\x46", "begins with 0x15, as TLS does"),
        (b"HTTP/1.1 400 Bad Request\r\n", "begins with 0x48, as HTTP does"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "begins with 0x53, as SSH does"),
        (b"\x20\x05\x00\x84\x02\x00\x00", "5 bytes: 2 expected; MQTT 5 has more"),
    ):
        assert refused(stream).endswith(words), refused(stream)
    assert refused(b"\xd0\x00\x48").endswith("begins with 0x48")
    assert refused(b"\x20\x01\x00").endswith("2 expected")


def test_L4_topic_longer_than_the_buffer_is_refused():
    """Report: MiniMQTT#82, MiniMQTT#107."""
    stream = b"\x30\xc8\x01\x00\x64" + bytes(198)
    assert "too long" in raises(ProtocolError, heard, stream, limit=40)


def test_mongoose_1827_empty_payload_is_a_message():
    """Report: mongoose#1827."""
    assert heard(b"\x30\x03\x00\x01t") == [("publish", b"t", b"", 0, 0, 0)]


def test_L4_random_streams_raise_nothing_but_ProtocolError():
    state = 4711
    for _ in range(1500):
        state = (state * 1103515245 + 12345) & 0x3FFFFFFF
        stream = bytearray(STREAM)
        for _ in range(1 + state % 4):
            state = (state * 1103515245 + 12345) & 0x3FFFFFFF
            stream[(state >> 8) % len(stream)] = (state >> 20) & 0xFF
        try:
            heard(bytes(stream), state % len(stream), limit=24)
        except ProtocolError as error:
            assert str(error)


def test_inbound_DUP_is_known_during_the_call():
    handler = HeardDup()
    handler.inbound = Inbound(handler)
    for first in (0x32, 0x3A, 0x3B, 0x32, 0x30):
        packet = bytes([first]) + (b"\x07\x00\x01t\x00\x09ab" if first & 6 else b"\x03\x00\x01t")
        handler.inbound.feed(packet, len(packet))
    assert handler.calls == [False, True, True, False, False]
