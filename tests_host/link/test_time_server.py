"""The time of day from a time server, by ntplib's idea of one, and what waits for it (L8)."""

import ntplib
import pytest

from tests_host.link.datagrams import DatagramServer
from tests_host.link.harness import WAIT_S, Judge
from tests_host.link.test_app import DATA, SECTIONS, AppRig
from tests_host.link.test_tls import good, tls_sections

NEW_YEAR_2026 = 1767225600


def packet(asked: bytes, **fields) -> bytes:
    """A good answer to `asked`, but for `fields`."""
    answer = ntplib.NTPPacket(version=4, mode=4)
    answer.stratum = 2
    answer.tx_timestamp = ntplib.system_to_ntp_time(NEW_YEAR_2026)
    for name, value in fields.items():
        setattr(answer, name, value)
    data = answer.to_data()
    return data[:24] + asked[40:48] + data[32:]


def sections(server, base=SECTIONS):
    return {**base, "network": {"ntp": server.name}}


def test_L8_tls_waits_for_the_time_server_and_then_connects(paper, plain_port, tmp_path):
    tls = tls_sections(paper)
    with (
        good(paper, plain_port) as broker,
        DatagramServer(lambda asked: [packet(asked)]) as server,
        Judge(broker.plain) as judge,
        AppRig(tmp_path, broker.port, sections(server, tls), clock="unknown") as app,
    ):
        app.up()
        judge.received(1, DATA)
        stats = app.stats()
        assert stats["clock_known"] and 0 <= stats["ts"] - NEW_YEAR_2026 < WAIT_S
        asked = ntplib.NTPPacket()
        asked.from_data(server.asked[0])
        assert (len(server.asked), asked.mode, asked.version) == (1, 3, 4)


def test_what_is_no_answer_to_the_question_is_passed_over(broker, tmp_path):
    def noisy(asked):
        other = bytes(48)
        return [b"", b"\x24", packet(other), asked, packet(asked)]

    with (
        DatagramServer(noisy) as server,
        AppRig(tmp_path, broker.port, sections(server), clock="unknown") as app,
    ):
        app.until(lambda s: s["clock_known"], "the time")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"leap": 3}, "it does not know the time itself"),
        ({"stratum": 0, "ref_id": int.from_bytes(b"RATE", "big")}, "it is asked too often"),
        ({"tx_timestamp": 0}, "it does not know the time itself"),
        ({"tx_timestamp": ntplib.system_to_ntp_time(1000000000)}, "Unix time 1000000000"),
        (None, "does not answer"),
    ],
)
def test_why_the_time_is_not_known_is_said(fields, words, broker, tmp_path):
    def useless(asked):
        return [] if fields is None else [packet(asked, **fields)]

    with (
        DatagramServer(useless) as server,
        AppRig(tmp_path, broker.port, sections(server), clock="unknown") as app,
    ):
        trouble = app.until(
            lambda s: [text for text in s["troubles"] if server.name in text], "a trouble"
        )["troubles"]
        assert any(words in text for text in trouble)
        assert not app.stats()["clock_known"]
