"""Brokers that say no, brokers that speak nonsense, and clients that fight over one name.

Each time the link ends with the reason in words and tries again after a back-off; nothing escapes
a task (the rig's `with` checks that).
"""

import random
import threading

import pytest

from tests_host.link import wire
from tests_host.link.harness import WAIT_S, Judge, Rig
from tests_host.link.scripted import (
    CONNACK_KEPT,
    CONNACK_NEW,
    Scripted,
    answer,
    answer_and_close,
    broker,
    packet_id,
)
from tools.broker import MOSQUITTO, Broker

REFUSED = "broker refused the connection: "
BROKEN = "the broker broke the protocol: "
CLOSED = "closed the connection"
CAP_MS = 80

CODES = {
    1: ("protocol version refused", True),
    2: ("client identifier refused", True),
    3: ("server unavailable", False),
    4: ("bad user name or password: see mqtt.user and mqtt.password", True),
    5: ("not authorized: see mqtt.user, mqtt.password and the broker's rules for them", True),
    6: ("code 6", False),
}

NONSENSE = {
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", BROKEN + "packet begins"),
    "TLS alert": (b"\x15\x03\x01\x00\x02\x02\x46", BROKEN + "packet begins with 0x15, as TLS does"),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", BROKEN + "packet begins with 0x53"),
    "zeros": (bytes(64), BROKEN + "packet begins with 0x00"),
    "CONNACK of one byte": (b"\x20\x01\x00", BROKEN + "packet 0x20 of 1 bytes"),
    "CONNACK with wrong flags": (b"\x20\x02\x80\x00", BROKEN + "CONNACK with flags"),
    "CONNACK refusing a session": (b"\x20\x02\x01\x05", BROKEN + "CONNACK refuses"),
    "PUBACK first": (b"\x40\x02\x00\x01", BROKEN + "PUBACK before CONNACK"),
    "PINGRESP first": (b"\xd0\x00", BROKEN + "PINGRESP before CONNACK"),
    "PUBLISH first": (b"\x30\x03\x00\x01t", BROKEN + "PUBLISH before CONNACK"),
    "endless length": (b"\x20\xff\xff\xff\xff\x7f", BROKEN + "remaining length"),
    "half a CONNACK": (b"\x20\x02", CLOSED),
    "nothing": (b"", CLOSED),
    "CONNACK twice": (CONNACK_NEW * 2, BROKEN + "CONNACK out of order"),
    "robust2 2: PUBACK cut off": (CONNACK_NEW + b"\x40", CLOSED),
    "PUBLISH cut off": (CONNACK_NEW + b"\x30\x7f\x00\x03abc", CLOSED),
    "PUBACK with id 0": (CONNACK_NEW + b"\x40\x02\x00\x00", BROKEN + "PUBACK with packet id 0"),
    "QoS 3": (CONNACK_NEW + b"\x36\x05\x00\x01t\x00\x01", BROKEN + "PUBLISH with QoS 3"),
    "PUBREL first": (b"\x62\x02\x00\x01", BROKEN + "PUBREL before CONNACK"),
    "SUBACK of QoS 3": (CONNACK_NEW + b"\x90\x03\x00\x01\x03", BROKEN + "SUBACK with code 0x03"),
    "topic past the end": (CONNACK_NEW + b"\x30\x03\x00\x09t", BROKEN + "PUBLISH with a topic"),
    "a client's packet": (CONNACK_NEW + b"\x82\x06\x00\x01\x00\x01t\x00", BROKEN + "packet begins"),
}


@pytest.mark.parametrize("code", CODES)
def test_L5_a_refusal_is_shown_in_words_and_a_permanent_one_waits_the_cap(code):
    words, permanent = CODES[code]
    connack = bytes((0x20, 0x02, 0x00, code))
    with (
        Scripted(answer_and_close(connack), broker) as server,
        Rig(server.port, backoff_ms=[1, CAP_MS]) as rig,
    ):
        assert rig.down() == REFUSED + words
        wait_ms = rig.downs[0][1]
        assert wait_ms == CAP_MS if permanent else wait_ms <= 1
        rig.order("put", n=2)
        rig.delivered(2)


def test_L5_a_real_broker_refuses_a_wrong_password(tmp_path):
    with Broker(tmp_path, kind=MOSQUITTO, users={"pond": "carp"}) as real:
        options = {"user": "pond", "password": "pike", "backoff_ms": [1, CAP_MS]}
        with Rig(real.port, **options) as rig:
            assert rig.down(2).startswith(REFUSED + "not authorized")
            assert rig.downs[0][1] == rig.downs[1][1] == CAP_MS
        with Rig(real.port, **{**options, "password": "carp"}) as rig:
            assert rig.up() is False


def test_L5_back_off_grows_to_the_cap_and_only_a_delivery_resets_it():
    """The broker accepts and closes: its CONNACKs must not count as success.

    Report: esp-rainmaker-neo#1.
    """
    with (
        Scripted(*[answer_and_close(CONNACK_NEW)] * 9, broker) as server,
        Rig(server.port, backoff_ms=[2, 64]) as rig,
    ):
        rig.wait(lambda: len(rig.downs) == 9, "nine failures")
        assert len(rig.ups) >= 9
        for n, (_, wait_ms) in enumerate(rig.downs):
            assert wait_ms <= min(2 << n, 64)
        assert rig.until(lambda s: s["connects"] == 10, "the good one")["ceiling_ms"] == 64
        rig.order("put", n=1)
        assert rig.delivered(1)["ceiling_ms"] == 2


