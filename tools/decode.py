"""`python -m tools decode FILE`: one batch, as it came from the broker, made readable.

FILE holds one payload: 0xF7 or JSON as it is, or as the hex text that people copy from logs and
dumps. `read_payload` tells them apart by the first byte; a 0xF7 byte begins no text.
"""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from tools import shown
from tools._core import batch
from tools.records import Tag, parse_tags, reading_of

_F7 = 0xF7
_OFFSET = re.compile(r"\s*[0-9a-fA-F]{4,16}:\s+")
_DUMP_OFFSET = re.compile(r"\s*[0-9a-fA-F]{4,16}\s")
_NO_TAGS = "(names and types: use --tags FILE, the payload of the device's topic .../tags)"
_SEPARATORS = re.compile(r"0[xX]|[\s:,-]")


def read_payload(data: bytes) -> bytes:
    """The payload in a file's content; ValueError naming the line that is no hex."""
    text = data.strip()
    if not text:
        raise ValueError("empty")
    if data[0] == _F7:
        return data
    if text[:1] in b"[{":
        return text
    lines = text.decode("ascii", "replace").splitlines()
    dump = [line for line in lines if "|" in line]
    return b"".join(_from_hex(line, number) for number, line in enumerate(dump or lines, 1))


def describe(payload: bytes, tags: dict[int, Tag]) -> str:
    """The batch as lines of text; BatchError when it is malformed."""
    groups = batch.decode(payload)
    readings = sum(len(values) for *_, values in groups)
    form = "0xF7" if payload[0] == _F7 else "JSON"
    lines = [
        f"{form} batch, {len(payload)} bytes: {_many(len(groups), 'group')},"
        f" {_many(readings, 'reading')}"
    ]
    for number, (timestamp, device_type, serial, values) in enumerate(groups, 1):
        device = "" if serial is None else f", device type {device_type}, serial {serial}"
        lines += ["", f"group {number}: {shown.moment(timestamp)}{device}"]
        lines += [f"  {'id':>5}  {'name':<16}  {'status':>6}  value"]
        lines += [_row(reading_of(timestamp, value, tags)) for value in values]
    return "\n".join(lines)


def command(
    file: Annotated[str, typer.Argument(help="File with one payload, raw or as hex; - is stdin")],
    tags: Annotated[
        Path | None, typer.Option(help="The device's announcement (JSON of its .../tags topic)")
    ] = None,
) -> None:
    """Decode one batch (0xF7 or JSON; raw, or as hex text) and print it."""
    try:
        known = parse_tags(tags.read_bytes()) if tags else {}
    except (OSError, ValueError) as error:
        detail = "no text" if isinstance(error, UnicodeDecodeError) else error
        why = error.strerror if isinstance(error, OSError) else f"not a tags message: {detail}"
        raise shown.failure("decode", f"{tags}: {why}") from None
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        typer.echo(describe(read_payload(data), known))
        if tags is None:
            typer.echo(_NO_TAGS, err=True)
    except OSError as error:
        raise shown.failure("decode", f"{file}: {error.strerror}") from None
    except (ValueError, batch.BatchError) as error:
        raise shown.failure("decode", f"{file}: malformed: {error}") from None


def _from_hex(line: str, number: int) -> bytes:
    if "|" in line:
        line = _DUMP_OFFSET.sub("", line.split("|")[0], count=1)
    elif _OFFSET.match(line):
        line = _OFFSET.sub("", line, count=1).split("  ")[0]
    digits = _SEPARATORS.sub("", line)
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ValueError(
            f"neither 0xF7, nor JSON, nor hex: line {number} is {shown.clean(line[:40])!r}"
        ) from None


def _row(reading: dict) -> str:
    status = reading.get("status", "ok")
    name = shown.clean(reading["name"] or "")
    if "problem" in reading:
        value = f"({reading['problem']})"
    else:
        value = shown.NO_VALUE if "status" in reading else shown.value(reading)
    return f"  {reading['id']:>5}  {name:<16}  {status:>6}  {value}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
