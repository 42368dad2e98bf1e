"""`python -m tools config-table`: the configuration's table as README.md and the example have it.

Both come from `firmware.config.TABLE`. In README.md the table stands between two markers, and only
what is between them is replaced.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from firmware import config

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
EXAMPLE = ROOT / "config.example.json"
BEGIN = "<!-- config-table:begin -->"
END = "<!-- config-table:end -->"

# What is put behind the meaning of a key that a command may change.
_SETTABLE = " †"

# What the example says for a key that has no default.
_EXAMPLE_VALUES = {"mqtt.host": "192.0.2.10"}  # an address that nobody has (RFC 5737)


def markdown() -> str:
    """The README's table: one row a key."""
    lines = ["| key | default | value | meaning |", "| --- | --- | --- | --- |"]
    for row in config.TABLE:
        key, default, help_line = row[0], row[1], row[4]
        help_line += _SETTABLE if key in config.SETTABLE else ""
        shown = "*must be given*" if default is None else f"`{json.dumps(default)}`"
        cells = (f"`{key}`", shown, config.expected(row), help_line)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def example() -> str:
    """The text of config.example.json: every key with its default."""
    sections: dict[str, dict] = {}
    for key, default, *_ in config.TABLE:
        section, name = key.split(".")
        value = _EXAMPLE_VALUES[key] if default is None else default
        sections.setdefault(section, {})[name] = value
    return json.dumps(sections, indent=2) + "\n"


def table_in(readme: str) -> str:
    """What stands between the markers; ValueError unless each is there once, in order."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1:
        raise ValueError(f"README.md: one line {BEGIN} and one line {END} expected")
    before, _, rest = readme.partition(BEGIN)
    if END in before:
        raise ValueError(f"README.md: {BEGIN} expected before {END}")
    return rest.partition(END)[0].strip("\n")


def with_table(readme: str) -> str:
    """The README with today's table between its markers."""
    table_in(readme)
    before, _, rest = readme.partition(BEGIN)
    return f"{before}{BEGIN}\n{markdown()}\n{END}{rest.partition(END)[2]}"


def write() -> None:
    """Bring README.md and config.example.json up to date."""
    readme = with_table(README.read_text(encoding="utf-8"))
    EXAMPLE.write_text(example(), encoding="utf-8")
    README.write_text(readme, encoding="utf-8")


def command(
    to_files: Annotated[
        bool, typer.Option("--write", help="Bring README.md and config.example.json up to date")
    ] = False,
) -> None:
    """Print the configuration's table and the example, or write them where they belong."""
    if not to_files:
        typer.echo(f"{markdown()}\n\n{example()}", nl=False)
        return
    try:
        write()
    except (OSError, ValueError) as error:
        typer.echo(f"config-table: {error}", err=True)
        raise typer.Exit(1) from error
