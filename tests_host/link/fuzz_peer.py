"""Feeds a real Link what no broker would say; runs inside MicroPython, for test_fuzzed_peer.

    fuzz_peer.py FIRST LAST     streams by number; the same number is always the same stream

A stream is made of valid packets, most of them damaged, or of dice alone, and comes in pieces of
any size. The link must go on or end with one of the errors it is allowed, the account of messages
must balance, and the heap must be in the end as it was. Behind the link are the real Uplink, Sender
and PagedRing, with one message in flight, of QoS 1 or 2.
"""

import gc
import sys

from firmware.backoff import Backoff
from firmware.failures import Unreachable
from firmware.link import GREETING, UP, Link
from firmware.opening import Opening
from firmware.uplink import Uplink
from millpond.clock import Clock
from millpond.message import ProtocolError, TopicTable, make_tag
from millpond.paged_ring import PagedRing
from millpond.sender import Sender
from tests_host.sim.prng import Prng

ALLOWED = (ProtocolError, OSError, Unreachable)
KEPT = 512  # what the link keeps of an inbound message

PACKETS = (
    b"\x20\x02\x00\x00",
    b"\x20\x02\x01\x00",
    b"\x20\x02\x00\x05",
    b"\x40\x02ID",
    b"\x50\x02ID",
    b"\x70\x02ID",
    b"\x40\x02ID\xd0\x00\x50\x02ID\x70\x02ID",
    b"\x50\x02ID\x70\x02ID\x40\x02ID",
    b"\x40\x02\x12\x34",
    b"\x50\x02\x12\x34",
    b"\x70\x02\x12\x34",
    b"\x90\x03\x00\x01\x01",
    b"\x90\x03\x00\x01\x80",
    b"\xd0\x00",
    b"\x30\x03\x00\x01t",
    b"\x31\x08\x00\x03a/bxyz",
    b"\x32\x0a\x00\x03a/b\x00\x07xyz",
    b"\x3b\x0a\x00\x03a/b\x00\x08xyz",
    b"\x34\x0a\x00\x03a/b\x00\x0axyz\x62\x02\x00\x0a",
    b"\x62\x02ID",
    b"\x30\xac\x02\x00\x01t" + bytes(297),
    b"\x32\x85\x05\x00\x01t\x00\x09" + bytes(640),
)


class Silent:
    """A log that says nothing."""

    def error(self, text):
        pass

    warning = info = debug = error


class Peer:
    """The socket: gives `stream` in pieces, takes everything."""

    def __init__(self, stream, dice):
        self.stream = stream
        self.at = 0
        self._dice = dice

    def readinto(self, buf):
        left = len(self.stream) - self.at
        if not left:
            return 0 if self._dice.one_in(3) else None
        n = min(1 + self._dice.below(9) ** 3, left, len(buf))
        buf[:n] = self.stream[self.at : self.at + n]
        self.at += n
        return n

    def write(self, buf, at, n):
        return n

    def close(self):
        pass


def damaged(packet, dice):
    """The packet with a few bytes changed, lost, doubled or put in."""
    data = bytearray(packet)
    for _ in range(1 + dice.below(3)):
        at = dice.below(len(data) + 1)
        what = dice.below(5)
        if what == 0 and at < len(data):
            data[at] ^= 1 << dice.below(8)
        elif what == 1 and at < len(data):
            data[at] = dice.below(256)
        elif what == 2:
            data = data[:at] + data[at + 1 + dice.below(3) :]
        elif what == 3:
            data = data[:at] + bytes((dice.below(256),)) + data[at:]
        else:
            data = data[:at] + data[: dice.below(12)] + data[at:]
    return bytes(data)


def made(dice, packet_id):
    """A stream."""
    if dice.one_in(8):
        return bytes([dice.below(256) for _ in range(1 + dice.below(60))])
    stream = b""
    for _ in range(1 + dice.below(4)):
        packet = dice.among(PACKETS).replace(b"ID", bytes((packet_id >> 8, packet_id & 255)))
        stream += packet if dice.one_in(2) else damaged(packet, dice)
    return stream


class Bench:
    """The firmware's end, from the ring to the link."""

    def __init__(self):
        self.now = 0
        clock = Clock(lambda: self.now)
        topics = TopicTable()
        self.tags = [make_tag(topics.index("t"), qos, False) for qos in (1, 2)]
        self.ring = PagedRing(4096, 1024, 4)
        self.sender = Sender(self.ring, topics)
        self.link = Link("fuzz", "host", resolve=None, largest=1024, receive=KEPT)
        opening = Opening(self.link, self.sender, clock, Silent())
        self.uplink = Uplink(
            self.link, self.sender, self.ring, clock, Backoff(1, 1, lambda n: 0), Silent(), opening
        )
        self.heard = 0
        self.link.on_message = self.hear
        self.put = 0

    def hear(self, topic, payload, retained, dup):
        assert topic and len(payload) <= KEPT
        self.heard += 1

    def play(self, number):
        """Feed one stream; how the link ended, or None when it lives."""
        dice = Prng(number)
        self.now = (self.now + 10) & 0x3FFFFFFF
        link, sender, ring = self.link, self.sender, self.ring
        link._inbound.reset()
        link._connack = None
        link.sock = peer = Peer(b"", dice)
        greeting = dice.one_in(4)
        link.state = GREETING if greeting else UP
        if not greeting:
            if not ring.messages():
                ring.append(b"payload", 1, dice.among(self.tags))
                self.put += 1
            sender.connected(dice.one_in(2), self.now)
            self.uplink.kick()
        peer.stream = made(dice, sender.packet_id)
        ended = None
        try:
            for _ in range(len(peer.stream) + 1):
                if not link.check_msg():
                    break
        except ALLOWED as error:
            ended = error
        assert ended or peer.at == len(peer.stream), "not read to the end"
        link.close()
        sender.disconnected()
        assert sender.delivered + ring.messages() == self.put, "the account does not balance"
        return ended


def main(first, last):
    bench = Bench()
    heap = ended = 0
    for number in range(first, last + 1):
        try:
            ended += bench.play(number) is not None
        except Exception as error:
            print("stream {}: {!r}".format(number, error))
            print(made(Prng(number), 1))
            sys.print_exception(error)
            return 1
        if number == first + 2000:
            bench.ring.check()
            gc.collect()
            heap = gc.mem_alloc()
    bench.ring.check()
    gc.collect()
    print("heap grew by {} bytes".format(gc.mem_alloc() - heap))
    print("{} ended, {} delivered, {} heard".format(ended, bench.sender.delivered, bench.heard))
    print("{} streams played".format(last - first + 1))
    return 0


sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
