"""Connections that end in the middle of a packet, of every kind and behind every byte."""

import socket

import pytest

from tests_host.link.harness import Rig
from tests_host.link.scripted import CONNACK_NEW, Scripted, broker
from tools.mqtt_packets import PINGREQ

PACKETS = {
    "CONNACK": CONNACK_NEW,
    "PUBACK": b"\x40\x02\x00\x01",
    "PUBREC": b"\x50\x02\x00\x01",
    "PUBCOMP": b"\x70\x02\x00\x01",
    "SUBACK": b"\x90\x03\x00\x01\x01",
    "PINGRESP": b"\xd0\x00",
    "PUBLISH of QoS 0": b"\x30\x09\x00\x03inbtext",
    "PUBLISH of QoS 1": b"\x32\x0b\x00\x03inb\x00\x07text",
    "PUBLISH of 200 bytes": b"\x32\xc8\x01\x00\x03inb\x00\x07" + 193 * b"x",
    "PUBLISH too large to keep": b"\x32\x88\x08\x00\x03inb\x00\x07" + 1025 * b"x",
}
MOST_CUTS = 16


def cut_off(data, reset):
    """A play: greet, send `data`, which is part of a packet, and end."""

    def play(end):
        end.packet()
        end.send(data)
        if reset:
            end.reset()

    return play


def cuts(name):
    """What arrives of a packet that is cut, with all that comes before it, for each cut."""
    packet = PACKETS[name]
    before = b"" if name == "CONNACK" else CONNACK_NEW
    places = list(range(1, len(packet)))
    return [before + packet[:n] for n in places[:MOST_CUTS] + places[MOST_CUTS:][-2:]]


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("name", PACKETS)
def test_robust2_2_a_packet_cut_behind_any_byte_is_a_lost_link_and_no_more(name, reset):
    """Report: robust2#2, mp#4290."""
    plays = [cut_off(data, reset) for data in cuts(name)]
    with Scripted(*plays, broker) as server, Rig(server.port, backoff_ms=[1, 1]) as rig:
        rig.wait(lambda: len(rig.downs) >= len(plays), "every cut")
        rig.order("put", n=3)
        rig.delivered(3)
        assert len(rig.downs) == len(plays)
        assert all("closed the connection" in reason for reason, _ in rig.downs), rig.downs
        assert rig.inbound() == []


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in flight"])
def test_mp_4290_a_peer_that_closes_its_half_only(busy):
    """Report: mp#4290, project_aura#125."""

    def half(end):
        end.packet()
        end.send(CONNACK_NEW)
        if busy:
            end.packet()
        end.sock.shutdown(socket.SHUT_WR)
        end.until_closed()

    with Scripted(half, broker) as server, Rig(server.port) as rig:
        if busy:
            rig.order("put", n=1)
        assert "closed the connection" in rig.down()
        rig.up(2)
        rig.order("put", n=2)
        rig.delivered(2 + busy)


def test_mp_4290_a_peer_that_closes_while_its_PINGRESP_is_awaited():
    """Report: mp#4290, project_aura#125."""

    def leaves(end):
        end.packet()
        end.send(CONNACK_NEW)
        assert end.packet()[0] >> 4 == PINGREQ

    with Scripted(leaves, broker) as server, Rig(server.port) as rig:
        rig.up()
        rig.order("advance", ms=30000)
        assert "closed the connection" in rig.down()
        rig.up(2)
