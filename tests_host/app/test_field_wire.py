"""Empty messages and letters of several bytes, from the intake to the bytes of the PUBLISH."""

from firmware.mqtt_in import Inbound
from firmware.mqtt_out import Outbound
from millpond.batch import F7Writer
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import NORMAL, TopicTable
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.sender import Sender

LETTERS = ("x", "°", "✓", "𝄞")  # of 1 to 4 bytes


class Wire:
    """Messages in, the bytes of their PUBLISHes out."""

    def __init__(self):
        clock = Clock(lambda: 0)
        topics = TopicTable()
        ledger = Ledger()
        self.queue = MessageQueue(8, 512, topics)
        self.ring = PagedRing(4 * 1024, 1024, 4, on_drop=ledger.lost)
        self.packer = Packer(self.queue, self.ring, clock, ledger, lambda: F7Writer(1, 1), "data")
        self.sender = Sender(self.ring, topics, on_delivered=ledger.delivered)
        self.sender.connected(False, 0)
        self.out = Outbound(2048)

    def sent(self):
        self.packer.poll(0, True)
        self.ring.check()
        packets = []
        sender = self.sender
        while sender.next(0):
            payload = memoryview(self.ring.buffer)[sender.at : sender.at + sender.length]
            assert self.out.publish(sender.topic, payload, sender.flags, sender.packet_id)
            packets.append(bytes(self.out.buffer[: self.out.end]))
            self.out.clear()
            sender.left(0)
            if sender.state:
                sender.acked(sender.packet_id, 0)
        return packets


class Heard:
    """What a reader of the same bytes makes of them."""

    def __init__(self):
        self.messages = []

    def on_publish(self, topic, payload, qos, retained, packet_id):
        self.messages.append((bytes(topic).decode(), bytes(payload).decode(), qos))


def heard(packets):
    handler = Heard()
    inbound = Inbound(handler, 2048)
    for packet in packets:
        inbound.feed(packet, len(packet))
    return handler.messages


def test_mongoose_1827_an_empty_message_goes_all_the_way():
    """Report: mongoose#1827."""
    wire = Wire()
    for qos in (0, 1):
        assert wire.queue.enqueue("t", b"", qos)
        assert wire.queue.enqueue("t", b"after", qos)
    packets = wire.sent()
    assert packets[0] == b"\x30\x03\x00\x01t" and packets[2][:5] == b"\x32\x05\x00\x01t"
    assert heard(packets) == [("t", "", 0), ("t", "after", 0), ("t", "", 1), ("t", "after", 1)]


def test_mongoose_1827_nothing_but_empty_messages():
    """Report: mongoose#1827."""
    wire = Wire()
    for count in (1, 3, 8):
        for _ in range(count):
            assert wire.queue.enqueue("t", b"", 1, NORMAL)
        assert heard(wire.sent()) == [("t", "", 1)] * count
    assert wire.queue.is_empty() and wire.ring.messages() == 0


def test_mq_66_letters_of_every_length_in_topic_and_payload_and_the_message_behind_them():
    """Report: mq#66, lib#746, lib#1073."""
    wire = Wire()
    for letter in LETTERS:
        # Across 127 bytes, where the remaining length grows by a byte.
        for count in (1, 2, 29, 30, 31, 32, 40, 59, 60, 61, 62, 119, 120, 121, 122):
            text = letter * count
            assert wire.queue.enqueue("t/" + letter, text.encode())
            assert wire.queue.enqueue("t/" + letter, b"x")
            expected = [("t/" + letter, text, 1), ("t/" + letter, "x", 1)]
            assert heard(wire.sent()) == expected


def test_mq_66_a_greeting_of_letters_of_several_bytes_is_as_long_as_it_says():
    """Report: mq#66, lib#746, lib#1073."""
    for letter in LETTERS:
        for count in range(1, 40):
            text = (letter * count).encode()
            out = Outbound(1024)
            assert out.connect(text, 60, True, (text, text, 0, False), text, text)
            assert out.ping()
            packet = bytes(out.buffer[: out.end])
            length = packet[1] & 127
            start = 2
            if packet[1] & 128:
                length |= packet[2] << 7
                start = 3
            assert start + length == len(packet) - 2 and packet[-2:] == b"\xc0\x00"
            at = start + 10
            for _ in range(5):
                size = packet[at] << 8 | packet[at + 1]
                assert packet[at + 2 : at + 2 + size] == text
                at += 2 + size
            assert at == len(packet) - 2
