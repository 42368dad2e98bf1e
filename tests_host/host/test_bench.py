"""The benchmarks that need a broker: that they measure what they say, not what they find."""

import socket

import pytest

from tools import bench
from tools.bench import peers
from tools.broker import Broker
from tools.loopback import HOST


@pytest.fixture(scope="module")
def broker():
    with Broker(kind="mosquitto") as running:
        yield running


def test_the_jitter_of_every_phase_is_measured_on_a_line_that_lives(broker):
    figures = bench.jitter(broker.port, rounds=1)
    phases = figures["jitter"]
    assert set(phases) == {"up", "stolen_percent", *bench.OUTAGES}
    # More than the first burst of 20: the line still moved what was appended meanwhile.
    assert phases["up"]["delivered"] > 20
    for name in ("refused", "gone", "no_connack"):
        assert phases[name]["delivered"] == 0
    assert all(len(phases[name]["worst_ms"]) == 1 for name in ("up", *bench.OUTAGES))
    rows = {row[0] for row in bench.ROWS}
    assert set(figures) - {"jitter"} <= rows


def test_a_recovery_is_timed_for_each_refusal_and_none_includes_the_outage(broker):
    figures = bench.recovery(broker.port, recoveries=5)
    assert len(figures["recovery"]["took_ms"]) == 5
    # A median of what takes 2 ms, not of the 200 ms that the proxy is away.
    assert 0 < figures["recovery_ms"] < 200


def test_a_drained_backlog_went_one_batch_a_round_trip(broker):
    figures = bench.drain(broker.port, size=30000)
    drain = figures["drain"]
    # Full pages of 2,048 bytes and the last one, each behind the acknowledgement of the one before.
    assert drain["messages"] == 30000 // 2048 + 2
    assert drain["round_trip_ms"] > 19
    assert drain["drained_ms"] > 19 * drain["messages"]
    assert figures["drain_ratio"] > 0


def test_nobody_refuses(broker):
    with peers.nobody(broker.port) as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port), timeout=5)


def test_a_full_listener_answers_no_syn(broker):
    with peers.full_listener(broker.port) as port, pytest.raises(TimeoutError):
        socket.create_connection((HOST, port), timeout=0.3)


def test_a_silent_listener_accepts_and_says_nothing(broker):
    with (
        peers.silent_listener(broker.port) as port,
        socket.create_connection((HOST, port), timeout=5) as end,
    ):
        end.sendall(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00")
        end.settimeout(0.3)
        with pytest.raises(TimeoutError):
            end.recv(1)


def test_the_cutting_proxy_resets_again_and_again(broker):
    with peers.cut_often(broker.port) as port:
        for _ in range(2):
            with socket.create_connection((HOST, port), timeout=5) as end:
                end.settimeout(5)
                with pytest.raises(ConnectionResetError):
                    end.recv(1)
