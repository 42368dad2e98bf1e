"""Log: one line an event on the serial console, with seconds since the start and a level.

Lines go to `print`, which on a board is the serial port; what they hold may come from outside, so
nothing in them is for the terminal to obey, and none can pretend to be two. The last
error stays for the status page.
"""

import sys

from firmware.settings import printable

LEVELS = ("error", "warning", "info", "debug")


def in_seconds(ms):
    """A duration in words: "0.5 s", "1.2 s", "24 s"."""
    return ("{:.2g} s" if ms < 9950 else "{:.0f} s").format(ms / 1000)


class Log:
    """Prints events up to `level`, one of LEVELS."""

    def __init__(self, level, clock):
        self.set_level(level)
        self._clock = clock
        self.last_error = ""

    def set_level(self, level):
        """Print events up to `level` from now on."""
        self._level = LEVELS.index(level)

    def error(self, text):
        """Something failed; the text stays as `last_error`."""
        self.last_error = text
        self._line(0, text)

    def warning(self, text):
        """Something is not as it should be, and the program goes on."""
        self._line(1, text)

    def info(self, text):
        """Something worth knowing happened."""
        self._line(2, text)

    def debug(self, text):
        """What a developer wants to see."""
        self._line(3, text)

    def exception(self, text, error):
        """An error with its traceback."""
        self.error("{}: {}: {}".format(text, type(error).__name__, error))
        sys.print_exception(error)

    def _line(self, level, text):
        if level <= self._level:
            text = printable(text)
            print("[{:6d}] {} {}".format(self._clock.seconds, LEVELS[level].upper(), text))
