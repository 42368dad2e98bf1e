"""tools.audit must see every way in which a delivery can be wrong, and none in a right one."""

import pytest

from tools.audit import Audit

TAGS = [1, 2, 21]
TOPIC = "pond/mill/data"


class Story:
    """A device's production, told message by message, with what is done to it on the way."""

    def __init__(self):
        self.messages = []
        self.produced = 0

    def scan(self, number):
        ts = 1000 + number // 5
        values = {1: 20.5, 2: 3.25, 21: number}
        return [{"id": tag, "value": values[tag], "ts": ts, "received": ts} for tag in TAGS]

    def batch(self, *scans):
        readings = [reading for number in scans for reading in self.scan(number)]
        return self.message(readings)

    def message(self, records, topic=TOPIC):
        self.produced += len(records)
        self.messages.append((topic, repr(records).encode(), records))
        return self

    def alert(self, ts):
        return self.message([{"type": "alert", "ts": ts, "received": ts}], "pond/mill/alert")

    def health(self, received):
        return self.message([{"type": "health", "received": received}], "pond/mill/health")

    def verdict(self, dropped=None, held=0):
        audit = Audit(TAGS)
        for message in self.messages:
            audit.take(*message)
        delivered = self.produced - sum((dropped or {}).values()) - held
        return audit.verdict(
            {
                "produced": self.produced,
                "delivered": delivered,
                "dropped": dropped or {},
                "held": held,
            }
        )


def story():
    return Story().batch(1, 2).alert(1001).batch(3).health(1002).batch(4, 5, 6)


def test_a_right_delivery_passes():
    verdict = story().verdict()
    assert verdict.passed, verdict.faults
    assert (verdict.produced, verdict.delivered, verdict.duplicates) == (20, 20, 0)
    assert (verdict.lost, verdict.in_order, verdict.dropped) == (0, True, {})


@pytest.mark.parametrize("at", range(5))
def test_a_repeat_counts_as_duplicates_and_passes(at):
    told = story()
    told.messages.insert(at, told.messages[at])
    told.messages.insert(at, told.messages[at])
    verdict = told.verdict()
    assert verdict.passed, verdict.faults
    assert verdict.delivered == 20
    assert verdict.duplicates == 2 * len(told.messages[at][2])


def test_a_repeat_around_birth_and_will_is_still_a_repeat():
    told = story()
    offline = ("pond/mill/status", b"{}", [{"type": "status", "received": 1}])
    told.messages[1:1] = [offline, told.messages[0]]
    verdict = told.verdict()
    assert verdict.passed, verdict.faults
    assert verdict.duplicates == 6


@pytest.mark.parametrize("at", range(5))
def test_a_lost_message_is_lost(at):
    told = story()
    *_, records = told.messages.pop(at)
    verdict = told.verdict()
    assert not verdict.passed
    assert verdict.lost == len(records)
    assert verdict.in_order
    assert f"{len(records)} items lost" in verdict.faults


@pytest.mark.parametrize("tag", range(3))
def test_one_lost_reading_is_lost(tag):
    told = story()
    del told.messages[2][2][tag]
    verdict = told.verdict()
    assert (verdict.lost, verdict.in_order) == (1, True)


def test_a_dropped_and_counted_message_passes():
    told = story()
    told.messages.pop(2)
    verdict = told.verdict(dropped={"stolen": 3, "expired": 0})
    assert verdict.passed, verdict.faults
    assert (verdict.lost, verdict.dropped) == (0, {"stolen": 3})


def test_a_device_that_hides_a_loss_is_found_by_the_scans():
    told = story()
    told.messages.pop(2)
    told.produced -= 3
    verdict = told.verdict()
    assert verdict.lost == 3
    assert not verdict.passed


def test_a_swap_of_messages_is_out_of_order():
    told = story()
    told.messages[0], told.messages[2] = told.messages[2], told.messages[0]
    verdict = told.verdict()
    assert (verdict.in_order, verdict.passed) == (False, False)
    assert verdict.faults[0] == "out of order: scan 1 after scan 3"


@pytest.mark.parametrize("at", range(2))
def test_a_swap_of_readings_within_a_scan_is_out_of_order(at):
    told = story()
    records = told.messages[4][2]
    records[at], records[at + 1] = records[at + 1], records[at]
    verdict = told.verdict()
    assert (verdict.lost, verdict.in_order, verdict.passed) == (0, False, False)


def test_a_late_repeat_is_out_of_order():
    told = story()
    told.messages.append(told.messages[0])
    verdict = told.verdict()
    assert (verdict.in_order, verdict.passed) == (False, False)
    assert any("6 items more than" in fault for fault in verdict.faults)


def test_a_time_that_falls_is_out_of_order():
    verdict = Story().batch(1).alert(1001).alert(1000).verdict()
    assert verdict.faults == ["out of order: alert: time fell"]
    board = [{"id": 101, "value": 1, "ts": ts, "received": 0} for ts in (7, 6)]
    verdict = Story().batch(1).message(board).verdict()
    assert verdict.faults == ["out of order: tag 101: time fell"]


def test_a_restarted_device_is_out_of_order():
    assert not Story().batch(1, 2).batch(1).verdict().in_order


def test_what_is_still_held_fails():
    told = story()
    told.messages.pop()
    verdict = told.verdict(held=9)
    assert verdict.lost == 0
    assert verdict.faults == ["9 items still held by the device"]


def test_malformed_fails():
    told = story()
    told.messages.append((TOPIC, b"?", [{"type": "malformed", "received": 0}]))
    assert told.verdict().faults == ["1 malformed messages or readings"]


def test_nothing_at_all_fails():
    assert Story().verdict().faults == ["no scan of the plant was received"]
