"""What the broker remembers: sessions that are kept, sessions that are gone, wills and births."""

import contextlib

import pytest

from tests_host.link import wire
from tests_host.link.harness import Judge, Rig
from tests_host.link.scripted import (
    CONNACK_KEPT,
    CONNACK_NEW,
    Scripted,
    answer,
    broker_with_session,
)
from tools.broker import MOSQUITTO, Broker
from tools.mqtt_packets import PUBACK
from tools.proxy import DOWN, Proxy


@contextlib.contextmanager
def keeping(tmp_path):
    """(broker, proxy, judge, rig), where the broker keeps its sessions when it is restarted."""
    with (
        Broker(tmp_path, kind=MOSQUITTO, persistence=True) as broker,
        Proxy(broker.port) as proxy,
        Judge(broker.port) as judge,
        Rig(proxy.port) as rig,
    ):
        yield broker, proxy, judge, rig


def in_flight_over_a_restart(broker, proxy, judge, rig):
    """Have message 0 in flight, taken by the broker but not acknowledged, and restart the broker.

    The judge is there again before the rig is let in.
    """
    rig.up()
    proxy.swallow(DOWN, PUBACK)
    rig.order("put", n=10)
    judge.received(1)
    proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, 10)
    proxy.refuse()
    rig.down()
    broker.restart()
    judge.listens(2)
    proxy.restore()


def sent(broker):
    return [(p.packet_id, p.dup) for p in wire.publishes(broker)]


def test_S3_session_kept_over_a_restart_of_the_broker_means_the_same_id_and_DUP(tmp_path):
    """Report: mq/session-present, EMS-ESP32#305."""
    with keeping(tmp_path) as (broker, proxy, judge, rig):
        in_flight_over_a_restart(broker, proxy, judge, rig)
        assert rig.up(2) is True
        rig.delivered(10)
        assert judge.has_all(10, repeats=1) == {0: 1}
        assert sent(broker)[:3] == [(1, False), (1, True), (2, False)]


def test_S3_espMqttClient_59_session_gone_means_a_new_publication_and_nothing_lost(
    broker, proxy, judge, rig
):
    """Report: espMqttClient#59."""
    in_flight_over_a_restart(broker, proxy, judge, rig)
    assert rig.up(2) is False
    assert rig.delivered(10)["resent"] == 1
    assert judge.has_all(10, repeats=1) == {0: 1}
    assert sent(broker)[:3] == [(1, False), (2, False), (3, False)]


def test_promise_a_killed_broker_loses_nothing_that_was_not_acknowledged(broker, proxy, judge, rig):
    """Report: NanoMQ#2432."""
    rig.order("put", n=5)
    rig.delivered(5)
    judge.has_all(5)
    broker.kill()
    rig.down()
    proxy.refuse()
    rig.order("put", n=20)
    broker.start()
    judge.listens(2)
    proxy.restore()
    rig.delivered(25)
    judge.has_all(25)


def test_L7_clean_session_asks_for_a_new_one_each_time(broker, proxy, judge):
    with Rig(proxy.port, clean_session=True) as rig:
        rig.up()
        proxy.swallow(DOWN, PUBACK)
        rig.order("put", n=2)
        judge.received(1)
        proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, 10)
        proxy.reset()
        assert rig.up(2) is False
        rig.delivered(2)
        assert sent(broker) == [(1, False), (2, False), (3, False)]
        judge.has_all(2, repeats=1)


def test_L7_subscriptions_are_made_anew_when_the_session_is_gone_and_only_then(
    broker, proxy, judge
):
    with Rig(proxy.port, subscriptions=[["rig/a", 1], ["rig/b", 1]]) as rig:
        assert rig.up(1) is False
        rig.subscribed("rig/a", "rig/b")
        proxy.reset()
        assert rig.up(2) is True
        judge.publish("rig/a", b"1")
        rig.wait(lambda: len(rig.inbound()) == 1, "a message by the kept subscription")
        assert wire.count(broker, "SUBSCRIBE") == 2
        proxy.refuse()
        broker.restart()
        judge.listens(2)
        proxy.restore()
        rig.wait(lambda: len(rig.ups) == 3, "the connection to the new broker")
        assert rig.ups[2] is False
        rig.subscribed("rig/a", "rig/b")
        assert wire.count(broker, "SUBSCRIBE") == 4
        judge.publish("rig/b", b"2")
        rig.wait(lambda: len(rig.inbound()) == 2, "a message by the new subscription")


def topics(packets):
    """The topics of the SUBSCRIBEs among packets."""
    return [p[6:-1].decode() for p in packets if p[0] == 0x82]


def suback(packet_id, code):
    return b"\x90\x03" + packet_id.to_bytes(2, "big") + bytes([code])


def test_L7_a_subscription_lost_with_the_link_is_made_on_the_next_though_the_session_is_kept():
    def confirms_the_first(end):
        end.packet()
        end.send(CONNACK_NEW)
        for _ in range(2):
            end.packet()
        end.send(suback(1, 1))

    with (
        Scripted(confirms_the_first, *[broker_with_session] * 2) as server,
        Rig(server.port, subscriptions=[["rig/a", 1], ["rig/b", 0]]) as rig,
    ):
        assert rig.up(2) is True
        rig.subscribed("rig/a", "rig/b")
        rig.order("give_up")
        rig.up(3)
        rig.order("put")
        rig.delivered(1)
        assert [topics(packets) for packets in server.packets] == [
            ["rig/a", "rig/b"],
            ["rig/b"],
            [],
        ]


def unseen(end, _rig):
    end.packet()


