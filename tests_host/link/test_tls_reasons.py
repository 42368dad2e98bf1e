"""Why there is no TLS connection: each reason in words, and none retried at full speed (L8)."""

import os
import ssl

import pytest

from tests_host.link.harness import Rig
from tests_host.link.scripted import CONNACK_NEW, Scripted
from tests_host.link.tls_kit import DAY, NAME, NOW, TlsBroker, good, output_of
from tools.loopback import HOST, free_port

CAP_MS = 50  # the longest that the rig's back-off waits
NOT_ACCEPTED = "TLS: the certificate of the broker is not accepted: "
REFUSED = "TLS: refused by the broker: "
ENDED = "TLS: the broker ended the handshake; is this its TLS port, and does it "
NO_TLS = "TLS: the broker does no TLS on this port, it answers in plain text"
ASKS = "ask for a certificate (mqtt.cert_file)?"


def says(rig, reason):
    """Wait for a connection that fails for `reason`; the wait in ms before the next try.

    It need not be the first: a reset may take the broker's last words away.
    """
    rig.wait(lambda: any(said == reason for said, _ in rig.downs), reason)
    assert rig.stats()["connects"] == 0
    return next(wait_ms for said, wait_ms in rig.downs if said == reason)


@pytest.mark.parametrize(
    ("issued", "tls", "words"),
    [
        ({}, {"ca": "other_ca.pem"}, "none of those in mqtt.ca_file has signed it"),
        ({}, {"name": "pond.example"}, "it is not made out to pond.example"),
        (
            {"not_before": NOW - 3 * DAY, "not_after": NOW - DAY},
            {},
            f"it has expired, seen from {NOW:%Y-%m-%d}, the date here",
        ),
        (
            {"not_before": NOW + DAY, "not_after": NOW + 3 * DAY},
            {},
            f"it is not valid yet, seen from {NOW:%Y-%m-%d}, the date here",
        ),
    ],
    ids=["wrong-ca", "wrong-name", "expired", "not-yet-valid"],
)
def test_L8_a_broker_that_is_not_to_be_trusted(issued, tls, words, paper, plain_port):
    lines = paper.issue("bad", NAME, **issued)
    with TlsBroker(lines, plain_port) as broker, Rig(broker.port, tls=paper.tls(**tls)) as rig:
        assert says(rig, NOT_ACCEPTED + words) == CAP_MS


def refusing(paper, plain):
    return good(paper, plain, "require_certificate true")


def test_L8_a_missing_client_certificate(paper, plain_port):
    with refusing(paper, plain_port) as broker, Rig(broker.port, tls=paper.tls()) as rig:
        words = "it wants a certificate (mqtt.cert_file) or ciphers that this board has not"
        assert says(rig, REFUSED + words) == CAP_MS


def test_L8_a_client_certificate_of_an_unknown_signer(paper, plain_port):
    paper.strange("stranger", "stranger@millpond.example")
    tls = paper.tls(client="stranger")
    with refusing(paper, plain_port) as broker, Rig(broker.port, tls=tls) as rig:
        assert says(rig, REFUSED + "it does not know who signed mqtt.cert_file") == CAP_MS


def test_L8_a_client_certificate_that_has_expired(paper, plain_port):
    paper.issue("old", "old@millpond.example", not_before=NOW - 3 * DAY, not_after=NOW - DAY)
    tls = paper.tls(client="old")
    with refusing(paper, plain_port) as broker, Rig(broker.port, tls=tls) as rig:
        assert says(rig, REFUSED + "mqtt.cert_file has expired") == CAP_MS


def alert(number, level=2):
    return bytes((21, 3, 3, 0, 2, level, number))


def answers(data):
    """A play: read the hello, send `data`, and close when the client has."""

    def play(end):
        end.sock.recv(4096)
        end.send(data)
        while end.sock.recv(4096):
            pass

    return play


def closes(data):
    """A play: the same, and close at once."""

    def play(end):
        end.sock.recv(4096)
        end.send(data)

    return play


def hello(minor):
    """A ServerHello of TLS 1.`minor - 1`."""
    body = bytes((3, minor)) + bytes(32) + b"\x00\xc0\x2b\x00\x00\x00"
    return bytes((22, 3, minor, 0, len(body) + 4, 2, 0, 0, len(body))) + body


