"""Outlet: what a sensor hands over reaches the intake, whatever the sensor does."""

import json

from firmware.outlet import STATUS_BAD_VALUE, STATUS_FAILED, Outlet
from millpond.clock import Clock
from millpond.message import CRITICAL, HIGH, LOW, NORMAL, TopicTable
from millpond.message_queue import MessageQueue
from millpond.reading import kind_of, pack_reading
from tests_host.kit import no_alloc, raises


class Sensor:
    """A sensor of two tags."""

    name = "pump"
    tags = ((7, "speed", "uint16", "1/min", 1), (8, "temp", "float32", "degC", 0.1))


class Urgent(Sensor):
    priority = HIGH


class Broken(Sensor):
    def read(self, out):
        raise OSError("no answer")


class OneBad(Sensor):
    def read(self, out):
        out.reading(7, -5)
        out.reading(8, 21.5)


class HalfBroken(Sensor):
    def read(self, out):
        out.reading(8, 21.5)
        raise OSError("no answer")


class Slow(Sensor):
    """Two readings and an alert between which a second passes."""

    def read(self, out):
        out.reading(7, 1)
        out.alert("a", "b")
        out.reading(8, 2.0)


class Line:
    """An outlet and the queue behind it."""

    def __init__(self, sensor=Sensor, slots=8, slot_size=64, overflow="displace"):
        topics = TopicTable()
        self.data, self.alert = topics.index("pond/data"), topics.index("pond/alert")
        self.queue = MessageQueue(slots, slot_size, topics, overflow)
        self.clock = Clock(lambda: 5000)
        self.errors = []
        self.outlet = Outlet(sensor(), self.queue, self.clock, self.data, self.alert, self)

    def error(self, text):
        self.errors.append(text)

    def taken(self):
        """The next message as (topic index, priority, payload)."""
        queue = self.queue
        assert queue.peek(0)
        payload = bytes(queue.buffer[queue.head_at : queue.head_at + queue.head_length])
        found = queue.head_topic, queue.head_priority, payload
        queue.pop(0)
        return found


def record(tag_id, kind, value, seconds=0, status=0):
    buf = bytearray(32)
    return bytes(buf[: pack_reading(buf, 0, tag_id, kind_of(kind), value, seconds, status)])


def test_a_reading_becomes_a_record_of_its_tags_kind_on_the_data_topic():
    line = Line()
    line.outlet.reading(7, 1450)
    line.outlet.reading(8, 23.5)
    assert line.taken() == (line.data, NORMAL, record(7, "uint16", 1450))
    assert line.taken() == (line.data, NORMAL, record(8, "float32", 23.5))


def test_several_values_are_one_reading():
    line = Line()
    line.outlet.reading(7, [1, 2, 3])
    assert line.taken()[2] == record(7, "uint16", [1, 2, 3])


def test_a_sensors_priority_is_that_of_its_readings():
    line = Line(Urgent)
    line.outlet.reading(7, 1)
    assert line.taken()[1] == HIGH


def test_a_status_has_no_value():
    line = Line()
    line.outlet.reading(8, 0, 3)
    assert line.taken()[2] == record(8, "float32", 0, 0, 3)


def test_a_reading_of_a_tag_that_the_sensor_has_not_is_refused():
    line = Line()
    assert "9" in raises(ValueError, line.outlet.reading, 9, 1)
    assert len(line.queue) == 0


def test_a_value_that_its_tag_cannot_have_is_handed_over_as_a_status_and_logged():
    for value in (65536, "fast", None, [1] * 300):
        line = Line()
        line.outlet.reading(7, value)
        assert line.taken() == (line.data, NORMAL, record(7, "uint16", 0, 0, STATUS_BAD_VALUE))
        assert len(line.queue) == 0 and line.outlet.bad_values == 1
        assert "pump, tag 7" in line.errors[0]
    line = Line()
    line.outlet.reading(7, 65536)
    assert "65536" in line.errors[0] and "65535" in line.errors[0]


def test_more_values_than_a_slot_holds_are_a_bad_value_too():
    line = Line(slot_size=64)
    line.outlet.reading(7, [1] * 28)
    assert line.taken()[2] == record(7, "uint16", 0, 0, STATUS_BAD_VALUE)
    assert "no room" in line.errors[0]


