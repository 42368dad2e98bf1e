"""TLS against a real broker: it works, and where it must not, the reason is in words (L8).

The certificates are made here, by an authority of the tests' own.
"""

import contextlib
import datetime
import socket
import ssl
import subprocess
import threading

import pytest
import trustme

from tests_host.conftest import micropython_command, micropython_env
from tests_host.link.harness import WAIT_S, Judge, Rig
from tools.broker import MOSQUITTO, Broker
from tools.loopback import HOST
from tools.proxy import Proxy

NAME = "localhost"
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


class Paper:
    """Certificates as files in `folder`; `tls` makes the arguments of Tls."""

    def __init__(self, folder):
        self.folder = folder
        self.ca = trustme.CA()
        self.path("ca.pem", self.ca.cert_pem.bytes())
        self.path("other_ca.pem", trustme.CA().cert_pem.bytes())
        both = trustme.CA().cert_pem.bytes() + self.ca.cert_pem.bytes()
        self.path("both.pem", both)
        self.issue("client", "client@millpond.example")

    def path(self, name, data=None):
        path = self.folder / name
        if data is not None:
            path.write_bytes(data)
        return str(path)

    def issue(self, name, *identities, **options):
        """A certificate as `name`.pem and `name`.key; the lines of a mosquitto.conf."""
        cert = self.ca.issue_cert(*identities, **options)
        chain = b"".join(pem.bytes() for pem in cert.cert_chain_pems)
        pem = self.path(name + ".pem", chain)
        key = self.path(name + ".key", cert.private_key_pem.bytes())
        return f"cafile {self.path('ca.pem')}", f"certfile {pem}", f"keyfile {key}"

    def tls(self, ca="ca.pem", client="", verify=True, name=NAME):
        mine = [self.path(client + end) for end in (".pem", ".key")] if client else ["", ""]
        return [self.path(ca), *mine, verify, name]


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    return Paper(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def plain_port():
    """Nothing: the judges come over TLS too, so each broker has a second, plain listener."""
    with socket.create_server((HOST, 0)) as server:
        return server.getsockname()[1]


class TlsBroker(Broker):
    """A broker with TLS on `port`, and a plain listener on `plain`."""

    def __init__(self, lines, plain, **options):
        extra = (*lines, f"listener {plain} {HOST}", "allow_anonymous true")
        super().__init__(kind=MOSQUITTO, extra=extra, **options)
        self.plain = plain


def good(paper, plain, *more, **options):
    return TlsBroker((*paper.issue("good", NAME, HOST), *more), plain, **options)


def test_L8_messages_go_over_TLS_and_each_arrives_once(paper, plain_port):
    with (
        good(paper, plain_port) as broker,
        Judge(broker.plain) as judge,
        Rig(broker.port, tls=paper.tls(), ring_bytes=400000) as rig,
    ):
        rig.up()
        rig.order("put", n=100)
        rig.order("put", n=50, qos=2)
        rig.order("put", n=50, size=4000)
        rig.delivered(200)
        assert judge.has_all(200) == {}


def test_L8_a_client_certificate_is_shown(paper, plain_port):
    with (
        good(paper, plain_port, "require_certificate true") as broker,
        Rig(broker.port, tls=paper.tls(client="client")) as rig,
    ):
        rig.up()
        rig.order("put", n=3)
        rig.delivered(3)


def test_L8_one_of_several_signers_will_do(paper, plain_port):
    with good(paper, plain_port) as broker, Rig(broker.port, tls=paper.tls("both.pem")) as rig:
        rig.up()


def test_L8_unverified_by_wish(paper, plain_port):
    tls = paper.tls("other_ca.pem", verify=False, name="other.example")
    with good(paper, plain_port) as broker, Rig(broker.port, tls=tls) as rig:
        rig.up()


NOT_ACCEPTED = "TLS: the certificate of the broker is not accepted: "


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
        assert rig.down(1) == NOT_ACCEPTED + words
        stats = rig.stats()
        assert (stats["connects"], stats["ceiling_ms"]) == (0, 50)  # the back-off is at its cap


def test_L8_a_missing_client_certificate(paper, plain_port):
    with (
        good(paper, plain_port, "require_certificate true") as broker,
        Rig(broker.port, tls=paper.tls()) as rig,
    ):
        said = rig.down(1)
        assert said.startswith(("TLS: the broker ended ", "TLS: the broker refused "))
        assert said.endswith("the handshake; does it ask for a certificate (mqtt.cert_file)?")


def test_L8_a_port_without_TLS(paper):
    def answer():
        sock, _ = server.accept()
        with sock, contextlib.suppress(ConnectionResetError):
            sock.settimeout(WAIT_S)
            sock.recv(64)
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            while sock.recv(4096):
                pass

    with socket.create_server((HOST, 0)) as server:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with Rig(server.getsockname()[1], tls=paper.tls()) as rig:
            assert rig.down(1) == (
                "TLS: the broker does no TLS on this port, it answers in plain text"
            )
        thread.join(WAIT_S)


def test_L8_TLS_asked_for_of_a_plain_broker(paper, broker):
    with Rig(broker.port, tls=paper.tls()) as rig:
        assert "TLS: the broker ended the handshake" in rig.down(1)


def test_a_refused_TCP_connection_is_no_matter_of_TLS(paper):
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
    with Rig(port, tls=paper.tls()) as rig:
        assert "connection refused: no broker listens" in rig.down(1)


def test_esp_mqtt_143_L3_a_peer_that_says_nothing_after_our_hello(paper):
    """Report: esp-mqtt#143."""
    with (
        socket.create_server((HOST, 0)) as server,
        Rig(server.getsockname()[1], tls=paper.tls()) as rig,
    ):
        rig.until(lambda s: s["attempts"] == 1 and s["state"] == "securing", "the hello")
        rig.order("advance", ms=9000)
        assert rig.stats()["unwell"] == []
        rig.order("advance", ms=1000)
        assert rig.down(1) == "TLS handshake not finished within 10 s"


def test_esp_mqtt_143_a_handshake_byte_by_byte_takes_its_time_and_stalls_nobody(paper, plain_port):
    with (
        good(paper, plain_port) as broker,
        Proxy(broker.port) as proxy,
        Judge(broker.plain) as judge,
        Rig(proxy.port, tls=paper.tls()) as rig,
    ):
        rig.up()
        proxy.split(0.001)
        rig.order("give_up")
        rig.up(2)
        proxy.split(None)
        rig.order("put", n=5)
        rig.delivered(5)
        judge.has_all(5)
        assert rig.stats()["unwell"] == []


def test_L2_partial_writes_go_on_where_they_stopped(paper, plain_port):
    with (
        good(paper, plain_port) as broker,
        Proxy(broker.port) as proxy,
        Judge(broker.plain) as judge,
        Rig(proxy.port, tls=paper.tls(), send_buffer=2048, ring_bytes=400000) as rig,
    ):
        rig.up()
        for n in range(1, 4):
            proxy.stall()
            rig.order("put", n=20, size=4000)
            rig.order("advance", ms=15000)
            proxy.restore()
            rig.delivered(20 * n)
        assert judge.has_all(60) == {}
        assert rig.stats()["losses"] == 0


def test_L4_inbound_messages_of_every_size(paper, plain_port):
    with (
        good(paper, plain_port) as broker,
        Judge(broker.plain) as judge,
        Rig(broker.port, tls=paper.tls(), subscriptions=[["rig/in", 1]], receive=8192) as rig,
    ):
        rig.subscribed("rig/in")
        sizes = [0, 1, 200, 255, 256, 257, 512, 4000, 8000, 65536]
        for size in sizes:
            judge.publish("rig/in", b"x" * size)
        judge.publish("rig/in", b"last")
        rig.wait(lambda: len(rig.inbound()) == len(sizes), "all but the largest")
        stats = rig.stats()
        assert (stats["skipped"], stats["losses"]) == (1, 0)


def test_L3_S3_cuts_at_any_byte_of_handshake_and_data(paper, plain_port):
    with (
        good(paper, plain_port) as broker,
        Proxy(broker.port) as proxy,
        Judge(broker.plain) as judge,
        Rig(proxy.port, tls=paper.tls()) as rig,
    ):
        rig.up()
        total = 0
        for cut in (1, 5, 40, 100, 200, 300, 420):
            proxy.reset_after(cut)
            rig.order("put", n=2)
            total += 2
            rig.order("give_up")
            rig.delivered(total)
        judge.has_all(total, repeats=14)


def test_mp_6455_L10_failed_handshakes_leave_nothing_behind(paper, plain_port):
    """Report: mp#6455, mp#5929."""
    with (
        good(paper, plain_port) as broker,
        Proxy(broker.port) as proxy,
        Rig(proxy.port, tls=paper.tls()) as rig,
    ):
        rig.up()
        rig.order("give_up")
        rig.up(2)
        before = rig.order("memory")["used"], rig.open_files()
        proxy.refuse()
        proxy.restore()
        rig.up(3)
        for n in range(200):
            proxy.reset_after(1 + n)
            rig.order("give_up")
            rig.up(4 + n)
        after = rig.order("memory")["used"], rig.open_files()
        assert after[1] == before[1]
        assert after[0] - before[0] < 16384


def refused(*args):
    """What a Tls with these arguments says of them."""
    script = (
        "from firmware.tls import Tls\ntry:\n    Tls(*{!r})\nexcept ValueError as e:\n    print(e)"
    )
    done = subprocess.run(
        [micropython_command(), "-c", script.format(args)],
        env=micropython_env(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_files_that_are_no_good_are_named_with_their_key(paper):
    ca, pem, key = (paper.path(name) for name in ("ca.pem", "client.pem", "client.key"))
    missing = paper.path("missing.pem")
    empty = paper.path("empty.pem", b"")
    junk = paper.path("junk.pem", b"junk")
    cut = paper.path("cut.pem", paper.ca.cert_pem.bytes()[:300])
    locked = paper.path("locked.key", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END")
    assert refused(ca, pem, key) == ""
    for args, words in (
        ((missing,), f"mqtt.ca_file {missing}: cannot be read: [Errno 2] ENOENT"),
        ((empty,), f"mqtt.ca_file {empty}: invalid cert"),
        ((junk,), f"mqtt.ca_file {junk}: invalid cert"),
        ((cut,), f"mqtt.ca_file {cut}: "),
        ((key,), f"mqtt.ca_file {key}: holds no CERTIFICATE"),
        ((ca, missing, key), f"mqtt.cert_file {missing}: cannot be read"),
        ((ca, pem, missing), f"mqtt.key_file {missing}: cannot be read"),
        ((ca, pem, pem), f"mqtt.key_file {pem}: holds no PRIVATE KEY"),
        ((ca, pem, locked), f"mqtt.key_file {locked}: a key without a passphrase expected"),
        ((ca, pem, junk), f"mqtt.cert_file {pem} with key {junk}: invalid key"),
    ):
        assert refused(*args).startswith(words), (args, refused(*args))


def test_mp_10832_no_certificate_is_judged_before_the_time_is_known(paper):
    """Report: mp#10832."""
    script = """
from firmware.app import App
from firmware.config import check
mqtt = {{"host": "127.0.0.1", "tls": True, "ca_file": {ca!r}}}
for verify in (True, False):
    mqtt["tls_verify"] = verify
    app = App(check({{"mqtt": mqtt}}))
    print(app._obstacle())
    app.clock.set_unix(1800000000)
    print(app._obstacle())
"""
    done = subprocess.run(
        [micropython_command(), "-c", script.format(ca=paper.path("ca.pem"))],
        env=micropython_env(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    words = "the time of day is not known, without which no certificate can be judged"
    assert done.stdout.splitlines() == [words, "None", "None", "None"], done.stderr


def test_DER_files_will_do_too(paper):
    der = paper.path("ca.der", ssl.PEM_cert_to_DER_cert(paper.ca.cert_pem.bytes().decode()))
    assert refused(der) == ""


def test_trustme_and_openssl_agree_with_the_certificates(paper, plain_port):
    context = ssl.create_default_context(cafile=paper.path("ca.pem"))
    with (
        good(paper, plain_port) as broker,
        socket.create_connection((HOST, broker.port), WAIT_S) as sock,
        context.wrap_socket(sock, server_hostname=NAME) as secured,
    ):
        assert secured.version()
