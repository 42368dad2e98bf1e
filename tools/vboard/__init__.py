"""A virtual board: the MicroPython unix port with a filesystem of its own behind a serial port.

The real mpremote works against it. `make_flash` fills a directory as a deploy does, and
`VirtualBoard` is the board that has it for its flash. Linux only: a Ctrl-C looks into /proc.
"""

from tools.vboard.board import VirtualBoard, VirtualBoardError
from tools.vboard.flash import make_flash

__all__ = ["VirtualBoard", "VirtualBoardError", "make_flash"]
