"""`python -m tools listen`: subscribe to every device below a prefix and show what they send.

On a terminal a live table, else a line for each record; with --jsonl also JSON lines, one for
each record (see tools.records). The connection's own news goes to stderr.
"""

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from tools import shown
from tools.listen_view import View
from tools.records import Decoder
from tools.subscriber import (
    CaOption,
    InsecureOption,
    Refused,
    Subscriber,
    TlsOption,
    tls_context,
)

_TICK_S = 0.25
_STDOUT = "-"


class _Lines:
    """Shows a line for each record, and the totals at the end."""

    def __init__(self, view: View, quiet: bool):
        self._view = view
        self._quiet = quiet

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def show(self, records: list[dict]) -> None:
        for record in records:
            self._view.add(record)
            if not self._quiet:
                print(self._view.line(record), flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.say(self._view.summary())


class _Screen:
    """Shows a live table that fits the screen, drawn again at most every _TICK_S seconds.

    What it showed last stays, with the totals.
    """

    def __init__(self, view: View, console: Console):
        self._view = view
        view.news = "connecting"
        self._live = Live(
            get_renderable=lambda: view.table(time.time(), console.height - 1),
            console=console,
            auto_refresh=False,
        )
        self._drawn = 0.0

    def __enter__(self):
        self._live.start()
        return self

    def __exit__(self, *_exc):
        self._live.refresh()
        self._live.stop()

    def say(self, text: str) -> None:
        self._view.news = text
        self._live.console.print(text, markup=False, highlight=False)

    def show(self, records: list[dict]) -> None:
        for record in records:
            self._view.add(record)
        if time.monotonic() - self._drawn >= _TICK_S:
            self._drawn = time.monotonic()
            self._live.refresh()


def command(
    host: Annotated[str, typer.Option(help="Broker: name or address")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Broker: TCP port")] = 1883,
    prefix: Annotated[str, typer.Option(help="First level of every topic")] = "millpond",
    user: Annotated[str, typer.Option(help="User at the broker")] = "",
    password: Annotated[
        str, typer.Option(help="Password at the broker", envvar="MILLPOND_PASSWORD")
    ] = "",
    ca: CaOption = "",
    tls: TlsOption = False,
    insecure: InsecureOption = False,
    jsonl: Annotated[
        str, typer.Option(help="Append records as JSON lines to this file; - is stdout")
    ] = "",
    count: Annotated[int, typer.Option(min=0, help="End after so many readings; 0 = never")] = 0,
    seconds: Annotated[float, typer.Option(min=0, help="End after so long; 0 = never")] = 0,
) -> None:
    """Subscribe to all devices, decode and show what they send (Ctrl-C ends it).

    Exit code 1 when the broker refuses, when --seconds pass without a connection, or with fewer
    readings than --count.
    """
    console = Console()
    decoder = Decoder(prefix)
    view = View(decoder.tags)
    on_screen = console.is_terminal and jsonl != _STDOUT
    out = _Screen(view, console) if on_screen else _Lines(view, quiet=jsonl == _STDOUT)
    try:
        context = tls_context(ca, tls, insecure)
        subscriber = Subscriber(
            host, port, [_topic(prefix)], user, password, say=out.say, tls=context
        )
    except ValueError as error:
        raise shown.failure("listen", str(error)) from None
    with contextlib.ExitStack() as stack:
        file = _open(jsonl, stack)
        stack.enter_context(out)
        stack.enter_context(subscriber)
        problem = _run(subscriber, decoder, view, out, file, count, seconds)
    if problem:
        raise shown.failure("listen", problem)


def _topic(prefix: str) -> str:
    """The filter for all that is below `prefix`; ValueError where there can be none."""
    if not prefix.isprintable() or not prefix or set(prefix) & set("+#"):
        raise ValueError(f"prefix {prefix!r}: printable text without + and # expected")
    return f"{prefix}/+/#"


def _open(jsonl: str, stack: contextlib.ExitStack):
    if not jsonl:
        return None
    if jsonl == _STDOUT:
        return sys.stdout
    try:
        return stack.enter_context(Path(jsonl).open("a", encoding="utf-8"))
    except OSError as error:
        raise shown.failure("listen", f"{jsonl}: {error.strerror}") from None


def _run(subscriber, decoder, view, out, file, count, seconds) -> str:
    """Show messages until it is time to end; what went wrong, or an empty text."""
    ends = time.monotonic() + seconds if seconds else float("inf")
    try:
        for message in subscriber.messages(_TICK_S):
            records = decoder.feed(*message[:3]) if message else []
            out.show(records)
            if file:
                file.writelines(json.dumps(record) + "\n" for record in records)
                file.flush()
            if count and view.readings >= count:
                return ""
            if time.monotonic() >= ends:
                break
    except KeyboardInterrupt:
        return ""
    except Refused as refused:
        return str(refused)
    if not subscriber.subscribed.is_set():
        return f"no connection to {subscriber.where} in {seconds:g} s"
    return f"{view.readings} readings in {seconds:g} s, {count} expected" if count else ""
