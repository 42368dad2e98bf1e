"""Backlog: what a running board says about its link and its backlog on its serial console.

The board prints a status line on a period (`log.status_s`). Of it we need two things, wherever
they stand in it, so that its wording is free:

    ... link up|down ... held N ...

Pure: console text in, in pieces of any size; the time passed in, in seconds.
"""

import re
from dataclasses import dataclass

_LINE = re.compile(r"\blink (up|down)\b.*\bheld (\d+)\b", re.IGNORECASE)
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Sample:
    """One status line: when it came, whether the link was up, how many items were held."""

    at: float
    link_up: bool
    held: int


class Backlog:
    """Every sample seen, in order."""

    def __init__(self):
        self.samples: list[Sample] = []
        self._rest = ""

    def feed(self, text: str, at: float) -> None:
        """Take console output that came at the time `at`."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            found = _LINE.search(line)
            if found:
                self.samples.append(Sample(at, found.group(1).lower() == "up", int(found.group(2))))

    def since(self, at: float) -> list[Sample]:
        """The samples that came after `at`."""
        return [sample for sample in self.samples if sample.at > at]

    def most(self, since: float = float("-inf")) -> int:
        """The largest backlog in items, 0 without a sample."""
        return max((sample.held for sample in self.since(since)), default=0)


def sparkline(values: list[int], width: int) -> str:
    """The last `width` values as bars from 0 to the largest of them."""
    shown = values[-width:]
    top = max(shown, default=0) or 1
    return "".join(_BARS[value * (len(_BARS) - 1) // top] for value in shown)