def followed_by_nonsense(end, _rig):
    end.packet()
    end.send(CONNACK_NEW + b"\xf0\x00")


def lost_in_the_greeting(end, rig):
    end.packet()
    end.send(CONNACK_NEW)
    rig.up(2)


@pytest.mark.parametrize("fate", [unseen, followed_by_nonsense, lost_in_the_greeting])
def test_L7_a_session_that_came_between_has_no_subscriptions(fate):
    """However little we saw of the CONNACK that began it."""

    def confirms(end):
        end.packet()
        end.send(CONNACK_NEW)
        for _ in range(2):
            last = end.packet()
        end.send(suback(int.from_bytes(last[2:4], "big"), 1))

    options = {"greetings": [["rig/tags", "t" * 6000]], "subscriptions": [["rig/in", 1]]}
    with (
        Scripted(
            confirms, lambda end: fate(end, rig), broker_with_session, receive_buffer=2048
        ) as server,
        Rig(server.port, send_buffer=2048, page_bytes=8192, **options) as rig,
    ):
        server.connection(3)
        rig.subscribed("rig/in")
        assert [topics(packets) for packets in server.packets] == [["rig/in"], [], ["rig/in"]]


def test_L7_a_refused_subscription_is_shown_and_asked_for_again_on_the_next_connection():
    def refuses(end):
        end.packet()
        end.send(CONNACK_NEW)
        end.packet()
        end.send(suback(1, 0x80))
        end.serve()

    with (
        Scripted(refuses, broker_with_session) as server,
        Rig(server.port, subscriptions=[["rig/in", 1]]) as rig,
    ):
        rig.wait(lambda: rig.lines("subscription to rig/in refused"), "a word of it")
        rig.order("put", n=3)
        stats = rig.delivered(3)
        assert (stats["refused"], stats["subscribed"]) == (["rig/in"], [])
        assert topics(server.packets[0]) == ["rig/in"]
        rig.order("give_up")
        assert rig.subscribed("rig/in")["refused"] == []
        assert topics(server.packets[1]) == ["rig/in"]


def test_L4_a_SUBACK_that_nobody_asked_for_confirms_nothing():
    with (
        Scripted(answer(CONNACK_NEW + suback(9, 1))) as server,
        Rig(server.port, subscriptions=[["rig/in", 1]]) as rig,
    ):
        rig.up()
        rig.until(lambda _: len(server.packets[0]) == 2, "the SUBSCRIBE")
        server.connection(1).send(suback(8, 1) + b"\x40\x02\x00\x07")
        stats = rig.until(lambda s: s["stray_acks"] == 1, "what came behind it")
        assert (stats["subscribed"], stats["refused"], stats["up"]) == ([], [], True)


def test_L7_what_the_session_has_collected_comes_at_once_with_the_CONNACK(broker, proxy, judge):
    with Rig(proxy.port, subscriptions=[["rig/in", 1]]) as rig:
        rig.up()
        rig.subscribed("rig/in")
        proxy.refuse()
        rig.down()
        for n in range(12):
            judge.publish("rig/in", b"%d" % n)
        proxy.restore()
        assert rig.up(2) is True
        rig.wait(lambda: len(rig.inbound()) >= 12, "what was published meanwhile")
        assert [text for _, text, _ in rig.inbound()] == [str(n) for n in range(12)]
        wire.wait_count(broker, "PUBACK", 12)
        assert rig.stats()["connects"] == 2


def test_L7_CONNACK_and_messages_in_one_segment():
    publish = b"\x32\x0a\x00\x06rig/in\x00\x07"
    with Scripted(answer(CONNACK_KEPT + publish)) as server, Rig(server.port) as rig:
        rig.wait(rig.inbound, "the message behind the CONNACK")
        assert rig.up() is True
        rig.until(lambda _: len(server.packets[0]) == 2, "its acknowledgement")
        assert server.packets[0][1] == b"\x40\x02\x00\x07"
        assert rig.downs == []


def test_mq_code_CONNACK_with_session_present_on_the_first_connection():
    """Report: mq/session-present."""
    with Scripted(broker_with_session) as server, Rig(server.port) as rig:
        assert rig.up() is True
        rig.order("put", n=3)
        rig.delivered(3)
        assert [p[0] for p in server.packets[0][1:]] == [0x32] * 3
        assert rig.stats()["resent"] == 0


def test_last_will_when_the_link_dies_and_birth_on_each_connection(broker, proxy):
    options = {"will": ["rig/status", "offline"], "greetings": [["rig/status", "online"]]}
    with Judge(broker.port, "rig/status") as judge, Rig(proxy.port, **options) as rig:
        assert judge.received(1, "rig/status") == [b"online"]
        proxy.reset()
        rig.up(2)
        expected = [b"online", b"offline", b"online"]
        assert judge.received(3, "rig/status") == expected
        rig.kill()
        assert judge.received(4, "rig/status") == [*expected, b"offline"]
        with Judge(broker.port, "rig/status") as later:
            later.received(1, "rig/status")
            assert later.got == [("rig/status", b"offline", True)]


def test_homie_birth_is_retained_for_those_who_come_later(broker, proxy):
    options = {"greetings": [["rig/status", "online"], ["rig/tags", "é" * 3000]]}
    with Rig(proxy.port, page_bytes=8192, **options) as rig:
        rig.up()
        wire.wait_count(broker, "PUBLISH", 2)
        with Judge(broker.port, "rig/#") as later:
            later.received(1, "rig/tags")
            assert later.got[0] == ("rig/status", b"online", True)
            assert later.got[1] == ("rig/tags", "é".encode() * 3000, True)