def test_bad_values_are_logged_ever_more_rarely():
    line = Line(slots=32)
    for _ in range(20):
        line.outlet.reading(7, -1)
    counts = [int(text[text.rindex("(") + 1 :].split()[0]) for text in line.errors]
    assert counts == [1, 2, 4, 8, 16]


def test_the_rest_of_a_read_goes_on_after_a_bad_value():
    line = Line(OneBad)
    line.outlet.take()
    assert line.taken()[2] == record(7, "uint16", 0, 0, STATUS_BAD_VALUE)
    assert line.taken()[2] == record(8, "float32", 21.5)


def test_wrong_tags_are_refused_before_the_sensor_is_read():
    class NoId(Sensor):
        tags = ((0, "speed", "uint16", "", 1),)

    class NoKind(Sensor):
        tags = ((1, "speed", "float64", "", 1),)

    assert "speed of pump" in raises(ValueError, Line, NoId)
    assert "float64" in raises(ValueError, Line, NoKind)


def test_a_sensor_that_failed_gives_a_status_for_each_of_its_tags():
    line = Line(Broken)
    assert "no answer" in raises(OSError, line.outlet.take)
    found = sorted([line.taken()[2] for _ in range(2)])
    expected = [record(7, "uint16", 0, 0, 255), record(8, "float32", 0, 0, 255)]
    assert found == sorted(expected)
    assert len(line.queue) == 0


def test_a_read_that_breaks_off_gives_a_status_for_what_it_did_not_report():
    line = Line(HalfBroken)
    for _ in range(2):
        raises(OSError, line.outlet.take)
        assert line.taken()[2] == record(8, "float32", 21.5)
        assert line.taken()[2] == record(7, "uint16", 0, 0, STATUS_FAILED)
        assert len(line.queue) == 0


def test_all_readings_of_a_read_share_one_moment():
    line = Line(Slow)
    ticks = [0]

    def tick():
        ticks[0] += 700
        return ticks[0]

    line.outlet._clock = Clock(tick)
    line.outlet.take()
    line.taken()
    seconds = [line.taken()[2][2:6] for _ in range(2)]
    assert seconds[0] == seconds[1]


def test_an_alert_is_json_on_the_alert_topic_and_critical():
    line = Line()
    line.outlet.alert("hot", "temp0 at 71.2 degC")
    topic, priority, payload = line.taken()
    assert (topic, priority) == (line.alert, CRITICAL)
    assert json.loads(payload) == {"ts": 0, "name": "hot", "text": "temp0 at 71.2 degC"}


def test_an_alert_can_be_less_urgent():
    line = Line()
    line.outlet.alert("note", "filter due", LOW)
    assert line.taken()[1] == LOW


def test_an_alert_that_is_too_long_is_cut_to_fit_the_slot():
    for size in (64, 70, 96):
        for text in ("x" * 25, "x" * 500, "°" * 200, '"' * 300, "\n\\" * 100):
            line = Line(slot_size=size)
            line.outlet.alert("hot", text)
            payload = line.taken()[2]
            cut = json.loads(payload)["text"]
            assert len(payload) <= size
            assert text.startswith(cut) and len(cut) > 2


def test_an_alert_is_cut_no_more_than_it_must_be():
    line = Line(slot_size=96)
    line.outlet.alert("hot", "x" * 500)
    assert len(line.taken()[2]) > 96 - 8


def test_an_alert_with_a_long_name_is_cut_too():
    line = Line(slot_size=64)
    line.outlet.alert("n" * 300, "text" * 100)
    alert = json.loads(line.taken()[2])
    assert alert["text"] == "" and alert["name"] and set(alert["name"]) == {"n"}


def test_Q6_an_alert_displaces_readings_and_not_the_other_way_round():
    line = Line(slots=2)
    for value in (1, 2):
        line.outlet.reading(7, value)
    line.outlet.alert("hot", "x")
    line.outlet.alert("hot", "y")
    line.outlet.reading(7, 3)
    assert [line.taken()[1] for _ in range(2)] == [CRITICAL, CRITICAL]
    assert (line.queue.stats.displaced, line.queue.stats.refused) == (2, 1)


def test_a_whole_number_reading_allocates_nothing():
    line = Line(slots=32)
    line.outlet.reading(7, 1)
    no_alloc(lambda: line.outlet.reading(7, 2))
    assert len(line.queue) == 2
