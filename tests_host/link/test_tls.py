"""TLS against a real broker: it works, in every size and at every pace (L8).

The certificates are made here, by an authority of the tests' own.
"""

import socket
import ssl

import pytest

from tests_host.link.harness import WAIT_S, Judge, Rig
from tests_host.link.test_app import DATA, SECTIONS, AppRig
from tests_host.link.tls_kit import NAME, good
from tools.loopback import HOST
from tools.proxy import Proxy


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
        Rig(proxy.port, tls=paper.tls(), backoff_ms=[1, 2]) as rig,
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
        reasons = {said for said, _ in rig.downs}
        assert not [said for said in reasons if "MBEDTLS" in said or "network error" in said]


UNKNOWN = "the time of day is not known, without which no certificate can be judged"


def tls_sections(paper, **mqtt):
    """The application's configuration, with TLS."""
    tls = {"tls": True, "ca_file": paper.path("ca.pem"), "tls_name": NAME}
    return {**SECTIONS, "mqtt": {**SECTIONS["mqtt"], **tls, **mqtt}}


def test_mp_10832_no_certificate_is_judged_before_the_time_is_known(paper, plain_port, tmp_path):
    """Report: mp#10832."""
    with (
        good(paper, plain_port) as broker,
        Proxy(broker.port) as proxy,
        Judge(broker.plain) as judge,
        AppRig(tmp_path, proxy.port, tls_sections(paper), clock="unknown") as app,
    ):
        app.until(lambda s: f"the link is down: {UNKNOWN}" in s["troubles"], "a trouble")
        assert f"because {UNKNOWN}" in app.order("status")["page"]
        assert app.stats()["link"]["attempts"] == proxy.connections == 0
        app.order("know_time", unix=1767225600)
        app.up()
        judge.received(1, DATA)
        assert app.stats()["link"]["attempts"] == 1 and not app.downs


def test_the_time_need_not_be_known_where_nothing_is_verified(paper, plain_port, tmp_path):
    sections = tls_sections(paper, ca_file="", tls_verify=False)
    with (
        good(paper, plain_port) as broker,
        AppRig(tmp_path, broker.port, sections, clock="unknown") as app,
    ):
        app.up()
        assert not app.stats()["clock_known"]


@pytest.mark.parametrize(("error", "late"), [("memory", False), (12, False), ("memory", True)])
def test_mp_6455_a_handshake_that_finds_no_memory_says_so_and_is_tried_again(
    error, late, paper, plain_port
):
    with good(paper, plain_port) as broker, Rig(broker.port, tls=paper.tls()) as rig:
        rig.up()
        rig.order("starve", error=error, late=late)
        rig.order("give_up")
        assert rig.down(2).startswith("TLS: not enough memory: a handshake takes about ")
        rig.up(2)
        stats = rig.stats()
        assert stats["unwell"] == [] and stats["ceiling_ms"] == 4  # two failures, none for good


def test_trustme_and_openssl_agree_with_the_certificates(paper, plain_port):
    context = ssl.create_default_context(cafile=paper.path("ca.pem"))
    with (
        good(paper, plain_port) as broker,
        socket.create_connection((HOST, broker.port), WAIT_S) as sock,
        context.wrap_socket(sock, server_hostname=NAME) as secured,
    ):
        assert secured.version()
