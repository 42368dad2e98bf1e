"""tools.sizing and tools.traffic against the real queue, packer and ring, and seed 004."""

from dataclasses import replace

import pytest

from firmware.mqtt_out import Outbound
from millpond.paged_ring import PagedRing
from tests_host.host.size_kit import first_loss, sent_while_up
from tools import seed_figures, sizing, traffic
from tools.sizing import Plan

BOTH = pytest.mark.parametrize("encoding", sizing.ENCODINGS)
K = 1024

FILLED = {
    "the seed's case": Plan(),
    "pages of the firmware": Plan(buffer=256 * K, page=2048),
    "largest pages, memory left over": Plan(tags=20, buffer=3 * 65536 + 60000, page=65536),
    "least pages": Plan(tags=7, buffer=300 * 64, page=64),
    "a scan over three pages": Plan(tags=1000, buffer=512 * K),
    "a scan that just fills a page": Plan(tags=452, buffer=512 * K),
    "a scan that is one too many": Plan(tags=453, buffer=512 * K),
    "one tag": Plan(tags=1, period_ms=1000, buffer=128 * K, page=512),
    "many scans a second": Plan(tags=3, period_ms=50, buffer=64 * K, page=1024),
    "scans off the second": Plan(tags=5, period_ms=300, buffer=64 * K, page=1024),
    "a period of broken seconds": Plan(tags=9, period_ms=1500, buffer=64 * K, page=1024),
    "bool": Plan(tags=30, buffer=64 * K, page=1024, kind="bool"),
    "uint16": Plan(tags=30, buffer=64 * K, page=1024, kind="uint16"),
    "int32 with its longest number": Plan(tags=30, buffer=64 * K, page=1024, kind="int32"),
    "a float of many digits": Plan(tags=30, buffer=64 * K, page=1024, value=-1234.5678),
}


# -- link down -----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("name", FILLED)
def test_a_real_ring_loses_its_first_reading_when_the_tool_says(name, encoding):
    plan = replace(FILLED[name], encoding=encoding)
    readings, after_ms = first_loss(plan)
    found = sizing.retention(plan)
    # One percent is what is promised; but the framing is followed to the byte.
    assert found.readings == pytest.approx(readings, rel=0.01)
    assert found.seconds == pytest.approx(after_ms / 1000, rel=0.01)
    assert (found.readings, found.seconds) == (readings, after_ms / 1000)


@BOTH
def test_health_messages_give_way_to_readings(encoding):
    plan = Plan(buffer=256 * K, page=2048, encoding=encoding)
    assert first_loss(plan, with_reports=True) == first_loss(plan)


@BOTH
def test_every_byte_of_the_buffer_is_accounted_for(encoding):
    plan = Plan(buffer=100001, encoding=encoding)
    spent = sizing.retention(plan).spent
    assert sum(spent.values()) == 100001
    assert spent["message headers"] == 24 * 8
    assert spent["left empty"] >= 100001 - 24 * 4096
    assert all(number >= 0 for number in spent.values())


def test_framing_is_that_of_the_seeds_table():
    binary = sizing.framing(Plan(tags=2))
    assert (binary.head, binary.group, binary.upto) == (5, 14, [0, 9, 18])
    text = sizing.framing(Plan(tags=10, encoding="json"))
    assert text.group == 0 and text.upto[1] == len('{"id":1,"values":[23.7],"ts":1709337600},')
    assert text.upto[10] - text.upto[9] == text.upto[1] + 1
    assert text.head + text.upto[1] == len('[{"id":1,"values":[23.7],"ts":1709337600}]')


@BOTH
def test_a_larger_page_wastes_less_of_the_same_buffer(encoding):
    lasts = [
        sizing.retention(Plan(encoding=encoding, page=page)).readings
        for page in (128, 512, 2048, 8192, 32768)
    ]
    assert lasts == sorted(lasts) and lasts[0] < lasts[-1]


@BOTH
def test_the_curve_goes_through_what_retention_says(encoding):
    plan = Plan(encoding=encoding, buffer=64 * K)
    points = sizing.curve(plan, 12 * K, 512 * K, 1000)
    assert [size for size, _ in points] == list(range(12 * K, 512 * K + 1, 4096))
    for size, seconds in points:
        assert seconds == sizing.retention(replace(plan, buffer=size)).seconds
    assert sizing.curve(plan, 0, 1 << 40, 2) == [
        (12 * K, points[0][1]),
        (65534 * 4096, sizing.retention(replace(plan, buffer=65534 * 4096)).seconds),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tags": 0}, "tags 0: 1 to 65535 expected"),
        ({"tags": 65536}, "tags 65536: 1 to 65535 expected"),
        ({"period_ms": 9}, "period 9: 10 to 86400000 ms expected"),
        ({"page": 63}, "page 63: 64 to 65536 bytes expected"),
        ({"page": 65537}, "page 65537: 64 to 65536 bytes expected"),
        ({"buffer": 12287}, "buffer 12287: 12288 to 268431359 bytes"),
        ({"buffer": 268431360}, "buffer 268431360: 12288 to 268431359 bytes"),
        ({"encoding": "xml"}, "encoding 'xml'"),
        ({"kind": "double"}, "kind 'double': one of bool, "),
        ({"kind": "uint8", "value": 256}, "value 256: 0 to 255 expected for uint8"),
        ({"max_readings": 0}, "max_readings 0: 1 to 1000 expected"),
        ({"max_age_ms": -1}, "max_age_ms -1: 0 to 3600000 expected"),
    ],
)
def test_a_wrong_plan_names_the_value_and_the_limit(wrong, message):
    with pytest.raises(ValueError) as error:
        Plan(**wrong)
    assert message in str(error.value)


