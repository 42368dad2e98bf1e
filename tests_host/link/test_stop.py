"""The program stopped and started again, in order or in the middle: nothing lost, nothing left."""

import threading

import pytest

from tests_host.link import wire
from tests_host.link.harness import WAIT_S, Rig, number_of
from tests_host.link.scripted import CONNACK_NEW, Scripted
from tests_host.link.scripted import broker as good_broker
from tools.mqtt_packets import PUBACK
from tools.proxy import DOWN

HOW = pytest.mark.parametrize("how", ["stop", "interrupt"])


@HOW
def test_what_was_in_flight_goes_out_first_when_the_program_goes_on(how, broker, proxy, judge, rig):
    rig.up()
    proxy.swallow(DOWN, PUBACK)
    rig.order("put", n=5)
    proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, 10)
    rig.order(how)
    assert rig.up(2) is True
    rig.delivered(5)
    assert judge.has_all(5, repeats=1) == {0: 1}
    assert [(p.packet_id, p.dup) for p in wire.publishes(broker)][:3] == [
        (1, False),
        (1, True),
        (2, False),
    ]


@HOW
def test_a_stop_is_no_loss(how, rig):
    rig.up()
    rig.order(how)
    rig.up(2)
    assert rig.stats()["losses"] == 0


@pytest.mark.parametrize("how", ["stop", "interrupt", "give_up"])
def test_S9_the_pace_is_kept_over_an_end_of_the_connection(how, broker, judge):
    with Rig(broker.port, rate_limit=20, tick_ms=1000) as rig:
        rig.up()
        rig.order("put", n=20)
        rig.delivered(3)
        rig.order(how)
        began = rig.until(lambda s: s["up"], "the link up again")
        stats = rig.delivered(20)
        paced_ms = 50 * (20 - began["delivered"])
        assert 0.9 * paced_ms - 100 <= stats["last_at"] - began["now"] <= 1.1 * paced_ms + 100
        judge.has_all(20, repeats=1)


@HOW
def test_L7_subscriptions_are_made_again_when_the_program_goes_on(how, broker, proxy):
    with Rig(proxy.port, subscriptions=[["rig/in", 1]]) as rig:
        rig.subscribed("rig/in")
        rig.order(how)
        assert rig.up(2) is True
        rig.subscribed("rig/in")
        assert wire.count(broker, "SUBSCRIBE") == 2


@HOW
def test_L10_no_socket_is_left_behind(how, proxy, judge, rig):
    rig.up()
    before = rig.open_files()
    for n in range(2, 12):
        rig.order(how)
        rig.up(n)
    rig.order("put", n=3)
    rig.delivered(3)
    judge.has_all(3)
    assert rig.open_files() == before
    proxy.wait_for(lambda p: p.open == 1, 10)


@HOW
def test_a_page_half_gone_goes_whole_over_the_next_connection(how):
    def deaf(end):
        end.packet()
        end.send(CONNACK_NEW)
        stopped.wait(WAIT_S)

    stopped = threading.Event()
    with (
        Scripted(deaf, good_broker, receive_buffer=2048) as server,
        Rig(server.port, send_buffer=2048) as rig,
    ):
        rig.order("put", n=2, size=4088)
        rig.until(lambda s: s["sending"] == "leaving", "a page half gone")
        rig.order(how)
        stopped.set()
        rig.delivered(2)
        assert [number_of(packet[-4088:]) for packet in server.packets[1][1:]] == [0, 1]


@HOW
def test_stopped_while_it_waits_to_connect(how, proxy, judge, rig):
    rig.up()
    proxy.silence()
    proxy.reset()
    rig.until(lambda s: s["attempts"] == 2 and s["state"] == "greeting", "a CONNECT on its way")
    rig.order("put", n=2)
    rig.order(how)
    proxy.refuse()
    proxy.restore()
    rig.delivered(2)
    judge.has_all(2)


def test_a_connection_given_up_in_the_turn_of_the_stop_does_not_outlive_it(proxy, judge, rig):
    rig.up()
    rig.order("stop", give_up=True)
    rig.order("put", n=2)
    rig.delivered(2)
    judge.has_all(2)
    proxy.wait_for(lambda p: p.open == 1, 10)
