"""Failures: every reason in words, and which of them are for good."""

import errno

from firmware.failures import Hopeless, Unreachable, in_words, is_closed_by_peer, refused
from millpond.message import ProtocolError

WHERE = "pond.test:1883"
NETWORK = {
    errno.ECONNREFUSED: "connection refused: no broker listens at pond.test:1883",
    errno.ECONNRESET: "the broker at pond.test:1883 closed the connection",
    32: "the broker at pond.test:1883 closed the connection",
    errno.EHOSTUNREACH: "no route to pond.test:1883",
    errno.ETIMEDOUT: "no answer from pond.test:1883",
    errno.ENOBUFS: "the send buffer is full: pond.test:1883 takes no data",
    errno.ENOTCONN: "the connection to pond.test:1883 is gone",
    -0x7180: "what came from pond.test:1883 was damaged, says TLS",
    -0x7780: "the broker at pond.test:1883 ended TLS: does it want another certificate "
    "(mqtt.cert_file)?",
    -2: "no address found for pond.test:1883",
    -200: "no address found for pond.test:1883",
    -202: "no address found for pond.test:1883",
}


def test_what_the_network_says_is_in_words():
    for number, words in NETWORK.items():
        assert in_words(OSError(number, ""), WHERE) == words


def test_an_address_that_is_not_found_may_come_as_a_text():
    assert in_words(OSError("addrinfo"), WHERE) == "no address found for pond.test:1883"


def test_another_error_has_its_number_and_name():
    assert in_words(OSError(errno.EIO, ""), WHERE) == "network error 5: EIO"
    assert in_words(OSError(99999, ""), WHERE).startswith("network error 99999: ")


def test_the_protocol_and_what_we_found_ourselves():
    assert in_words(ProtocolError("PUBACK with packet id 0"), WHERE) == (
        "the broker broke the protocol: PUBACK with packet id 0"
    )
    for kind in (Unreachable, Hopeless):
        assert in_words(kind("TLS: no"), WHERE) == "TLS: no"


def test_L5_a_refusal_is_in_words_and_only_what_can_pass_is_tried_again_soon():
    for code, why, lasting in (
        (1, "protocol version refused", True),
        (2, "client identifier refused", True),
        (3, "server unavailable", False),
        (4, "bad user name or password: see mqtt.user and mqtt.password", True),
        (5, "not authorized: see mqtt.user, mqtt.password and the broker's rules for them", True),
        (6, "code 6", False),
        (255, "code 255", False),
    ):
        error = refused(code)
        assert in_words(error, WHERE) == "broker refused the connection: " + why
        assert isinstance(error, Unreachable) and isinstance(error, Hopeless) == lasting


def test_S7_who_has_closed():
    for number in NETWORK:
        assert is_closed_by_peer(OSError(number, "")) == (number in (errno.ECONNRESET, 32))
    for error in (ProtocolError("x"), Unreachable("x"), Hopeless("x")):
        assert not is_closed_by_peer(error)
