"""What is put into the ring arrives at the broker: under any load, in any shape, on both umqtts."""

import pytest

from tests_host.link import wire
from tests_host.link.harness import HERE, Judge, Rig, number_of
from tools.broker import MOSQUITTO, Broker


def test_promise_a_trickle_that_leaves_the_ring_empty_arrives_without_repeats(judge, rig):
    rig.order("trickle", n=1)
    rig.delivered(50)
    rig.order("trickle")
    stats = rig.until(lambda s: not s["held"], "an empty ring")
    judge.has_all(stats["delivered"])
    assert (stats["connects"], stats["resent"], stats["stray_acks"]) == (1, 0, 0)


def test_S9_a_burst_goes_out_as_fast_as_acknowledgements_come(broker, judge, rig):
    rig.up()
    rig.order("put", n=700, size=64)
    rig.delivered(700)
    judge.has_all(700)
    assert [p.packet_id for p in wire.publishes(broker)] == list(range(1, 701))


@pytest.mark.parametrize("size", [6, 117, 118, 119, 128, 4000, 4088])
def test_messages_around_every_length_boundary_arrive_whole(size, judge, rig):
    rig.order("put", n=8, size=size)
    rig.delivered(8)
    judge.has_all(8)
    assert {len(payload) for payload in judge.payloads()} == {size}


def test_promise_a_ring_that_overflows_in_an_outage_delivers_or_counts_each(proxy, judge, rig):
    rig.up()
    proxy.refuse()
    rig.down()
    rig.order("put", n=2500)
    stolen = rig.stats()["stolen"]
    assert 500 < stolen < 2500
    proxy.restore()
    rig.delivered(2500 - stolen)
    assert judge.numbers(2499) == list(range(stolen, 2500))
    assert rig.stats()["held"] == 0


def test_R5_the_urgent_goes_first_and_each_lane_keeps_its_order(proxy, judge, rig):
    rig.up()
    proxy.refuse()
    rig.down()
    for lane in (0, 3, 1, 0, 3):
        rig.order("put", n=2, lane=lane)
    proxy.restore()
    rig.delivered(10)
    assert judge.numbers(7) == [2, 3, 8, 9, 4, 5, 0, 1, 6, 7]


def test_S6_QoS_0_and_1_mixed_arrive_in_order_and_only_QoS_1_is_acknowledged(broker, judge, rig):
    rig.up()
    for _ in range(20):
        rig.order("put", n=3, qos=0)
        rig.order("put", n=1, qos=1)
    rig.delivered(80)
    judge.has_all(80)
    assert [p.qos for p in wire.publishes(broker)] == [0, 0, 0, 1] * 20
    assert rig.stats()["stray_acks"] == 0


def test_S4_lib_94_packet_ids_wrap_from_65535_to_1(broker, proxy, judge):
    """Report: lib#94."""
    with Rig(proxy.port, first_id=65532) as rig:
        rig.order("put", n=6)
        rig.delivered(6)
        judge.has_all(6)
    assert [p.packet_id for p in wire.publishes(broker)] == [65533, 65534, 65535, 1, 2, 3]


def test_S9_a_rate_limit_paces_what_has_piled_up(proxy, judge):
    with Rig(proxy.port, rate_limit=50) as rig:
        rig.order("put", n=20)
        began = rig.stats()["now"]
        now = rig.delivered(20)["now"]
        judge.has_all(20)
    assert now - began >= 19 * 20 - 20


@pytest.mark.parametrize("rate", [15, 30, 200, 1000])
def test_S9_a_rate_limit_is_kept_and_used_without_the_help_of_ticks(rate, broker):
    """Never too fast; too slow only as long as the machine is too busy for the rate."""
    for _ in range(6):
        with Rig(broker.port, rate_limit=rate, tick_ms=1000, ring_bytes=400000) as rig:
            rig.up()
            rig.order("put", n=2 * rate + 1)
            stats = rig.delivered(2 * rate + 1)
        took_ms = stats["last_at"] - stats["first_at"]
        assert took_ms >= 1800
        if took_ms <= 2200:
            return
    pytest.fail(f"{2 * rate} messages at {rate} a second took {took_ms} ms, six times over")


