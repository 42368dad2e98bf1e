"""QoS 2 against a real broker: exactly once, wherever the exchange is cut while the session lives.

PUBLISH -->, <-- PUBREC, PUBREL -->, <-- PUBCOMP
"""

import pytest

from tests_host.link import wire
from tests_host.link.harness import Judge, Rig
from tests_host.link.scripted import CONNACK_KEPT, CONNACK_NEW, End, Scripted, packet_id
from tools.broker import MOSQUITTO, Broker
from tools.mqtt_packets import PINGREQ, PUBCOMP, PUBLISH, PUBREC, PUBREL
from tools.proxy import DOWN, UP, Proxy

EXCHANGE_UP = 78 + 4  # a PUBLISH of 64 bytes to rig/data, and PUBREL
EXCHANGE_DOWN = 4 + 4


def test_S6_every_message_takes_the_four_steps_once(broker, judge, proxy, rig):
    rig.order("put", n=50, qos=2)
    rig.delivered(50)
    assert judge.has_all(50) == {}
    assert {(p.qos, p.dup) for p in wire.publishes(broker)} == {(2, False)}
    assert wire.count(broker, "PUBREL") == 50
    assert rig.stats()["stray_acks"] == 0


def test_S6_reset_behind_every_byte_that_we_send_delivers_exactly_once(broker, proxy, judge, rig):
    rig.up()
    for n, cut in enumerate(range(1, EXCHANGE_UP + 1), 1):
        proxy.reset_after(cut, UP)
        rig.order("put", n=2, qos=2)
        assert "closed the connection" in rig.down(n)
        assert rig.up(n + 1) is True
        rig.delivered(2 * n)
    assert judge.has_all(2 * EXCHANGE_UP) == {}


def test_S6_reset_behind_every_byte_of_the_answers_delivers_exactly_once(proxy, judge, rig):
    rig.up()
    for cut in range(1, EXCHANGE_DOWN + 1):
        proxy.reset_after(cut, DOWN)
        rig.order("put", n=2, qos=2)
        rig.down(cut)
        assert rig.up(cut + 1) is True
        rig.delivered(2 * cut)
    assert judge.has_all(2 * EXCHANGE_DOWN) == {}


@pytest.mark.parametrize(
    ("direction", "packet"),
    [(UP, PUBLISH), (DOWN, PUBREC), (UP, PUBREL), (DOWN, PUBCOMP)],
    ids=["PUBLISH", "PUBREC", "PUBREL", "PUBCOMP"],
)
def test_S6_lib_103_a_lost_packet_of_the_exchange(direction, packet, broker, proxy, judge, rig):
    """Report: lib#103."""
    rig.up()
    proxy.swallow(direction, packet)
    rig.order("put", n=3, qos=2)
    proxy.wait_for(lambda p: p.swallowed[direction] == 1, 10)
    rig.order("advance", ms=20000)
    assert rig.down(1) == "no acknowledgement within 20 s"
    assert rig.up(2) is True
    rig.delivered(3)
    assert judge.has_all(3) == {}
    again = [p for p in wire.publishes(broker) if p.dup]
    assert len(again) == (packet in (PUBLISH, PUBREC))


def test_S6_after_PUBREC_the_kept_session_sees_no_second_PUBLISH(broker, proxy, judge, rig):
    rig.up()
    proxy.swallow(DOWN, PUBCOMP)
    rig.order("put", qos=2)
    proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, 10)
    proxy.reset()
    assert rig.up(2) is True
    rig.delivered(1)
    assert judge.has_all(1) == {}
    assert [p.dup for p in wire.publishes(broker)] == [False]
    assert wire.count(broker, "PUBREL") == 2


def test_S6_a_session_lost_between_the_steps_means_a_new_publication(tmp_path):
    with (
        Broker(tmp_path, kind=MOSQUITTO) as broker,
        Proxy(broker.port) as proxy,
        Judge(broker.port) as judge,
        Rig(proxy.port) as rig,
    ):
        rig.up()
        proxy.swallow(UP, PUBREL)
        rig.order("put", n=2, qos=2)
        proxy.wait_for(lambda p: p.swallowed[UP] == 1, 10)
        proxy.refuse()
        rig.down()
        broker.restart()
        judge.listens(2)
        proxy.restore()
        assert rig.up(2) is False
        rig.delivered(2)
        judge.has_all(2)
        assert [p.packet_id for p in wire.publishes(broker)] == [1, 2, 3]


