"""What `python -m tools size` shows a person: one table, the encodings side by side.

`view` gives what rich can print; it reads nothing and prints nothing.
"""

from collections.abc import Callable

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tools import shown
from tools.size_answer import ASSUMPTIONS
from tools.traffic import MEGABYTE

_NAMES = {"f7": "0xF7", "json": "JSON"}

# The sections of the table; a row is what it is called, and how it is read off an answer.
_Row = tuple[str, Callable[[dict], str]]
_LINK_DOWN: tuple[_Row, ...] = (
    ("[b]retention[/]", lambda a: shown.duration(a["retention_s"], 4)),
    ("readings held", lambda a: f"{a['readings']:,}"),
    ("scans held", lambda a: f"{a['scans']:,}"),
    ("readings a page", lambda a: f"{a['readings_per_page']:.1f}"),
    ("headers", lambda a: _share(a, "message headers", "batch headers", "group headers")),
    ("left empty", lambda a: _share(a, "left empty")),
)
_SEED: tuple[_Row, ...] = (
    ("its simple division", lambda a: shown.duration(a["seed"]["retention_s"], 4)),
    ("millpond against it", lambda a: f"{a['seed']['difference_percent']:+.1f} %"),
    (
        "its own case (200 tags, 60 s, 2 MB)",
        lambda a: f"~{a['seed']['its_case_h']} h",
    ),
)
_MONTH: tuple[_Row, ...] = (
    ("messages", lambda a: f"{a['month']['messages']:,.0f}"),
    ("[b]bytes on the wire[/]", lambda a: _megabytes(a, "total")),
    ("  batches", lambda a: _megabytes(a, "batches")),
    ("  MQTT", lambda a: _megabytes(a, "mqtt")),
    ("  TCP/IP", lambda a: _megabytes(a, "tcp_ip")),
    ("  pings", lambda a: _megabytes(a, "pings")),
)


def view(answers: list[dict]) -> Group:
    """The answers, the asked-for one first, and in words what they rest on."""
    asked = answers[0]
    lines = [Text(f"{_NAMES[a['encoding']]}: {a['seed']['why']}") for a in answers]
    lines += [Text(note, style="yellow") for note in asked["notes"]]
    lines += [Text(line, style="dim") for line in ASSUMPTIONS]
    return Group(_headline(asked), _table(answers), *(Padding(_bullet(line), 0) for line in lines))


def _headline(asked: dict) -> Text:
    text = Text()
    text.append(f"{asked['tags']:,} tags every {shown.duration(asked['period_s'])}", style="bold")
    text.append(f", {asked['kind']}, as {_NAMES[asked['encoding']]}")
    text.append(f" in {shown.size(asked['buffer_bytes'])}: ")
    text.append(shown.duration(asked["retention_s"]), style="bold green")
    text.append(" of outage without a loss")
    return text


def _table(answers: list[dict]) -> Table:
    asked = answers[0]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for number, a in enumerate(answers):
        name = _NAMES[a["encoding"]]
        table.add_column(name, justify="right", style="" if number else "green")
    pages = f"{asked['pages']:,} pages of {asked['page_bytes']:,} bytes"
    _section(table, answers, f"link down: {pages}", _LINK_DOWN)
    if asked["drain_s"] is not None:
        table.add_row("then sent in", *(shown.duration(a["drain_s"]) for a in answers))
    _section(table, answers, "seed 004's figures", _SEED)
    _section(table, answers, f"link up: {asked['month']['days']} days", _MONTH)
    for link, price in asked["month"]["prices"].items():
        table.add_row(
            f"[b]{link}[/] at ${price['dollars_per_mb']:.3g}/MB",
            *(_dollars(a, link, "dollars") for a in answers),
        )
        table.add_row(
            "  by seed 004's bytes", *(_dollars(a, link, "seed_dollars") for a in answers)
        )
    return table


def _section(table: Table, answers: list[dict], title: str, rows: tuple[_Row, ...]) -> None:
    table.add_section()
    table.add_row(f"[dim]{title}[/]")
    for name, read in rows:
        table.add_row(name, *map(read, answers))


def _share(a: dict, *parts: str) -> str:
    return f"{100 * sum(a['bytes'][part] for part in parts) / a['buffer_bytes']:.2f} %"


def _megabytes(a: dict, part: str) -> str:
    return f"{a['month']['bytes'][part] / MEGABYTE:,.1f} MB"


def _dollars(a: dict, link: str, name: str) -> str:
    return f"${a['month']['prices'][link][name]:,.2f}"


def _bullet(line: Text) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", line)
    return grid