# What the broker does, our certificate, the reason, and whether that lasts: None if it may be
# preceded by one that does.
CASES = {
    "none-is-bad": (answers(alert(42)), "", REFUSED + "does it " + ASKS, True),
    "unaccepted": (
        answers(alert(46)),
        "client",
        REFUSED + "it does not accept mqtt.cert_file",
        True,
    ),
    "other-key": (
        answers(alert(51)),
        "client",
        REFUSED + "do mqtt.key_file and mqtt.cert_file belong together?",
        True,
    ),
    "unknown-name": (
        answers(alert(112)),
        "",
        REFUSED + f"it has no certificate for {NAME}, see mqtt.tls_name",
        True,
    ),
    "required": (answers(alert(116)), "", REFUSED + "does it " + ASKS, True),
    "internal-error": (
        answers(alert(80)),
        "",
        REFUSED + "TLS alert 80 (RFC 8446, 6.2)",
        None,
    ),
    "TLS-1.1": (
        answers(hello(2)),
        "",
        "TLS: the broker's version of TLS is none that this board does",
        True,
    ),
    "plain-text": (answers(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "", NO_TLS, True),
    "closes": (closes(b""), "", ENDED + ASKS, False),
    "closes-on-a-certificate": (closes(b""), "client", ENDED + "accept mqtt.cert_file?", False),
    "closes-half-way": (closes(hello(3)[:20]), "", ENDED + ASKS, False),
    "warns-and-closes": (closes(alert(112, level=1)), "", ENDED + ASKS, False),
    "takes-leave": (closes(alert(0, level=1)), "", ENDED + ASKS, False),
}


@pytest.mark.parametrize(("play", "client", "reason", "lasts"), CASES.values(), ids=CASES)
def test_L8_what_the_broker_says_or_does_is_the_reason(play, client, reason, lasts, paper):
    with Scripted(play) as peer, Rig(peer.port, tls=paper.tls(client=client)) as rig:
        wait_ms = says(rig, reason)
        assert lasts is None or lasts == (wait_ms == CAP_MS)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (alert(48), "it does not know who signed mqtt.cert_file"),
        (alert(48, level=1), None),
        (alert(48)[:6], None),
        (b"\x17" + alert(48)[1:], None),
        (b"", None),
    ],
)
def test_L8_what_the_broker_said_before_it_closed_is_read_where_the_port_cannot_peek(left, words):
    script = f"""
import firmware.tls
firmware.tls._PEEK = None
class Plain:
    readinto = None
    def recv(self, n, *flags):
        assert not flags
        return {left!r}
secured = firmware.tls.Secured(Plain(), Plain(), "pond", True)
secured.heed()
try:
    secured.explain(OSError(32))
except firmware.tls.Unreachable as error:
    print(error)
"""
    reason = REFUSED + words if words else ENDED + "accept mqtt.cert_file?"
    assert output_of(script) == reason


def test_damage_on_a_connection_that_was_up_is_named(paper):
    def damage(end):
        end.packet()
        end.send(CONNACK_NEW)
        os.write(end.sock.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
        end.until_closed()

    play = secured(server_side(paper, ssl.TLSVersion.TLSv1_2), damage)
    with Scripted(play) as peer, Rig(peer.port, tls=paper.tls()) as rig:
        assert rig.down(1) == f"what came from {HOST}:{peer.port} was damaged, says TLS"


def test_L8_a_broker_that_does_only_a_later_version_of_TLS(paper):
    play = secured(server_side(paper, ssl.TLSVersion.TLSv1_3))
    with Scripted(play) as peer, Rig(peer.port, tls=paper.tls()) as rig:
        words = "it does not do this board's version of TLS, which is mostly 1.2"
        assert says(rig, REFUSED + words) == CAP_MS


def server_side(paper, version):
    """A context that does this version of TLS and no other."""
    paper.issue("good", NAME)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(paper.path("good.pem"), paper.path("good.key"))
    return context


def secured(context, play=lambda end: end.until_closed()):
    """A play behind a handshake."""

    def whole(end):
        end.sock = context.wrap_socket(end.sock, server_side=True)
        play(end)

    return whole


def test_L8_TLS_asked_for_of_a_plain_broker(paper, broker):
    with Rig(broker.port, tls=paper.tls()) as rig:
        says(rig, ENDED + ASKS)


def test_a_refused_TCP_connection_is_no_matter_of_TLS(paper):
    port = free_port()
    with Rig(port, tls=paper.tls()) as rig:
        says(rig, f"connection refused: no broker listens at {HOST}:{port}")
