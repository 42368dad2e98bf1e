"""Sensors: what every sensor must do, and the board about itself."""

from firmware.sensors import board, plant
from firmware.sensors.board import Board
from firmware.sensors.plant import Plant
from millpond.message import LOW
from millpond.reading import KIND_NAMES, kind_of, pack_reading
from tests_host.app.seen import read, values_of


def assert_follows_the_protocol(sensor):
    assert sensor.name and isinstance(sensor.period_ms, int)
    for tag_id, name, kind, unit, scale in sensor.tags:
        assert 1 <= tag_id <= 65535 and name and kind in KIND_NAMES and scale > 0
        assert isinstance(unit, str)
    for _ in range(50):
        seen = read(sensor)
        assert seen.order == [tag[0] for tag in sensor.tags]
        for tag in sensor.tags:
            pack_reading(bytearray(16), 0, tag[0], kind_of(tag[2]), seen.values[tag[0]], 0)


def make_board(**gauges):
    return Board(
        10000,
        gauges.get("free_heap", lambda: 65536),
        gauges.get("loop_lag", lambda: 3),
        gauges.get("ring_fill", lambda: 40),
    )


def test_plant_follows_the_protocol():
    assert_follows_the_protocol(Plant(1000, 1, 300))


def test_board_follows_the_protocol():
    assert_follows_the_protocol(make_board())


def test_tag_ids_and_names_are_unique_on_the_board():
    tags = plant.TAGS + board.TAGS
    assert len(set([tag[0] for tag in tags])) == len(tags)
    assert len(set([tag[1] for tag in tags])) == len(tags)


# The board about itself


def test_board_reports_its_gauges_at_low_priority():
    sensor = make_board()
    assert sensor.priority == LOW
    assert read(sensor).values == {101: 65536, 102: 3, 103: 40}
    assert [tag[1:4] for tag in sensor.tags] == [
        ("free_heap", "uint32", "byte"),
        ("loop_lag", "uint32", "ms"),
        ("ring_fill", "uint8", "%"),
    ]


def test_board_asks_each_gauge_once_a_read():
    asked = []
    lags = [70, 2]

    def lag():
        asked.append("lag")
        return lags.pop(0)

    sensor = make_board(loop_lag=lag)
    assert asked == []
    assert values_of(sensor, 102, 2) == [70, 2]
    assert asked == ["lag", "lag"]


def test_board_reports_whole_numbers():
    assert read(make_board(ring_fill=lambda: 99.6)).values[103] == 99


def test_board_hides_no_error_of_a_gauge():
    def broken():
        raise OSError(5, "input")

    try:
        read(make_board(free_heap=broken))
    except OSError as error:
        assert error.errno == 5
    else:
        raise AssertionError("OSError was not raised")
