"""What comes from the broker: given to the callback, acknowledged, and never too much to bear."""

import threading

import paho.mqtt.client as mqtt
import pytest

from tests_host.link import wire
from tests_host.link.harness import WAIT_S, Rig


@pytest.fixture
def rig(broker, proxy):
    """A rig that has subscribed to rig/in/# at QoS 1."""
    with Rig(proxy.port, subscriptions=[["rig/in/#", 1]]) as made:
        made.up()
        wire.wait_count(broker, "SUBSCRIBE", 1)
        yield made


def test_inbound_QoS_1_is_given_to_the_callback_and_acknowledged(broker, judge, rig):
    for n in range(5):
        judge.publish("rig/in/a", b"%d" % n)
    rig.wait(lambda: len(rig.inbound()) == 5, "five messages")
    assert rig.inbound() == [("rig/in/a", str(n), 1) for n in range(5)]
    wire.wait_count(broker, "PUBACK", 5)


def test_inbound_QoS_0_needs_no_acknowledgement(broker, judge, rig):
    judge.publish("rig/in/a", b"zero", qos=0)
    judge.publish("rig/in/a", b"one", qos=1)
    rig.wait(lambda: len(rig.inbound()) == 2, "two messages")
    wire.wait_count(broker, "PUBACK", 1)
    assert wire.count(broker, "PUBACK") == 1


def leave_a_session(broker, name, topic):
    """As the client `name`, subscribe at QoS 2, and leave the broker with that session."""
    subscribed = threading.Event()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
    client.on_connect = lambda *_: client.subscribe(topic, 2)
    client.on_subscribe = lambda *_: subscribed.set()
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    assert subscribed.wait(WAIT_S)
    client.disconnect()
    client.loop_stop()


def test_L4_what_a_session_holds_at_QoS_2_for_another_client_of_our_name_is_taken(broker, judge):
    leave_a_session(broker, "rig", "other/#")
    for n in range(3):
        judge.publish("other/a", b"%d" % n, qos=2)
    with Rig(broker.port) as rig:
        assert rig.up() is True
        rig.wait(lambda: len(rig.inbound()) == 3, "what the session held")
        assert rig.inbound() == [("other/a", str(n), 1) for n in range(3)]
        wire.wait_count(broker, "PUBCOMP", 3)
        assert (wire.count(broker, "PUBREC"), wire.count(broker, "PUBACK")) == (3, 0)
        rig.order("put", n=3)
        assert rig.delivered(3)["connects"] == 1


def test_mongoose_1827_inbound_empty_payload(judge, rig):
    """Report: mongoose#1827."""
    judge.publish("rig/in/empty", b"")
    rig.wait(rig.inbound, "the message")
    assert rig.inbound() == [("rig/in/empty", "", 0)]


def test_L9_inbound_topics_and_payloads_are_utf_8(judge, rig):
    """Report: mq#66, lib#746, lib#1073."""
    judge.publish("rig/in/grün", "21°C ✓".encode())
    rig.wait(rig.inbound, "the message")
    assert rig.inbound() == [("rig/in/grün", "21°C ✓", 9)]


def test_MiniMQTT_82_a_retained_message_of_64_KB_is_skipped_counted_and_acknowledged(
    broker, judge, proxy
):
    """Report: MiniMQTT#82."""
    judge.publish("rig/in/big", bytes(65536), retain=True)
    with Rig(proxy.port, subscriptions=[["rig/in/#", 1]]) as rig:
        rig.until(lambda s: s["skipped"] == 1, "the large message")
        wire.wait_count(broker, "PUBACK", 1)
        judge.publish("rig/in/small", b"after")
        rig.wait(rig.inbound, "the small message")
        rig.order("put", n=3)
        stats = rig.delivered(3)
        assert rig.inbound() == [("rig/in/small", "after", 5)]
        assert (stats["connects"], stats["skipped"], stats["received"]) == (1, 1, 1)


def test_MiniMQTT_107_the_largest_that_is_kept_and_the_smallest_that_is_skipped(judge, rig):
    """Report: MiniMQTT#107."""
    head = 2 + len("rig/in/x") + 2
    judge.publish("rig/in/x", b"k" * (1024 - head))
    judge.publish("rig/in/x", b"s" * (1025 - head))
    judge.publish("rig/in/x", b"after")
    rig.wait(lambda: len(rig.inbound()) == 2, "the two that are kept")
    assert [size for _, _, size in rig.inbound()] == [1024 - head, 5]
    assert rig.stats()["skipped"] == 1


def test_L4_inbound_and_outbound_together_at_full_pace(broker, judge, rig):
    rig.order("put", n=300)
    for n in range(100):
        judge.publish("rig/in/a", b"%d" % n)
    rig.wait(lambda: len(rig.inbound()) == 100, "what was sent to the rig")
    rig.delivered(300)
    judge.has_all(300)
    assert [text for _, text, _ in rig.inbound()] == [str(n) for n in range(100)]
    wire.wait_count(broker, "PUBACK", 100)
    assert rig.stats()["connects"] == 1


def test_L4_a_large_inbound_message_in_a_cut_connection_does_not_disturb_the_next(
    broker, judge, proxy, rig
):
    """Report: MiniMQTT#82, MiniMQTT#107."""
    proxy.reset_after(3000, "down")
    judge.publish("rig/in/big", bytes(9000))
    rig.down()
    assert rig.up(2) is True
    rig.until(lambda s: s["skipped"] >= 2, "the large message again")
    judge.publish("rig/in/small", b"after")
    rig.wait(rig.inbound, "the small message")
    assert rig.stats()["connects"] == 2


def test_MiniMQTT_82_large_messages_without_end_leave_no_memory_behind(judge, rig):
    """Report: MiniMQTT#82, MiniMQTT#107."""

    def used_after(messages):
        for n in range(rig.stats()["skipped"], messages):
            judge.publish("rig/in/big", bytes(65536))
            rig.until(lambda s, n=n: s["skipped"] > n, "the message skipped")
        return rig.order("memory")["used"]

    before = used_after(10)
    assert used_after(60) - before <= 512
    rig.order("put", n=3)
    rig.delivered(3)
    assert rig.stats()["connects"] == 1
