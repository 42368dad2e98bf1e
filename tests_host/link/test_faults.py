"""What a network does to a connection: refuses, cuts, holds, loses, delays, splits.

After each fault all messages are at the broker, in order. A repeat is allowed only for the message
that was in flight at a cut, and the broker must have seen it under the same packet id, with DUP.
"""

import itertools

import pytest

from tests_host.link import wire
from tests_host.link.harness import Rig
from tools.mqtt_packets import CONNACK, PINGRESP, PUBACK
from tools.proxy import DOWN, UP

MESSAGE_BYTES = 78  # of a PUBLISH of 64 bytes to rig/data
CONNECT_BYTES = 17
ACK_WORDS = "no acknowledgement within 20 s"


def assert_resent_under_the_same_id(broker):
    """Each id follows the last by one; the same id again only as a DUP of the message before."""
    sent = wire.publishes(broker)
    ids = [packet_id for packet_id, _ in itertools.groupby(p.packet_id for p in sent)]
    assert ids == list(range(1, len(ids) + 1))
    for before, after in itertools.pairwise(sent):
        assert after.dup or after.packet_id != before.packet_id


def test_S3_refused_then_restored_delivers_all_that_came_meanwhile(broker, proxy, judge, rig):
    rig.order("put", n=5)
    rig.delivered(5)
    proxy.refuse()
    assert "closed the connection" in rig.down(1)
    assert "connection refused: no broker listens at 127.0.0.1" in rig.down(2)
    rig.order("put", n=100)
    assert rig.stats()["held"] == 100
    proxy.restore()
    assert rig.up(2) is True
    rig.delivered(105)
    assert judge.has_all(105) == {}
    assert_resent_under_the_same_id(broker)


def test_S3_reset_behind_every_byte_of_a_message_loses_nothing(broker, proxy, judge, rig):
    rig.up()
    cuts = range(1, MESSAGE_BYTES + 5)
    for n, cut in enumerate(cuts, 1):
        proxy.reset_after(cut, UP)
        rig.order("put", n=2)
        assert "closed the connection" in rig.down(n)
        assert rig.up(n + 1) is True
        rig.delivered(2 * n)
    repeats = judge.has_all(2 * len(cuts), repeats=len(cuts))
    # A cut inside the first message can't have brought the broker a whole one.
    assert all(number >= 2 * (MESSAGE_BYTES - 1) for number in repeats)
    assert_resent_under_the_same_id(broker)
    assert rig.stats()["resent"] == len(cuts)


def test_S3_reset_behind_every_byte_of_an_acknowledgement_repeats_that_message_alone(
    broker, proxy, judge, rig
):
    """Report: robust2#2."""
    rig.up()
    for cut in range(1, 5):
        proxy.reset_after(cut, DOWN)
        rig.order("put", n=2)
        rig.down(cut)
        assert rig.up(cut + 1) is True
        rig.delivered(2 * cut)
    repeats = judge.has_all(8, repeats=4)
    assert {0, 2, 4} <= set(repeats)
    assert_resent_under_the_same_id(broker)
    assert rig.stats()["stray_acks"] == 0


@pytest.mark.parametrize(("direction", "size"), [(UP, CONNECT_BYTES), (DOWN, 4)])
def test_L3_reset_behind_every_byte_of_the_greeting(direction, size, proxy, judge, rig):
    """Report: robust2#2."""
    rig.up()
    for n, cut in enumerate(range(1, size), 1):
        proxy.reset_after(cut, direction)
        rig.order("give_up")
        assert rig.down(2 * n - 1) == "the test says so"
        assert "closed the connection" in rig.down(2 * n)
        rig.up(n + 1)
    rig.order("put", n=3)
    rig.delivered(3)
    assert judge.has_all(3) == {}


def test_L3_S5_a_stall_drops_the_link_at_the_deadline_and_resends_nothing_before(
    broker, proxy, judge, rig
):
    """Report: lib#103."""
    rig.up()
    proxy.stall()
    rig.order("put", n=3)
    rig.order("advance", ms=19000)
    stats = rig.stats()
    assert (stats["connects"], stats["resent"], stats["losses"], stats["up"]) == (1, 0, 0, True)
    rig.order("advance", ms=1000)
    assert rig.down(1) == ACK_WORDS
    # The stalled path takes TCP connections and answers nothing.
    rig.until(lambda s: s["attempts"] == 2 and s["state"] == "greeting", "a CONNECT on its way")
    rig.order("advance", ms=10000)
    assert rig.down(2) == "no CONNACK within 10 s"
    proxy.refuse()  # else the held CONNECT may come late and put the newer connection out
    proxy.restore()
    assert rig.up(2) is True
    rig.delivered(3)
    assert judge.has_all(3) == {}
    assert_resent_under_the_same_id(broker)


def test_S5_a_stall_shorter_than_the_deadline_costs_nothing(broker, proxy, judge, rig):
    rig.up()
    proxy.stall()
    rig.order("put", n=3)
    rig.order("advance", ms=19000)
    rig.stats()
    proxy.restore()
    rig.delivered(3)
    assert judge.has_all(3) == {}
    assert [(p.packet_id, p.dup) for p in wire.publishes(broker)] == [
        (1, False),
        (2, False),
        (3, False),
    ]
    assert rig.stats()["connects"] == 1