def test_L5_a_delivery_resets_the_back_off_though_the_next_message_cannot_be_sent():
    def acknowledges_when_told(end):
        end.packet()
        end.send(CONNACK_NEW)
        first = end.packet()
        broken.wait(WAIT_S)
        end.send(b"\x40\x02" + packet_id(first))
        end.until_closed()

    broken = threading.Event()
    with (
        Scripted(*[answer_and_close(CONNACK_NEW)] * 5, acknowledges_when_told, broker) as server,
        Rig(server.port, backoff_ms=[2, 64]) as rig,
    ):
        rig.up(6)
        rig.order("put", n=2)
        assert rig.stats()["ceiling_ms"] == 64
        rig.order("break_writes")
        broken.set()
        assert CLOSED in rig.down(6)
        # 4 after the reset, or 2 again when the next broker has acknowledged meanwhile; not 64.
        assert rig.stats()["ceiling_ms"] <= 4
        rig.delivered(2)


@pytest.mark.parametrize("name", NONSENSE)
def test_L4_nonsense_ends_the_link_with_the_reason_and_the_next_broker_gets_all(name):
    """Report: robust2#2."""
    data, words = NONSENSE[name]
    with Scripted(answer_and_close(data), broker) as server, Rig(server.port) as rig:
        rig.order("put", n=3)
        assert words in rig.down()
        rig.delivered(3)
        assert rig.stats()["attempts"] == 2


def test_L4_random_bytes_before_and_after_the_CONNACK():
    chance = random.Random(82)
    starts = [b"", CONNACK_NEW, CONNACK_KEPT, CONNACK_NEW + b"\x40", CONNACK_NEW + b"\x30"]
    plays = [
        answer_and_close(chance.choice(starts) + chance.randbytes(chance.randint(1, 60)))
        for _ in range(150)
    ]
    with (
        Scripted(*plays, broker) as server,
        Rig(server.port, backoff_ms=[1, 1], max_retries=100) as rig,
    ):
        rig.order("put", n=20)
        rig.wait(lambda: len(rig.downs) >= 150, "the end of the nonsense")
        stats = rig.delivered(20)
        assert stats["attempts"] == 151
        assert all(BROKEN in why or CLOSED in why or REFUSED in why for why, _ in rig.downs)


def test_mq_code_a_PUBACK_that_comes_twice_is_counted_and_the_link_lives():
    """Report: mq/repeated-ack."""

    def twice(end):
        end.packet()
        end.send(CONNACK_NEW)
        while True:
            puback = b"\x40\x02" + packet_id(end.packet())
            end.send(puback + puback)

    with Scripted(twice) as server, Rig(server.port) as rig:
        rig.order("put", n=5)
        rig.delivered(5)
        stats = rig.until(lambda s: s["stray_acks"] == 5, "the repeated acknowledgements")
        assert (stats["connects"], stats["losses"], stats["held"]) == (1, 0, 0)
        assert len(server.packets[0]) == 6


def test_S2_an_acknowledgement_for_another_id_moves_nothing():
    """Report: mq/repeated-ack."""

    def wrong(end):
        end.packet()
        end.send(CONNACK_NEW)
        end.packet()
        end.send(b"\x40\x02\x12\x34")
        end.until_closed()

    with Scripted(wrong, broker) as server, Rig(server.port) as rig:
        rig.order("put", n=2)
        stats = rig.until(lambda s: s["stray_acks"] == 1, "the stray acknowledgement")
        assert (stats["delivered"], stats["held"], stats["up"]) == (0, 2, True)
        rig.order("advance", ms=20000)
        assert "no acknowledgement" in rig.down()
        rig.delivered(2)


def test_esp_rainmaker_neo_1_two_clients_with_one_id_back_off_and_do_not_storm(tmp_path):
    """Report: esp-rainmaker-neo#1."""
    options = {"client_id": "twin", "backoff_ms": [4, 256]}
    with Broker(tmp_path, kind=MOSQUITTO) as real, Judge(real.port) as judge:
        with Rig(real.port, **options) as one, Rig(real.port, **options) as two:
            for rig in (one, two):
                rig.until(lambda s: s["ceiling_ms"] == 256, "back-off at its cap")
            for rig in (one, two):
                assert all(CLOSED in why for why, _ in rig.downs)
                assert all(wait <= min(4 << n, 256) for n, (_, wait) in enumerate(rig.downs))
            one.order("put", n=1)
            assert one.delivered(1)["delivered"] == 1
        judge.has_all(1, repeats=1)
        assert wire.connects(real, "twin") >= 8


def test_a_callback_that_sends_over_a_dead_connection_ends_it_like_any_other():
    with Scripted(answer(CONNACK_NEW), broker) as server, Rig(server.port, echo=True) as rig:
        rig.up()
        rig.order("break_writes")
        server.connection(1).send(b"\x30\x08\x00\x06rig/in")
        assert CLOSED in rig.down()
        rig.delivered(1)
        assert len(rig.inbound()) == 1


def test_a_name_without_an_address_is_said_so(proxy):
    with Rig(proxy.port, host="no such name") as rig:
        assert rig.down() == f"no address found for no such name:{proxy.port}"
