"""A virtual board: the MicroPython unix port with a filesystem of its own behind a serial port.

The real mpremote works against it. `VirtualBoard` is the board; `command` is `vboard` on the
command line. Linux only: a Ctrl-C looks into /proc.
"""

from tools.vboard.board import VirtualBoard, VirtualBoardError

__all__ = ["VirtualBoard", "VirtualBoardError"]
