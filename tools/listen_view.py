"""What `listen` shows: the last value of every tag, with rates and totals, or a line for each.

A `View` takes the records of a Decoder and keeps what a screen has room for. It reads no clock
and writes nothing: `table(now, height)` gives something that rich can print. What is taller than
the screen is cut in the devices' rows, so that the alerts and the totals are always there.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tools import shown
from tools._core import UNKNOWN_BELOW
from tools.listen_rate import Rate
from tools.records import Tag

_ALERTS = 5
_HEADS = 3  # lines of a device beside its rows: its name, the columns' names, "... n more"


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
    rate: Rate = field(default_factory=Rate)
    health: str = ""


class View:
    """Totals and last values of every device seen. `tags`: a Decoder's, as they are announced.

    `news`: the connection's last, shown while nothing has come.
    """

    def __init__(self, tags: Mapping[str, Mapping[int, Tag]] | None = None):
        self.readings = 0
        self.malformed = 0
        self.news = ""
        self._tags = tags if tags is not None else {}
        self._devices: dict[str, _Device] = {}
        self._rate = Rate()
        self._notices: deque[str] = deque(maxlen=_ALERTS)

    def add(self, record: dict) -> None:
        """Take one record in."""
        device = self._devices.setdefault(record["device"], _Device())
        kind = record.get("type")
        if kind is None:
            self.readings += 1
            self._rate.add(record["received"])
            self._add_reading(device, record)
        elif kind == "status":
            device.state = shown.clean(record["data"].get("state", "?"))
        elif kind == "health":
            device.health = f"{_account(record['data'])} at {shown.clock(record['received'])}"
        elif kind == "malformed":
            self.malformed += 1
            device.malformed += 1
        if kind in ("alert", "malformed"):
            self._notices.append(self.line(record))

    def _add_reading(self, device: _Device, record: dict) -> None:
        device.readings += 1
        device.rate.add(record["received"])
        row = device.rows.setdefault(record["id"], _Row(record))
        row.reading = record
        row.count += 1

    def table(self, now: float, height: int) -> Group:
        """Everything that fits on `height` lines, as of the Unix time `now`."""
        names = sorted(self._devices)
        notices = list(self._notices)[-max(0, height - 1 - _HEADS) :] if height > 1 + _HEADS else []
        room = height - len(notices) - 1
        fitting = names[: max(1, room // _HEADS)]
        shares = _shares([len(self._devices[name].rows) for name in fitting], room)
        parts = []
        for name, rows in zip(fitting, shares, strict=True):
            parts += self._device_lines(name, rows, now)
        if not parts:
            news = f": {self.news}" if self.news else ""
            parts = [_one_line(f"nothing received yet{news}", "dim")]
        parts += [_one_line(notice, "yellow") for notice in notices]
        more = len(names) - len(fitting)
        total = self.summary() + f", {self._rate.text(now)}"
        return Group(*parts, _one_line(total + (f" … {more} more devices" if more else ""), "bold"))

    def _device_lines(self, name: str, rows: int, now: float) -> list:
        device = self._devices[name]
        title = _one_line(f"{shown.clean(name)}  ", "bold")
        title.append(device.state, style="green" if device.state == "online" else "red")
        text = f"  {device.readings} readings, {device.rate.text(now)}"
        if device.malformed:
            text += f", {device.malformed} malformed"
        title.append(f"{text}; {device.health}" if device.health else text, style="not bold")
        if not device.rows or rows < 1:
            return [title]
        ids = sorted(device.rows)
        lines = [title, self._rows(name, ids[:rows], now)]
        if len(ids) > rows:
            lines.append(_one_line(f"  … {len(ids) - rows} more", "dim"))
        return lines

    def _rows(self, name: str, ids: list[int], now: float) -> Table:
        device = self._devices[name]
        table = Table(box=None, pad_edge=False, padding=(0, 0, 0, 2), header_style="dim")
        for column in ("id", "name", "value", "unit", "age", "count"):
            right = column not in ("name", "unit")
            table.add_column(column, justify="right" if right else "left", no_wrap=True)
        for tag_id in ids:
            row = device.rows[tag_id]
            table.add_row(
                str(tag_id),
                Text(shown.tag(row.reading)),
                Text(shown.value(row.reading, False, self._decimals(row.reading))),
                Text(shown.unit(row.reading)),
                _age(row.reading, now),
                str(row.count),
            )
        return table

    def _decimals(self, reading: dict) -> int | None:
        tag = self._tags.get(reading["device"], {}).get(reading["id"])
        return tag.decimals if tag else None

    def summary(self) -> str:
        """The totals in one line."""
        devices = len(self._devices)
        return (
            f"{self.readings} readings from {devices} device{'' if devices == 1 else 's'},"
            f" {self.malformed} malformed"
        )

    def line(self, record: dict) -> str:
        """One record in one line."""
        device, kind = shown.clean(record["device"]), record.get("type")
        if kind == "alert":
            name, text = shown.clean(record["name"]), shown.clean(record["text"])
            return f"{shown.when(record['ts'], record['received'])} {device} ALERT {name}: {text}"
        head = f"{shown.clock(record['received'])} {device}"
        if kind is None:
            value = shown.value(record, decimals=self._decimals(record))
            return f"{head} {shown.moment(record['ts'])} {shown.tag(record)} {value}"
        if kind == "malformed":
            topic, reason = shown.clean(record["topic"]), shown.clean(record["reason"])
            return f"{head} MALFORMED on {topic}: {reason} (begins {record['begins']})"
        if kind == "tags":
            return f"{head} announces {len(record['tags'])} tags"
        if kind == "other":
            return f"{head} {record['length']} bytes on {shown.clean(record['topic'])}"
        return f"{head} {_report(kind, record['data'])}"


def _shares(wanted: list[int], room: int) -> list[int]:
    """How many rows each device gets of `room` lines, the smallest wishes first."""
    left = room - _HEADS * len(wanted)
    shares = [0] * len(wanted)
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    for done, n in enumerate(order):
        fair = max(0, left) // (len(order) - done)
        # All rows need no line that says how many more there are.
        shares[n] = wanted[n] if wanted[n] <= fair + 1 else fair
        left -= min(shares[n], fair)
    return shares


def _account(data: dict) -> str:
    """A health message's held and dropped items."""
    items = data.get("items")
    items = items if isinstance(items, dict) else {}
    dropped = items.get("dropped")
    dropped = dropped if isinstance(dropped, dict) else {}
    reasons = {reason: n for reason, n in dropped.items() if isinstance(n, int) and n}
    text = f"held {items.get('held', '?')}, dropped {sum(reasons.values()) if items else '?'}"
    if reasons:
        text += f" ({', '.join(f'{reason} {n}' for reason, n in sorted(reasons.items()))})"
    return shown.clean(text)


def _report(kind: str, data: dict) -> str:
    """A status or health message in words."""
    if kind == "health" and "items" in data:
        return f"health: {_account(data)}"
    return shown.clean(f"{kind} " + " ".join(f"{key}={value}" for key, value in data.items()))


def _one_line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _age(reading: dict, now: float) -> str:
    """How old the value is: since it was read or, where that is not known, since it came."""
    ts = reading["ts"]
    return shown.span(now - (reading["received"] if ts < UNKNOWN_BELOW else ts))
