"""`python -m tools size`: how long a buffer lasts, and what a month of its readings costs.

The calculation is in `tools.sizing` (retention) and `tools.traffic` (a month on the wire), what is
shown in `tools.size_view` and `tools.size_chart`; here is what a person types. Memory comes in
units of 1,024; a megabyte that is paid for has 1,000,000 bytes.
"""

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tools import seed_figures, shown, sizing
from tools.size_answer import ASSUMPTIONS, answer
from tools.size_view import view
from tools.sizing import Plan

_NUMBER = r"([0-9]{1,20}(?:\.[0-9]{1,20})?)"
_SIZE = re.compile(_NUMBER + r" ?(?:([kmg])i?)?b?", re.IGNORECASE)
_PRICE = re.compile(r"\$?" + _NUMBER + r"(?: ?/ ?MB)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}
_FLAGS = {"false": 0, "true": 1}
_PLAN = Plan()


def parse_size(name: str, text: str) -> int:
    """Bytes of "2MB", "512K", "1.5GiB" or "4096", in units of 1,024.

    ValueError for anything else, with the `name` of what was to be given.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{name} {text!r}: a size expected, such as 4096, 512K, 2MB or 1GiB")
    size = Fraction(match[1]) * 1024 ** _POWERS[(match[2] or "").lower()]
    if size.denominator != 1:
        raise ValueError(
            f"{name} {text!r}: {float(size):g} bytes, a whole number of bytes expected"
        )
    return int(size)


def parse_price(name: str, text: str) -> float:
    """Dollars a megabyte, of "0.19", "$0.19" or "0.19/MB"; ValueError for anything else."""
    match = _PRICE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{name} {text!r}: dollars a megabyte expected, such as 0.19 or 0.19/MB")
    return float(match[1])


def parse_value(kind: str, text: str) -> float | None:
    """A typical value of a kind; None for an empty text; ValueError for what is no number."""
    if not text:
        return None
    try:
        value = float(text) if kind == "float32" else int(_FLAGS.get(text, text))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"value {text!r}: a number expected for {kind}")
    return value


def parse_period(seconds: float) -> int:
    """Whole milliseconds of a period; ValueError when there is a rest."""
    if not math.isfinite(seconds) or abs(seconds * 1000 - round(seconds * 1000)) > 1e-6:
        raise ValueError(f"period {seconds:g} s: whole milliseconds expected")
    return round(seconds * 1000)


def command(
    tags: Annotated[int, typer.Option(help="Tags, each read once a period")] = _PLAN.tags,
    period: Annotated[float, typer.Option(help="Period of a tag's readings, s")] = 60,
    buffer: Annotated[str, typer.Option(help="Buffer (ring.bytes): 2MB, 512K, ...")] = "2MB",
    encoding: Annotated[str, typer.Option(help="Form of the readings: f7, json")] = "f7",
    page: Annotated[str, typer.Option(help="Page (ring.page_bytes): 2048, 8K, ...")] = str(
        sizing.DEFAULTS["ring.page_bytes"]
    ),
    kind: Annotated[
        str, typer.Option(help="Kind of the readings: float32, int16, ...")
    ] = "float32",
    value: Annotated[
        str, typer.Option(help="A typical value, for its digits in JSON [default: 23.7, or widest]")
    ] = "",
    max_readings: Annotated[
        int, typer.Option(help="Readings in a batch, link up (batch.max_readings)")
    ] = _PLAN.max_readings,
    max_age_ms: Annotated[
        int, typer.Option(help="Longest wait of a batch, link up (batch.max_age_ms)")
    ] = _PLAN.max_age_ms,
    rtt: Annotated[float, typer.Option(help="Round trip, ms; how long a backlog takes")] = 0,
    rate: Annotated[float, typer.Option(help="Uplink, kbit/s; how long a backlog takes")] = 0,
    price_cellular: Annotated[str, typer.Option(help="Dollars a megabyte: 0.19, 0.19/MB")] = "",
    price_satellite: Annotated[str, typer.Option(help="Dollars a megabyte")] = "",
    png: Annotated[Path | None, typer.Option(help="Draw retention against size here")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The answer as JSON")] = False,
) -> None:
    """How long an outage a buffer bridges, and what a month of its readings costs."""
    try:
        plan = Plan(
            tags=tags,
            period_ms=parse_period(period),
            buffer=parse_size("buffer", buffer),
            encoding=encoding,
            page=parse_size("page", page),
            kind=kind,
            value=parse_value(kind, value),
            max_readings=max_readings,
            max_age_ms=max_age_ms,
        )
        _check_buffer(plan.buffer)
        _check_png(png)
        prices = _prices(cellular=price_cellular, satellite=price_satellite)
        line = (_not_negative("rtt", rtt), _not_negative("rate", rate))
        if png:
            _draw(plan, png)
    except (ValueError, TypeError) as error:
        raise shown.failure("size", str(error)) from None
    except OSError as error:
        raise shown.failure("size", f"{png}: {error.strerror}") from None
    if as_json:
        found = answer(plan, prices, *line) | {"assumptions": ASSUMPTIONS}
        typer.echo(json.dumps(found, indent=2))
        return
    answers = [answer(each, prices, *line) for each in sizing.side_by_side(plan)]
    Console().print(view(answers))
    if png:
        typer.echo(f"drawn: {png}")


def _check_buffer(size: int) -> None:
    """ValueError for more than a board's configuration takes."""
    most = sizing.LIMITS["ring.bytes"][1]
    if size > most:
        raise ValueError(f"buffer {size}: ring.bytes of a board ends at {most} (4 MB)")


def _check_png(path: Path | None) -> None:
    if path and path.suffix.lower() != ".png":
        raise ValueError(f"png {str(path)!r}: a name that ends in .png expected")


def _prices(**given: str) -> dict[str, float]:
    return {
        link: parse_price(f"price of {link}", given[link]) if given[link] else price
        for link, price in seed_figures.PRICES.items()
    }


def _not_negative(name: str, number: float) -> float:
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} {number:g}: 0 or more expected")
    return number


def _draw(plan: Plan, path: Path) -> None:
    # Imported here, for it takes a second that no other use of the command should wait for.
    from tools.size_chart import draw

    draw(plan, path)