def test_S5_the_deadline_is_kept_in_real_time(proxy, judge):
    with Rig(proxy.port, ack_timeout_s=1) as rig:
        rig.up()
        proxy.swallow(DOWN, PUBACK)
        began = rig.stats()["now"]
        rig.order("put", n=2)
        assert rig.down() == "no acknowledgement within 1 s"
        assert rig.stats()["now"] - began >= 1000
        rig.delivered(2)
        judge.has_all(2, repeats=1)


def test_lib_103_EMS_ESP32_305_a_lost_PUBACK_is_made_good_under_the_same_id(
    broker, proxy, judge, rig
):
    """Report: lib#103, EMS-ESP32#305."""
    rig.up()
    proxy.swallow(DOWN, PUBACK)
    rig.order("put", n=3)
    proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, 10)
    rig.order("advance", ms=20000)
    assert rig.down() == ACK_WORDS
    assert rig.up(2) is True
    rig.delivered(3)
    assert judge.has_all(3, repeats=1) == {0: 1}
    assert [(p.packet_id, p.dup) for p in wire.publishes(broker)] == [
        (1, False),
        (1, True),
        (2, False),
        (3, False),
    ]


def test_mq_code_a_PUBACK_delayed_beyond_the_deadline_and_then_two_messages(
    broker, proxy, judge, rig
):
    """Report: mq/repeated-ack."""
    rig.up()
    proxy.delay(60, DOWN)
    rig.order("put", n=1)
    proxy.wait_for(lambda p: p.packets[UP][3] == 1, 10)
    rig.order("advance", ms=20000)
    assert rig.down() == ACK_WORDS
    proxy.refuse()
    proxy.restore()
    rig.order("put", n=2)
    rig.delivered(3)
    assert judge.has_all(3, repeats=1) == {0: 1}
    assert_resent_under_the_same_id(broker)
    assert rig.stats()["stray_acks"] == 0


def test_L4_single_bytes_in_both_directions(broker, proxy, judge):
    proxy.split(0.0005)
    with Rig(proxy.port, subscriptions=[["rig/in", 1]]) as rig:
        rig.up()
        wire.wait_count(broker, "SUBSCRIBE", 1)
        judge.publish("rig/in", b"to the rig, byte by byte")
        rig.wait(rig.inbound, "the message from outside")
        rig.order("put", n=8)
        rig.delivered(8)
        assert judge.has_all(8) == {}
        assert rig.inbound() == [("rig/in", "to the rig, byte by byte", 24)]
        assert rig.stats()["connects"] == 1


def test_NanoMQ_2432_stored_while_offline_and_cut_in_the_drain(broker, proxy, judge, rig):
    """Report: NanoMQ#2432."""
    rig.up()
    proxy.refuse()
    rig.down()
    rig.order("put", n=12)
    proxy.restore()
    before = rig.stats()["losses"]
    for n in range(1, 4):
        proxy.reset_after(2 * MESSAGE_BYTES + n, UP)
        rig.until(lambda s, n=n: s["losses"] >= before + n or s["delivered"] == 12, "a cut")
    rig.delivered(12)
    judge.has_all(12, repeats=3)
    assert_resent_under_the_same_id(broker)


def test_mp_4290_an_end_while_nothing_happens_is_noticed_at_once(broker, proxy, rig):
    """Report: mp#4290."""
    rig.up()
    broker.stop()
    assert "closed the connection" in rig.down()
    proxy.refuse()
    broker.start()
    proxy.restore()
    rig.up(2)


def test_no_attempt_is_made_while_there_is_no_network(proxy, judge):
    with Rig(proxy.port, network=False) as rig:
        rig.order("put", n=2)
        rig.until(lambda s: s["reason"] == "no network", "the reason")
        rig.order("advance", ms=19000)
        rig.until(lambda s: not s["unwell"], "a beat")
        assert rig.stats()["attempts"] == 0
        rig.order("network", up=True)
        rig.delivered(2)
        rig.order("network", up=False)
        proxy.reset()
        rig.until(lambda s: s["reason"] == "no network", "the reason")
        assert rig.stats()["attempts"] == 1
        rig.order("put", n=2)
        rig.order("network", up=True)
        rig.delivered(4)
        judge.has_all(4)


def test_L3_no_CONNACK_because_it_was_lost(proxy, judge, rig):
    """Report: OpenEVSE#1102."""
    rig.up()
    proxy.swallow(DOWN, CONNACK)
    rig.order("give_up")
    proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, 10)
    rig.order("advance", ms=10000)
    assert rig.down(2) == "no CONNACK within 10 s"
    rig.up(2)


def test_each_loss_is_counted_once(proxy, rig):
    """Report: mp#4290."""
    rig.up()
    proxy.reset()
    rig.up(2)
    rig.order("give_up")
    rig.up(3)
    assert rig.stats()["losses"] == 2


def test_a_send_over_a_dead_connection_gives_it_up_and_raises_nothing(judge, rig):
    rig.up()
    rig.order("break_writes")
    rig.order("put", n=2)
    assert "closed the connection" in rig.down()
    rig.delivered(2)
    judge.has_all(2)


def test_L6_a_lost_PINGRESP_drops_the_link(broker, proxy, judge, rig):
    """Report: project_aura#125, lib#890."""
    rig.up()
    proxy.swallow(DOWN, PINGRESP)
    rig.order("advance", ms=30000)
    proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, 10)
    assert rig.stats()["up"]
    rig.order("advance", ms=30000)
    assert rig.down() == "no answer to a ping within 30 s"
    rig.up(2)
