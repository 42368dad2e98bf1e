"""Peers that say nothing: every wait has a deadline with words of its own, and pings find the dead.

The rig answers orders all the while, which shows that nothing in it blocks (L1).
"""

import socket
import threading
import time

import pytest

from tests_host.link import wire
from tests_host.link.harness import WAIT_S, Rig
from tests_host.link.scripted import CONNACK_NEW, End, Scripted
from tools.loopback import HOST


def full_listener():
    """A listener whose backlog is full, so that the SYNs of others vanish, and who fills it."""
    listener = socket.create_server((HOST, 0), backlog=0)
    filler = socket.create_connection(listener.getsockname(), timeout=5)
    return listener, filler


def test_L3_silence_after_the_SYN():
    """Report: OpenEVSE#1102."""
    listener, filler = full_listener()
    with listener, filler, Rig(listener.getsockname()[1]) as rig:
        rig.until(lambda s: s["attempts"] == 1 and s["state"] == "connecting", "a SYN on its way")
        rig.order("advance", ms=9000)
        assert rig.stats()["attempts"] == 1
        rig.order("advance", ms=1000)
        assert rig.down() == "TCP connection not made within 10 s"
        rig.until(lambda s: s["attempts"] == 2, "the next attempt")


def test_L3_CONNACK_has_the_whole_time_however_long_the_TCP_connection_took():
    listener, filler = full_listener()
    with listener, filler, Rig(listener.getsockname()[1], client_id="late") as rig:
        rig.until(lambda s: s["attempts"] == 1 and s["state"] == "connecting", "a SYN on its way")
        rig.order("advance", ms=6000)
        listener.accept()[0].close()
        listener.settimeout(30)
        sock, _ = listener.accept()  # the SYN is repeated after a second
        with sock:
            rig.until(lambda s: s["state"] == "greeting", "the CONNECT")
            rig.order("advance", ms=6000)
            assert rig.stats()["attempts"] == 1
            sock.sendall(CONNACK_NEW)
            rig.up()
            rig.until(lambda s: s["up"], "the link up")


def test_L3_a_broker_that_never_answers_a_SUBSCRIBE():
    def deaf(end: End) -> None:
        end.packet()
        end.send(CONNACK_NEW)
        end.until_closed()

    def slow(end: End) -> None:
        end.packet()
        assert asked.wait(WAIT_S)
        end.send(CONNACK_NEW)
        end.serve()

    asked = threading.Event()
    subscriptions = [["rig/in", 1]]
    with Scripted(deaf, slow) as server, Rig(server.port, subscriptions=subscriptions) as rig:
        rig.until(lambda s: s["up"], "the link up")
        rig.order("advance", ms=19000)
        assert rig.stats()["losses"] == 0
        rig.order("advance", ms=1000)
        assert rig.down() == "no answer to the subscription to rig/in within 20 s"
        rig.until(lambda s: s["attempts"] == 2 and s["state"] == "greeting", "the next attempt")
        rig.order("advance", ms=5000)
        asked.set()
        assert rig.subscribed("rig/in")["attempts"] == 2


def test_OpenEVSE_1102_a_broker_that_never_sends_CONNACK(proxy, rig):
    """Report: OpenEVSE#1102."""
    rig.up()
    proxy.silence()
    proxy.reset()
    rig.until(lambda s: s["attempts"] == 2 and s["state"] == "greeting", "a CONNECT on its way")
    rig.order("put", n=3)
    rig.order("advance", ms=10000)
    assert rig.down(2) == "no CONNACK within 10 s"
    proxy.refuse()
    proxy.restore()
    rig.delivered(3)


def test_L3_the_deadlines_are_kept_in_real_time():
    with (
        Scripted(End.until_closed) as mute,
        Rig(mute.port, connect_timeout_s=1, backoff_ms=[1, 1]) as rig,
    ):
        rig.until(lambda s: s["attempts"] == 1, "the first attempt")
        began = time.monotonic()
        assert rig.down(1) == rig.down(2) == "no CONNACK within 1 s"
        assert time.monotonic() - began > 1.5


def test_project_aura_125_a_frozen_broker_is_noticed_by_a_ping_when_idle(broker, proxy, rig):
    """Report: project_aura#125."""
    rig.up()
    broker.freeze()
    rig.order("advance", ms=29000)
    assert rig.stats()["pings"] == 0
    rig.order("advance", ms=1000)
    rig.until(lambda s: s["pings"] == 1, "a ping")
    rig.order("advance", ms=29000)
    assert rig.stats()["up"]
    rig.order("advance", ms=1000)
    assert rig.down(1) == "no answer to a ping within 30 s"
    rig.until(lambda s: s["state"] == "greeting", "a CONNECT to the frozen broker")
    rig.order("advance", ms=10000)
    assert rig.down(2) == "no CONNACK within 10 s"
    broker.thaw()
    rig.up(2)


