"""What a person sees of a board's console: all but what tools say to it in its raw REPL.

Pure: console text in, in pieces of any size, and what is to be shown out. Two states, shown and
hidden. Hidden begins with the raw REPL's greeting, which becomes one line, and ends with a line
that a person is meant for: the friendly REPL's greeting, a reset, or the program's start.
"""

import re

_GREETING = "raw REPL; CTRL-B to exit"
_ENDS = re.compile(r"[>OK]*(MicroPython \S+ on .*|rst: (power on|reset|watchdog)|millpond runs.*)$")
_RUNS = "millpond runs;"
_BUT = " - there, by make repl; here Ctrl-C switches it off"
_INSTEAD = "(a tool is at the board's raw REPL)"


class Foreground:
    """Feed it console text; it gives what to show. `style` is what its own line looks like."""

    def __init__(self, style=lambda text: text):
        self._instead = style(_INSTEAD) + "\n"
        self._hidden = False
        self._line = ""  # what there is of the line that is not over
        self._shown = 0  # so much of it has been shown

    def feed(self, text: str) -> str:
        """What to show now that this has come."""
        *lines, last = (self._line + text.replace("\r", "").replace("\x04", "")).split("\n")
        out = "".join(map(self._over, lines))
        self._line = last
        if self._hidden or (last and _GREETING.startswith(last)):
            return out
        out += last[self._shown :]
        self._shown = len(last)
        return out

    def _over(self, line: str) -> str:
        """What to show of a line that is over."""
        shown, self._shown = self._shown, 0
        if self._hidden:
            end = _ENDS.match(line)
            self._hidden = end is None
            return _with_note(end[1]) if end else ""
        if line == _GREETING:
            self._hidden = True
            return self._instead
        return line[shown:] + _with_note(line)[len(line) :]


def _with_note(line: str) -> str:
    """The line, and where the keys that it names are for a person who is not at its REPL."""
    return line + (_BUT if line.startswith(_RUNS) else "") + "\n"
