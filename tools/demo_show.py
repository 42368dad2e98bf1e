"""How the demonstration is shown: its steps as they happen, and the table at the end.

On a terminal a step is a line with a spinner that changes as things happen and becomes a line
that stays when the step is done. Elsewhere every change is a line, at most one a second.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tools.audit import Verdict

_NOTE_EVERY_S = 1.0


@dataclass(frozen=True)
class Drained:
    """What came after an outage, from the first message to the last of those that had waited.

    `held`: how many items waited when the board last said so; the others were taken in since.
    """

    items: int
    messages: int
    seconds: float
    held: int

    def what(self) -> str:
        """The items, for the step."""
        held = min(self.held, self.items)
        return f"{held} held + {self.items - held} new items in {self._ms()}"

    def how(self) -> str:
        """The way they came, for the table."""
        return f"in {self.messages} messages (batches, alerts), {self._ms()}"

    def _ms(self) -> str:
        return f"{self.seconds * 1000:.0f} ms"


class Step:
    """One step on its way. `number` and `title` name it where it fails."""

    def __init__(self, show: "Show", number: int, title: str):
        self.number = number
        self.title = title
        self._show = show
        self._noted = time.monotonic()
        self._note = ""
        self._result = ""

    def note(self, text: str) -> None:
        """What is to be seen now."""
        changed, self._note = text != self._note, text
        if self._show.status is not None:
            self._show.status.update(Text(self.line(text)))
        elif changed and time.monotonic() - self._noted >= _NOTE_EVERY_S:
            self._noted = time.monotonic()
            self._show.print(f"          {text}")

    def result(self, text: str) -> None:
        """What the step came to, which stays with it."""
        self._result = text

    def line(self, text: str = "") -> str:
        """The step as one line, with `text` or its result."""
        head = f"{self.number}/{self._show.steps} {self.title}"
        return ": ".join(filter(None, (head, text or self._result)))


class Show:
    """Writes to `console`, with the time since it was made in front of every step."""

    def __init__(self, console: Console, steps: int):
        self.steps = steps
        self.status = None
        self.current: Step | None = None
        self._console = console
        self._began = time.monotonic()
        self._number = 0

    def print(self, text: str, style: str = "") -> None:
        """A line that stays."""
        self._console.print(Text(text, style), soft_wrap=True)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """A step while the block runs; where it raises, `current` stays to tell which it was."""
        self._number += 1
        self.current = step = Step(self, self._number, title)
        if self._console.is_terminal:
            with self._console.status(Text(step.line())) as self.status:
                try:
                    yield step
                finally:
                    self.status = None
        else:
            yield step
        self.print(f"{self._elapsed()} ✓ {step.line()}", "green")

    def failed(self, what: str, look_at: list[str]) -> None:
        """Say which step failed, why, and where to look."""
        where = f"at step {self.current.line()}" if self.current else "before the first step"
        self.print(f"{self._elapsed()} ✗ FAILED {where}", "bold red")
        self.print(f"          {what}", "red")
        for path in look_at:
            self.print(f"          look at {path}")

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began:6.1f} s"

    def stopped(self) -> None:
        """Say that a person ended it."""
        self.print("demo stopped", "yellow")

    def table(
        self, verdict: Verdict, outages: list[float], backlog: int, drained: Drained | None
    ) -> None:
        """The account at the end."""
        table = Table(title="Every item accounted for" if verdict.passed else "NOT accounted for")
        table.add_column("items")
        table.add_column("", justify="right")
        table.add_column("", style="dim")
        table.add_row("produced", str(verdict.produced), "readings, alerts, health messages")
        table.add_row("delivered", str(verdict.delivered), "each counted once")
        table.add_row(
            "duplicates", str(verdict.duplicates), "came twice: its acknowledgement was lost"
        )
        table.add_row("dropped", str(sum(verdict.dropped.values())))
        for reason, number in verdict.dropped.items():
            table.add_row(f"  {reason}", str(number))
        table.add_row("still held", str(verdict.held))
        table.add_row("lost", str(verdict.lost), style="" if verdict.lost == 0 else "bold red")
        table.add_row("order kept", "yes" if verdict.in_order else "NO")
        table.add_section()
        table.add_row("link cut", " + ".join(f"{outage:.1f} s" for outage in outages))
        table.add_row("largest backlog", str(backlog), "as the board said, once a second")
        if drained:
            table.add_row("largest drain", str(drained.items), drained.how())
        self._console.print(table)