def test_a_page_too_small_for_a_reading_in_json_says_how_large_it_must_be():
    wanted = {"kind": "float32", "value": -1.15735956e-32, "tags": 10000, "encoding": "json"}
    with pytest.raises(ValueError, match="page 64: at least 65 bytes expected"):
        Plan(**wanted, page=64)
    assert len('[{"id":10000,"values":[-1.15735956e-32],"ts":1709337600}]') == 65 - 8
    assert next(sizing.fills(Plan(**wanted, page=65))).readings == 1
    binary = Plan(**{**wanted, "encoding": "f7"}, page=64)
    assert sizing.side_by_side(binary) == [binary]
    assert len(sizing.side_by_side(replace(binary, page=65))) == 2


@pytest.mark.parametrize("page", [64, 4096])
def test_the_limits_are_those_of_the_ring(page):
    least, most = sizing.buffer_limits(page)
    assert PagedRing(least, page).pages == Plan(buffer=least, page=page).pages == 3
    assert Plan(buffer=most, page=page).pages == 65534
    for size in (least - 1, most + 1):
        with pytest.raises(ValueError, match="size"):
            PagedRing(size, page)
    for wrong in (sizing.MIN_PAGE - 1, sizing.MAX_PAGE + 1):
        with pytest.raises(ValueError, match="page_size"):
            PagedRing(1 << 20, wrong)
    assert PagedRing(least, page).page_payload == page - sizing.MESSAGE_HEAD


# -- the seed's figures --------------------------------------------------------------------------


def test_simple_division_gives_the_seeds_figures():
    assert seed_figures.scan_bytes(Plan()) == 1815
    for encoding, hours in seed_figures.HOURS.items():
        simple = seed_figures.seconds(Plan(encoding=encoding)) / 3600
        assert int(simple * 10) / 10 == hours
    assert seed_figures.HOURS == {"f7": 19.2, "json": 3.8}
    assert seed_figures.scan_bytes(Plan(tags=10, kind="uint8")) == 10 * 6 + 15


def test_prices_make_the_seeds_months_of_its_bytes():
    assert seed_figures.month_mb(Plan()) == 1815 * 60 * 24 * 30 / 1e6
    for link, binary, text in (("cellular", 15, 75), ("satellite", 50, 250)):
        price = seed_figures.PRICES[link]
        assert seed_figures.month_mb(Plan()) * price == pytest.approx(binary)
        assert seed_figures.month_mb(Plan(encoding="json")) * price == pytest.approx(text)
        assert seed_figures.DOLLARS[link] == {"f7": binary, "json": text}


def test_the_sentence_says_by_how_much_and_why():
    binary, text = Plan(), Plan(encoding="json")
    why = seed_figures.why_different(binary, sizing.retention(binary))
    assert why.startswith("0.6 % shorter than by simple division")
    for reason in ("group header of 14", "8 on its message header", "5 on its batch header"):
        assert reason in why
    why = seed_figures.why_different(text, sizing.retention(text))
    assert why.startswith("6.0 % longer than by simple division")
    assert "45.4 bytes a reading" in why and "here one has 42.5" in why
    assert why.count(".") - why.count("0.") < 8 and why.endswith("count.")


# -- link up -------------------------------------------------------------------------------------

SENT = {
    "the seed's case": (Plan(), 20),
    "a rest that grows old": (Plan(tags=130), 20),
    "one tag": (Plan(tags=1, period_ms=1000), 600),
    "batches over scans": (Plan(tags=33, period_ms=2000), 300),
    "a scan at the very age": (Plan(tags=20, period_ms=5000), 100),
    "many scans a second": (Plan(tags=7, period_ms=250), 1200),
    "broken seconds": (Plan(tags=7, period_ms=1500, max_age_ms=60000), 400),
    "no age": (Plan(tags=7, period_ms=1000, max_age_ms=0), 200),
    "batches as large as a page": (Plan(tags=2000, max_readings=1000), 20),
    "batches that are cut by the page": (Plan(tags=300, max_readings=60, page=1024), 20),
    "many batches in little pages": (Plan(tags=64, max_readings=7, page=256), 20),
    "a rest too small to begin in": (Plan(tags=63, max_readings=3, page=1024), 20),
    "pages that leave with each poll": (Plan(tags=200, max_readings=10, page=1024), 20),
    "batches that are never empty at a scan": (
        Plan(tags=7, period_ms=1000, max_readings=1000, max_age_ms=60000, page=1024),
        4000,
    ),
    "a beginning unlike the rest": (Plan(tags=64, period_ms=1000, max_readings=7, page=256), 200),
    "single readings": (Plan(tags=10, max_readings=1), 20),
}


