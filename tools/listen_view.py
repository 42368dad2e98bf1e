"""What `listen` shows: the last value of every tag, with rates and totals, or a line for each.

A `View` takes the records of a Decoder and keeps what a screen has room for. It reads no clock
and writes nothing: `table(now)` gives something that rich can print.
"""

from collections import deque
from dataclasses import dataclass, field

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tools import shown
from tools._core import UNKNOWN_BELOW

_RATE_OVER_S = 10.0
_ALERTS = 5


@dataclass
class _Row:
    reading: dict
    count: int = 0


@dataclass
class _Device:
    state: str = "?"
    rows: dict[int, _Row] = field(default_factory=dict)
    readings: int = 0
    malformed: int = 0
    arrivals: deque = field(default_factory=deque)

    def rate(self, now: float) -> float:
        """Readings per second, over the last few seconds."""
        while self.arrivals and self.arrivals[0] < now - _RATE_OVER_S:
            self.arrivals.popleft()
        return len(self.arrivals) / _RATE_OVER_S


class View:
    """Totals and last values of every device seen."""

    def __init__(self):
        self.readings = 0
        self.malformed = 0
        self._devices: dict[str, _Device] = {}
        self._notices: deque[str] = deque(maxlen=_ALERTS)

    def add(self, record: dict) -> None:
        """Take one record in."""
        device = self._devices.setdefault(record["device"], _Device())
        kind = record.get("type")
        if kind is None:
            self.readings += 1
            device.readings += 1
            device.arrivals.append(record["received"])
            row = device.rows.setdefault(record["id"], _Row(record))
            row.reading = record
            row.count += 1
        elif kind == "status":
            device.state = shown.clean(record["data"].get("state", "?"))
        elif kind == "malformed":
            self.malformed += 1
            device.malformed += 1
        if kind in ("alert", "malformed"):
            self._notices.append(line(record))

    def table(self, now: float) -> Group:
        """Everything, for a screen, as of the Unix time `now`."""
        parts = [self._device_table(name, now) for name in sorted(self._devices)]
        if not parts:
            parts = [Text("nothing received yet", style="dim")]
        notices = [Text(notice, style="yellow") for notice in self._notices]
        return Group(*parts, *notices)

    def _device_table(self, name: str, now: float) -> Table:
        device = self._devices[name]
        title = Text(f"{shown.clean(name)}  ", style="bold")
        title.append(device.state, style="green" if device.state == "online" else "red")
        caption = f"{device.readings} readings, {device.rate(now):.1f}/s"
        if device.malformed:
            caption += f", {device.malformed} malformed"
        table = Table(title=title, caption=caption, box=box.SIMPLE, title_justify="left")
        for column in ("id", "name", "value", "unit", "age", "count"):
            right = column not in ("name", "unit")
            table.add_column(column, justify="right" if right else "left")
        for tag_id in sorted(device.rows):
            row = device.rows[tag_id]
            table.add_row(
                str(tag_id),
                Text(shown.tag(row.reading)),
                Text(shown.value(row.reading, with_unit=False)),
                Text(shown.clean(row.reading["unit"] or "")),
                _age(row.reading, now),
                str(row.count),
            )
        return table

    def summary(self) -> str:
        """The totals in one line."""
        devices = len(self._devices)
        return (
            f"{self.readings} readings from {devices} device{'' if devices == 1 else 's'},"
            f" {self.malformed} malformed"
        )


def line(record: dict) -> str:
    """One record in one line."""
    head = f"{shown.clock(record['received'])} {shown.clean(record['device'])}"
    kind = record.get("type")
    if kind is None:
        return f"{head} {shown.moment(record['ts'])} {shown.tag(record)} {shown.value(record)}"
    if kind == "malformed":
        topic, reason = shown.clean(record["topic"]), shown.clean(record["reason"])
        return f"{head} MALFORMED on {topic}: {reason} (begins {record['begins']})"
    if kind == "alert":
        name, text = shown.clean(record["name"]), shown.clean(record["text"])
        return f"{head} {shown.moment(record['ts'])} ALERT {name}: {text}"
    if kind == "tags":
        return f"{head} announces {len(record['tags'])} tags"
    if kind == "other":
        return f"{head} {record['length']} bytes on {shown.clean(record['topic'])}"
    pairs = (f"{key}={value}" for key, value in record["data"].items())
    return f"{head} {kind} {shown.clean(' '.join(pairs))}"


def _age(reading: dict, now: float) -> str:
    """How old the value is: since it was read or, where that is not known, since it came."""
    ts = reading["ts"]
    return shown.span(now - (reading["received"] if ts < UNKNOWN_BELOW else ts))
