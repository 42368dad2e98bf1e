"""A peer that stops reading while a page leaves: the rest follows, in its place, or is given up."""

import contextlib
import threading

from tests_host.link.harness import WAIT_S, Rig, number_of
from tests_host.link.scripted import CONNACK_NEW, Scripted
from tests_host.link.scripted import broker as serving
from tools.mqtt_packets import PINGREQ, PUBLISH

PAGE_PAYLOAD = 4088


class Gate:
    """A play: a broker that reads nothing behind the CONNECT until the gate is opened."""

    def __init__(self):
        self._open = threading.Event()
        self.open = self._open.set

    def __call__(self, end):
        end.packet()
        end.send(CONNACK_NEW)
        assert self._open.wait(WAIT_S)
        end.serve()


@contextlib.contextmanager
def narrow(**options):
    """(gate, server, rig), where the path between takes about 4 KB and no more."""
    gate = Gate()
    with (
        Scripted(gate, receive_buffer=2048) as server,
        Rig(server.port, send_buffer=2048, **options) as rig,
    ):
        rig.up()
        try:
            yield gate, server, rig
        finally:
            gate.open()


def numbers(packets):
    """The numbers of the rig's messages among packets, after a check of every byte."""
    return [number_of(p[-PAGE_PAYLOAD:]) for p in packets if p[0] >> 4 == PUBLISH and p[0] & 6]


def test_L2_a_page_that_leaves_in_pieces_arrives_whole():
    with narrow() as (gate, server, rig):
        rig.order("put", n=4, size=PAGE_PAYLOAD)
        stats = rig.until(lambda s: s["sending"] == "leaving", "a message half gone")
        assert (stats["held"], stats["delivered"], stats["up"]) == (4, 0, True)
        gate.open()
        rig.delivered(4)
        assert numbers(server.packets[0]) == [0, 1, 2, 3]
        assert rig.stats()["connects"] == 1


def test_L2_a_ping_and_an_acknowledgement_wait_for_the_page_before_them():
    with narrow(ack_timeout_s=600) as (gate, server, rig):
        rig.order("put", n=2, size=PAGE_PAYLOAD)
        rig.until(lambda s: s["sending"] == "leaving", "a message half gone")
        server.connection(1).send(b"\x32\x0a\x00\x06rig/in\x00\x07")
        rig.wait(rig.inbound, "a message from outside")
        rig.order("advance", ms=30000)
        rig.until(lambda s: s["pings"] == 1, "a ping")
        gate.open()
        rig.delivered(2)
        kinds = [packet[0] for packet in server.packets[0][1:]]
        assert kinds == [0x32, 0x40, PINGREQ << 4, 0x32]
        assert numbers(server.packets[0]) == [0, 1]


def test_L2_a_long_burst_through_a_narrow_path():
    with narrow() as (gate, server, rig):
        gate.open()
        rig.order("put", n=15, size=PAGE_PAYLOAD)
        rig.order("put", n=15, size=PAGE_PAYLOAD, qos=0)
        stats = rig.until(lambda s: not s["held"], "an empty ring")
        assert stats["delivered"] + stats["stolen"] == 30 and stats["connects"] == 1


def test_S6_QoS_0_is_complete_only_when_its_last_byte_left():
    with narrow() as (gate, server, rig):
        rig.order("put", n=3, size=PAGE_PAYLOAD, qos=0)
        stats = rig.until(lambda s: s["sending"] == "leaving", "a message half gone")
        assert stats["held"] >= 1
        held = stats["held"]
        gate.open()
        rig.delivered(3)
        rig.until(lambda _: len(server.packets[0]) == 4, "all three")
        assert [number_of(p[-PAGE_PAYLOAD:]) for p in server.packets[0][1:]] == [0, 1, 2]
        assert held <= 3


def test_S5_a_page_that_never_leaves_drops_the_link_and_goes_whole_over_the_next():
    def mute(end):
        end.packet()
        end.send(CONNACK_NEW)
        done.wait(WAIT_S)

    done = threading.Event()
    gate = Gate()
    with (
        Scripted(mute, gate, receive_buffer=2048) as server,
        Rig(server.port, send_buffer=2048) as rig,
    ):
        rig.up()
        rig.order("put", n=2, size=PAGE_PAYLOAD)
        rig.until(lambda s: s["sending"] == "leaving", "a message half gone")
        rig.order("advance", ms=20000)
        assert rig.down() == "no acknowledgement within 20 s"
        done.set()
        gate.open()
        rig.delivered(2)
        assert numbers(server.packets[1]) == [0, 1]


def test_L10_a_reset_by_the_peer_while_a_page_leaves():
    """It wakes the writing task and the reader at once."""

    def reset(end):
        end.packet()
        end.send(CONNACK_NEW)
        if end.sock.recv(100) == b"\xc0\x00":
            end.send(b"\xd0\x00")
        rig.until(lambda s: s["sending"] == "leaving", "a message half gone")
        end.reset()

    with (
        Scripted(*[reset] * 10, serving, receive_buffer=2048) as server,
        Rig(server.port, send_buffer=2048, max_retries=100) as rig,
    ):
        rig.order("put", n=2, size=PAGE_PAYLOAD)
        rig.delivered(2)
        assert len(rig.downs) == 10
        assert all("closed the connection" in why for why, _ in rig.downs)
        assert numbers(server.packets[10]) == [0, 1]


def test_L2_a_greeting_that_leaves_in_pieces_holds_back_what_follows():
    greeting = "t" * 6000
    options = {
        "greetings": [["rig/status", "online"], ["rig/tags", greeting], ["rig/more", greeting]],
        "subscriptions": [["rig/in", 1]],
        "page_bytes": 8192,
    }
    gate = Gate()
    with (
        Scripted(gate, receive_buffer=2048) as server,
        Rig(server.port, send_buffer=2048, **options) as rig,
    ):
        rig.order("put", n=3, size=PAGE_PAYLOAD)
        rig.until(lambda s: s["state"] == "up", "a CONNACK")
        assert rig.stats()["held"] == 3
        gate.open()
        rig.delivered(3)
        kinds = [packet[0] for packet in server.packets[0][1:]]
        assert kinds == [0x31, 0x31, 0x31, 0x82, 0x32, 0x32, 0x32]
        assert server.packets[0][3][-6000:] == greeting.encode()
        assert numbers(server.packets[0]) == [0, 1, 2]
        assert rig.stats()["connects"] == 1