@BOTH
@pytest.mark.parametrize("name", SENT)
def test_a_real_packer_sends_what_the_month_says(name, encoding):
    plan, scans = SENT[name]
    plan = replace(plan, encoding=encoding, buffer=256 * K)
    messages, payload, published = sent_while_up(plan, scans)
    month = traffic.month(plan)
    share = scans * plan.period_ms / 1000 / traffic.MONTH_S
    # What the last batches are short of; over all it is less than 1 %.
    rest = pytest.approx(messages, abs=1.01, rel=0.01 if messages > 500 else 0)
    assert month.messages * share == rest
    assert month.payload * share == pytest.approx(payload, rel=0.01)
    out = month.payload + month.mqtt - 4 * month.messages
    assert out * share == pytest.approx(published, rel=0.01)


def test_a_month_of_the_seeds_case_by_hand():
    # A scan: 4 batches of 50 readings. 5 + 14 + 50 * 9 = 469 bytes, with 1 + 2 + 2 + 24 + 2 of
    # MQTT 500; 4 PUBACKs of 4 bytes; 4 + 4 segments, and one for the last acknowledgement. And a
    # ping, for half a keepalive is 30 s: 2 + 2 bytes in three segments.
    month = traffic.month(Plan())
    scans = 30 * 24 * 60
    assert month.messages == 4 * scans and month.pings == scans
    assert month.payload == 4 * 469 * scans
    assert month.mqtt == 4 * (31 + 4) * scans
    assert month.tcp_ip == 9 * 40 * scans
    assert month.keepalive == (4 + 120) * scans
    assert month.total == 2500 * scans
    assert month.price(2.0) == pytest.approx(2500 * scans / 1e6 * 2)


@pytest.mark.parametrize(
    ("period_s", "keepalive_s", "pings"),
    [(60, 60, 1), (30, 60, 0), (31, 60, 1), (90, 60, 2), (91, 60, 3), (60, 0, 0), (60, 10, 11)],
)
def test_pings_fill_the_gaps_of_more_than_half_a_keepalive(period_s, keepalive_s, pings):
    month = traffic.month(Plan(tags=50, period_ms=1000 * period_s), keepalive_s)
    assert month.pings == pytest.approx(pings * traffic.MONTH_S / period_s)


@pytest.mark.parametrize("payload", [1, 98, 99, 100, 1000, 16354, 16355, 16356, 65528])
def test_publish_has_the_bytes_that_the_link_lays(payload):
    wire = Outbound(70000)
    wire.publish(traffic.TOPIC.encode(), bytes(payload), 2, 1)
    assert traffic.publish_bytes(payload) == wire.end


def test_scans_of_one_second_share_a_group():
    bytes_of = sizing.framing(Plan(period_ms=300))
    assert bytes_of.round == 10
    # 0, 0.3, 0.6, 0.9 | 1.2, 1.5, 1.8 | 2.1, 2.4, 2.7 | 3.0 s
    opened = [scan for scan in range(20) if bytes_of.opens_group(scan)]
    assert opened == [0, 4, 7, 10, 14, 17]
    assert sizing.framing(Plan(period_ms=1000)).round == 1
    assert all(sizing.framing(Plan(period_ms=1001)).opens_group(scan) for scan in range(5))


def test_a_message_larger_than_a_segment_pays_for_each():
    assert [traffic.segments(size) for size in (1, 1440, 1441, 2880, 2881)] == [1, 1, 2, 2, 3]
    # One batch a scan: 64 bytes of headers for a PUBLISH of up to 1440 bytes.
    for readings, segments in ((154, 1), (155, 2)):
        plan = Plan(tags=readings, max_readings=readings, page=8192)
        month = traffic.month(plan)
        assert traffic.publish_bytes(5 + 14 + 9 * readings) == 50 + 9 * readings
        assert month.tcp_ip == pytest.approx(43200 * 40 * (segments + 2))


def test_a_backlog_takes_a_round_trip_a_page_and_its_bytes():
    assert traffic.drain_seconds(512, 4088, 0.1, float("inf")) == pytest.approx(51.2)
    on_wire = 1 + 2 + 2 + 24 + 2 + 4088 + 3 * 40
    assert traffic.drain_seconds(10, 4088, 0, 1000) == pytest.approx(10 * 8 * on_wire / 1000)