def test_S6_a_PUBREC_that_nobody_waits_for_is_answered_and_changes_nothing():
    def play(end: End) -> None:
        end.packet()
        end.send(CONNACK_NEW + b"\x50\x02\x00\x09\x70\x02\x00\x09")
        end.until_closed()

    with Scripted(play) as server, Rig(server.port) as rig:
        rig.up()
        rig.until(lambda _: server.packets[0][1:] == [b"\x62\x02\x00\x09"], "the PUBREL")
        assert rig.until(lambda s: s["stray_acks"] == 2, "both counted")["up"]


def picky(end: End) -> None:
    """A play: a broker that closes on a payload beginning with "bad"."""
    end.packet()
    end.send(b"\x20\x02\x01\x00")
    while True:
        packet = end.packet()
        if b"bad" in packet:
            return
        kind = packet[0] >> 4
        if kind == PUBLISH:
            first = PUBREC if packet[0] & 4 else 4
            end.send(bytes((first << 4, 2)) + packet_id(packet))
        elif kind == PUBREL:
            end.send(b"\x70\x02" + packet[2:4])
        elif kind == PINGREQ:
            end.send(b"\xd0\x00")


@pytest.mark.parametrize("qos", [1, 2])
def test_S7_a_message_that_the_broker_closes_on_is_dropped_with_a_word_and_the_rest_goes(qos):
    with Scripted(picky) as server, Rig(server.port, max_retries=3) as rig:
        rig.up()
        rig.order("put", qos=qos)
        rig.order("put", text="bad apple", qos=qos)
        rig.order("put", n=5, qos=qos)
        rig.delivered(6)
        stats = rig.stats()
        assert stats["dropped"] == [["poison", 9]]
        assert (stats["held"], stats["losses"], stats["connects"]) == (0, 3, 4)
        assert rig.lines(
            "dropped as poison: topic rig/data, payload of 9 bytes: "
            "the broker closed 3 connections in a row on it"
        )


def strict(end: End) -> None:
    """A play: a broker that closes on a greeting."""
    end.packet()
    end.send(CONNACK_KEPT)
    while b"huge" not in end.packet():
        pass


def test_S7_a_message_is_not_to_blame_for_the_greetings_before_it():
    options = {"greetings": [["rig/tags", "huge"]], "max_retries": 2}
    with Scripted(*[strict] * 8, picky) as server, Rig(server.port, **options) as rig:
        rig.order("put", n=3)
        rig.delivered(3)
        assert rig.stats()["dropped"] == []
        assert "in a row on the greetings: does it allow status and tags?" in rig.down(8)
        assert b"\xc0\x00" in server.packets[8]


def test_L3_a_ping_behind_the_greetings_has_a_deadline():
    def mute(end: End) -> None:
        end.packet()
        end.send(CONNACK_KEPT)
        end.until_closed()

    with Scripted(strict, mute, picky) as server, Rig(server.port, keepalive_s=0) as rig:
        rig.up()
        rig.order("put", text="huge")
        rig.down(1)
        rig.up(2)
        rig.until(lambda _: b"\xc0\x00" in server.packets[1], "the ping")
        rig.order("advance", ms=20000)
        assert rig.down(2) == "no answer to a ping within 20 s"
        rig.delivered(1)


def test_S7_a_broker_that_restarts_again_and_again_costs_nothing(tmp_path):
    with (
        Broker(tmp_path, kind=MOSQUITTO, persistence=True) as broker,
        Proxy(broker.port) as proxy,
        Judge(broker.port) as judge,
        Rig(proxy.port, max_retries=2) as rig,
    ):
        for n in range(1, 5):
            rig.up(n)
            rig.order("put", n=20)
            rig.delivered(20 * n)
            broker.restart()
            rig.down(n)
            judge.listens(n + 1)
        rig.up(5)
        rig.order("put", n=1)
        rig.delivered(81)
        judge.has_all(81, repeats=4)
        assert rig.stats()["dropped"] == []