def test_S9_an_idle_time_is_not_made_up_for_by_a_burst(broker):
    with Rig(broker.port, rate_limit=20, tick_ms=1000) as rig:
        rig.up()
        rig.order("put")
        rig.delivered(1)
        rig.order("advance", ms=10000)
        began = rig.order("put", n=11) and rig.stats()["now"]
        stats = rig.delivered(12)
    assert stats["last_at"] - began >= 10 * 50 - 25


def test_a_message_larger_than_the_link_takes_is_set_aside_and_the_rest_goes_on(judge, rig):
    rig.order("put", n=2)
    topic = "x" * 400
    for _ in range(2):
        rig.order("put", size=4088, topic=topic)
    rig.order("put", n=2, size=4088)
    stats = rig.delivered(4)
    assert judge.numbers(5) == [0, 1, 4, 5]
    assert stats["dropped"] == [["too_large", 4088]] * 2
    assert (stats["held"], stats["connects"], stats["resent"]) == (0, 1, 0)
    said = f"dropped: topic {topic} of 400 bytes, payload of 4088: the link takes 4152"
    assert rig.lines("dropped") == [said]


def test_a_greeting_larger_than_the_link_takes_is_left_out(broker, proxy, judge):
    with Rig(proxy.port, greetings=[["rig/big", "x" * 5000], ["rig/status", "online"]]) as rig:
        rig.order("put")
        rig.delivered(1)
        assert judge.received(1, "rig/status") == [b"online"]
        assert rig.lines("greeting on rig/big left out: topic of 7 and payload of 5000 bytes")


def test_L9_mq_66_strings_are_counted_in_bytes_everywhere(tmp_path):
    """Report: mq#66, lib#746, lib#1073."""
    users = {"jürgen": "käse°"}
    with (
        Broker(tmp_path, kind=MOSQUITTO, users=users, extra=["allow_anonymous true"]) as broker,
        Judge(broker.port) as judge,
    ):
        options = {
            "client_id": "mühle-1",
            "user": "jürgen",
            "password": "käse°",
            "will": ["mühle/ende", "außer Betrieb ✗"],
            "greetings": [["mühle/stand", "läuft ✓"]],
        }
        with Rig(broker.port, **options) as rig:
            rig.order("put", topic="mühle/21°C", text="21°C ✓")
            rig.order("put", topic="mühle/21°C", text="x")
            rig.delivered(2)
            rig.kill()
            assert judge.received(2, "mühle/21°C") == ["21°C ✓".encode(), b"x"]
            assert judge.received(1, "mühle/stand") == ["läuft ✓".encode()]
            assert judge.received(1, "mühle/ende") == ["außer Betrieb ✗".encode()]
        assert wire.connects(broker, "mühle-1") == 1


def test_mongoose_1827_an_empty_payload_is_a_message(judge, rig):
    """Report: mongoose#1827."""
    rig.order("put", text="")
    rig.order("put", text="after")
    rig.delivered(2)
    assert judge.received(2) == [b"", b"after"]


def test_umqtt_1_8_0_serves_as_well(broker, proxy, judge):
    with Rig(proxy.port, path=HERE / "umqtt_1_8", will=["rig/end", "gone"]) as rig:
        rig.order("put", n=50)
        rig.delivered(50)
        proxy.reset()
        assert rig.up(2)
        rig.order("put", n=50)
        rig.delivered(100)
        judge.has_all(100)
        assert judge.received(1, "rig/end") == [b"gone"]
        assert "umqtt_1_8/" in rig.order("umqtt")["file"]


def test_umqtt_1_3_4_is_what_the_other_tests_use(rig):
    assert ".deps/" in rig.order("umqtt")["file"]


def test_the_judge_sees_damage():
    assert number_of(b"000012000012") == 12
    with pytest.raises(AssertionError, match="damaged"):
        number_of(b"000012000x12")
