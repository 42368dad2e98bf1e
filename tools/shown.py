"""How times, values, failures and what a device calls things are shown to a person."""

from datetime import UTC, datetime

import typer

from tools._core import UNKNOWN_BELOW

NO_VALUE = "-"
_PURE_NUMBER = "1"
_MANY = 1e15  # from here on decimals mean nothing to a double


def clean(text) -> str:
    """Text from outside, fit for a terminal: what is not printable becomes a question mark."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))


def failure(command: str, line: str) -> typer.Exit:
    """Says on the error stream why `command` failed; what is to be raised then."""
    typer.echo(f"{command}: {line}", err=True)
    return typer.Exit(1)


def moment(ts: float) -> str:
    """A reading's timestamp: ISO 8601 in UTC, or how long after the device's start."""
    if ts < UNKNOWN_BELOW:
        return f"start+{ts:.0f}s"
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(unix: float) -> str:
    """The time of day here, of a Unix time."""
    return datetime.fromtimestamp(unix).strftime("%H:%M:%S")


def span(seconds: float) -> str:
    """How long ago, as it is read in passing: 0.4 s, 12 s, 5 min, 3 h, 2 d."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    for unit, size, below in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172800)):
        if seconds < below:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def when(ts: float, received: float) -> str:
    """The time of day here of what was sent with `ts`, or else when it came; with the date where
    that is another day."""
    if ts < UNKNOWN_BELOW:
        return clock(received)
    local = datetime.fromtimestamp(ts)
    same_day = local.date() == datetime.fromtimestamp(received).date()
    return local.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S")


def unit(reading: dict) -> str:
    """A reading's unit; nothing for a pure number, whose unit is 1."""
    text = clean(reading.get("unit") or "")
    return "" if text == _PURE_NUMBER else text


_DURATIONS = (
    ("s", 1, 120),
    ("min", 60, 7200),
    ("h", 3600, 3 * 86400),
    ("d", 86400, 730 * 86400),
    ("y", 31557600, float("inf")),
)


def duration(seconds: float, digits: int = 3) -> str:
    """How long, as a figure to calculate with: 45 s, 33.5 min, 19.1 h, 12.5 d, 3.2 y."""
    unit, size = next((unit, size) for unit, size, below in _DURATIONS if seconds < below)
    number = seconds / size
    return f"{number:.{digits}g} {unit}" if number < 999 else f"{number:,.0f} {unit}"


def size(count: int) -> str:
    """A number of bytes as memory is sold: 96 B, 4 KB (1,024 bytes each), 2.5 MB."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} B"


def value(reading: dict, with_unit: bool = True, decimals: int | None = None) -> str:
    """A reading's value, a float with so many decimals, or why it has none."""
    if "status" in reading:
        return f"status {reading['status']}"
    if "raw" in reading:
        return f"raw {reading['raw']}"
    shown = _one(reading["value"], decimals)
    return f"{shown} {unit(reading)}".rstrip() if with_unit else shown


def tag(reading: dict) -> str:
    """A reading's name, or the number of a tag that was not announced."""
    return clean(reading["name"]) if reading["name"] is not None else f"tag {reading['id']}"


def _one(value, decimals: int | None) -> str:
    if value is None:
        return NO_VALUE
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return "[" + ", ".join(_one(one, decimals) for one in value) + "]"
    if not isinstance(value, float):
        return str(value)
    if decimals is None or abs(value) >= _MANY:
        return f"{value:g}"
    return f"{value:.{decimals}f}"
