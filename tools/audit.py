"""Audit: does what the broker delivered agree with what the device says it produced?

Pure: it is fed the records of every message in the order of arrival (`take`) and is asked for a
`verdict` against the device's item counters, once nothing is on its way any more. An item is a
reading, or a message on any other topic that waits in the device's queue.

The device sends one message at a time and repeats it only after an interruption, so a repeat is
the same message twice running; its items count as duplicates. The rest must account for every
item in two independent ways:

    balance    produced - dropped - held = delivered, by the device's own counters
    scans      the simulated plant numbers its scans from 1 and reports the same tags in the same
               order in each, the number last: what is missing must have been dropped

and must be in order: scan numbers and tags within a scan rise, the time of a tag never falls.
"""

from dataclasses import dataclass, field

SCAN = "scan"
_COUNTED = ("alert", "health")


@dataclass(frozen=True)
class Verdict:
    """The result, in items. `faults` says in words what is wrong; empty when nothing is."""

    produced: int
    delivered: int
    duplicates: int
    dropped: dict[str, int]
    held: int
    lost: int
    in_order: bool
    faults: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Nothing lost, nothing out of order, nothing left behind."""
        return not self.faults


class Audit:
    """Follows one device. `scan_tags`: ids of the plant's tags in the order of a scan."""

    def __init__(self, scan_tags: list[int]):
        self._place = {tag_id: n for n, tag_id in enumerate(scan_tags)}
        self._last_place = len(scan_tags) - 1
        self._previous: tuple[str, bytes] | None = None
        self._at = -1  # place of the last plant reading in its scan
        self._scan = 0
        self._plant = 0
        self._unnumbered = 0  # scans that went by without their number
        self._times: dict[object, float] = {}
        self._disorder = ""
        self.delivered = 0
        self.duplicates = 0
        self.malformed = 0

    def take(self, topic: str, payload: bytes, records: list[dict]) -> None:
        """One message and its records (`tools.records`), in the order of arrival."""
        items = [r for r in records if "type" not in r or r["type"] in _COUNTED]
        self.malformed += sum(r.get("type") == "malformed" for r in records)
        if not items:
            return
        if (topic, payload) == self._previous:
            self.duplicates += len(items)
            return
        self._previous = topic, payload
        self.delivered += len(items)
        for item in items:
            if "type" in item:
                self._check_time(item["type"], item.get("ts", item["received"]))
            else:
                self._check_time(item["id"], item["ts"])
                self._check_place(item)

    def verdict(self, counters: dict) -> Verdict:
        """The result against the device's `counters()`; see there for their meaning."""
        produced, held = counters["produced"], counters["held"]
        dropped = {reason: n for reason, n in counters["dropped"].items() if n}
        gone = sum(dropped.values())
        balance = produced - gone - held - self.delivered
        missing = self._scan * len(self._place) - self._plant
        disorder = self._disorder
        if not disorder and self._unnumbered > max(missing, 0):
            disorder = f"{self._unnumbered} scans without their number, though nothing is missing"
        lost = max(balance, missing - gone, 0)
        faults = [disorder] if disorder else []
        if lost:
            faults.append(f"{lost} items lost")
        if balance < 0:
            faults.append(f"{-balance} items more than were produced, less those dropped and held")
        if held:
            faults.append(f"{held} items still held by the device")
        if self.malformed:
            faults.append(f"{self.malformed} malformed messages or readings")
        if not self._scan:
            faults.append("no scan of the plant was received")
        return Verdict(
            produced, self.delivered, self.duplicates, dropped, held, lost, not disorder, faults
        )

    def _check_time(self, what, ts: float) -> None:
        if ts < self._times.get(what, ts):
            self._out_of_order(f"{what if isinstance(what, str) else f'tag {what}'}: time fell")
        self._times[what] = ts

    def _check_place(self, reading: dict) -> None:
        place = self._place.get(reading["id"])
        if place is None:
            return
        self._plant += 1
        if place <= self._at:
            self._unnumbered += self._at != self._last_place
        self._at = place
        if place == self._last_place:
            self._check_scan(reading["value"])

    def _check_scan(self, number) -> None:
        if not isinstance(number, int) or number <= self._scan:
            self._out_of_order(f"scan {number} after scan {self._scan}")
            return
        self._scan = number

    def _out_of_order(self, what: str) -> None:
        self._disorder = self._disorder or f"out of order: {what}"