def test_project_aura_125_a_frozen_broker_is_noticed_by_the_missing_PUBACK(
    broker, proxy, judge, rig
):
    """Report: project_aura#125, lib#103."""
    rig.order("put", n=5)
    rig.delivered(5)
    broker.freeze()
    rig.order("put", n=5)
    rig.order("advance", ms=20000)
    assert rig.down() == "no acknowledgement within 20 s"
    broker.thaw()
    rig.delivered(10)
    judge.has_all(10, repeats=1)


def test_lib_890_silence_after_the_first_packet_received(broker, proxy, judge):
    """Report: lib#890."""
    with Rig(proxy.port, subscriptions=[["rig/in", 0]]) as rig:
        rig.up()
        wire.wait_count(broker, "SUBSCRIBE", 1)
        judge.publish("rig/in", b"first")
        rig.wait(rig.inbound, "the first packet")
        broker.freeze()
        rig.order("advance", ms=30000)
        rig.until(lambda s: s["pings"] == 1, "a ping")
        rig.order("advance", ms=30000)
        assert "no answer to a ping" in rig.down()
        broker.thaw()


def test_L6_keepalive_is_off_when_it_is_0(proxy):
    with Rig(proxy.port, keepalive_s=0) as rig:
        rig.up()
        for _ in range(5):
            rig.order("advance", ms=100000000)
        stats = rig.stats()
        assert (stats["pings"], stats["connects"], stats["up"]) == (0, 1, True)


def test_L6_lib_210_pings_keep_an_idle_a_sending_and_a_receiving_link_for_real(broker, judge):
    """The real broker throws a silent client out after 1.5 times the keepalive of 2 s.

    Report: lib#210.
    """
    options = {"keepalive_s": 2, "subscriptions": [["to/hears", 0]]}
    with (
        Rig(broker.port, client_id="idle", keepalive_s=2) as idle,
        Rig(broker.port, client_id="sends", keepalive_s=2) as sends,
        Rig(broker.port, client_id="hears", **options) as hears,
    ):
        wire.wait_count(broker, "SUBSCRIBE", 1, "hears")
        sends.order("trickle", n=1, qos=0)
        rigs = {"idle": idle, "sends": sends, "hears": hears}
        deadline = time.monotonic() + WAIT_S
        while min(wire.count(broker, "PINGREQ", name) for name in rigs) < 4:
            assert time.monotonic() < deadline, "four pings from each"
            judge.publish("to/hears", b"x", qos=0)
            time.sleep(0.05)
        for name, rig in rigs.items():
            stats = rig.stats()
            assert (name, stats["connects"], stats["losses"]) == (name, 1, 0)
        assert len(hears.inbound()) > 20
        assert sends.stats()["delivered"] > 100


@pytest.mark.parametrize("keepalive_s", [1, 3])
def test_L6_a_missing_PINGRESP_is_named_with_the_time_it_had(keepalive_s, proxy, broker):
    with Rig(proxy.port, keepalive_s=keepalive_s) as rig:
        rig.up()
        broker.freeze()
        limit = max(1000, keepalive_s * 500)
        rig.order("advance", ms=limit)
        rig.until(lambda s: s["pings"] == 1, "a ping")
        rig.order("advance", ms=limit)
        assert rig.down() == f"no answer to a ping within {limit / 1000:g} s"
        broker.thaw()


def test_the_link_task_beats_as_long_as_its_deadlines_are_watched(proxy):
    with Rig(proxy.port, keepalive_s=0) as rig:
        rig.up()
        rig.order("advance", ms=3600000)
        rig.until(lambda s: not s["unwell"], "a beat of the idle link")
        assert rig.stats()["connects"] == 1


def test_mp_9516_coreMQTT_288_deadlines_across_the_wrap_of_the_clock(broker, proxy, judge):
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    with Rig(proxy.port, start_ms=2**30 - 5000) as rig:
        rig.order("put", n=3)
        rig.delivered(3)
        assert rig.stats()["now"] > 2**29
        rig.order("advance", ms=6000)
        assert rig.stats()["now"] < 2**29
        rig.order("put", n=3)
        rig.delivered(6)
        assert rig.stats()["pings"] == 0
        judge.has_all(6)
    with Rig(proxy.port, start_ms=2**30 - 5000) as rig:
        rig.up()
        broker.freeze()
        rig.order("put", n=1)
        rig.order("advance", ms=19000)
        assert rig.stats()["up"]
        rig.order("advance", ms=1000)
        assert "no acknowledgement" in rig.down()
        broker.thaw()
