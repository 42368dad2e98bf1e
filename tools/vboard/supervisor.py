"""What surrounds MicroPython on a virtual board: reset, watchdog, and the console's two ends.

    client ── pty ── SerialPort ── Supervisor ── uart (a Line) ── MicroPython
                                        └─────── wire (a Line) ── its stand-ins

The console's inner side is a socket pair and no terminal: MicroPython then never flushes what was
typed ahead, and Ctrl-C is ours to turn into an interrupt.

The gate for what clients send is shut until the board's own code runs, and after a soft reset out
of the raw REPL until the new raw REPL has its prompt: MicroPython starts in the friendly one, so
we type Ctrl-A for it and hide what it says to that. Ctrl-C passes beside the gate whenever the
running code wants to be interrupted by it.

A reset ends the process and starts the next. Soft: the process ended at the REPL, or asks; what
clients sent is kept and the watchdog runs on. Hard: asked for, or the watchdog bites, or
MicroPython crashed.
"""

import os
import queue
import re
import select
import threading
import time
from pathlib import Path

from tools.vboard.console_log import ConsoleLog
from tools.vboard.lines import Line
from tools.vboard.process import Process
from tools.vboard.serial_port import FULL, SerialPort

PWRON_RESET, HARD_RESET, WDT_RESET, SOFT_RESET = 1, 2, 3, 5
CAUSES = {PWRON_RESET: "power on", HARD_RESET: "reset", WDT_RESET: "watchdog"}

_PROMPT = b">>> "
_RAW_PROMPT = b"raw REPL; CTRL-B to exit\r\n>"
_RAW_ENDINGS = (b"OK\r\n", b"\x04\x04")
_LONE_NEWLINE = re.compile(rb"(?<!\r)\n")
_STARTS = 3
_POLL_S = 0.002
_TYPED_AHEAD = 1 << 20


class VirtualBoardError(Exception):
    """The board cannot run, with what MicroPython said."""


class Supervisor:
    """Runs in one thread, `run`; others reach it through `post`."""

    def __init__(self, root: Path, heap: str, flash_bytes: int):
        self._root = root
        self._heap = heap
        self._flash_bytes = flash_bytes
        self.log = ConsoleLog()
        self.serial = SerialPort()
        self.ready = threading.Event()
        self.failure = ""
        self.boots = 0
        self._uart = Line()
        self._wire = Line()
        self._orders: queue.SimpleQueue = queue.SimpleQueue()
        self._bell_read, self._bell = os.pipe()
        self._bell_lock = threading.Lock()
        self._wifi = b"W"
        self._failed_starts = 0
        self._clear()

    def run(self) -> None:
        """The thread's work, until `post(None)` or until MicroPython cannot be started."""
        try:
            self._hard_reset(PWRON_RESET)
            while self._step():
                pass
        except (VirtualBoardError, OSError) as error:
            self.failure = str(error)
        finally:
            self._end_process()
            self.log.close(self.failure or "the board is off")
            self._close()
            self.ready.set()

    def pid(self) -> int:
        """MicroPython's process id, 0 between two runs."""
        process = self._process
        return process.pid if process else 0

    def post(self, call) -> None:
        """Have `call()` done by the thread; None ends it. Ignored when the thread has ended."""
        with self._bell_lock:
            if self._bell is not None:
                self._orders.put(call)
                os.write(self._bell, b".")

    def _close(self) -> None:
        for end in (self.serial, self._uart, self._wire):
            end.close()
        with self._bell_lock:
            os.close(self._bell_read)
            os.close(self._bell)
            self._bell = None

    def set_wifi(self, code: bytes) -> None:
        """Tell the stand-in for `network` its new state (see inside/wire.py)."""
        self._wifi = code
        self._wire.write(code)

    def from_client(self, data: bytes) -> None:
        """Pass on what a client sent."""
        for piece in re.split(b"(\x03)", data):
            if piece == b"\x03" and self._alive and self._process.interrupt():
                continue
            if self._open:
                self._uart.write(piece)
            elif len(self._held) < _TYPED_AHEAD:
                self._held += piece

    def hard_reset(self, cause: int = HARD_RESET) -> None:
        """Reset as the reset button does."""
        self._end_process()
        self._hard_reset(cause)

    # One turn of the loop.

    def _step(self) -> bool:
        reading = [self._bell_read, self.serial, self._wire, self._process]
        if self.serial.pending() < FULL:
            reading.append(self._uart)
        writing = [self._uart] if self._uart.waiting() else []
        readable, _, _ = select.select(reading, writing, [], self._patience())
        self._uart.write()
        self.serial.flush()
        self._from_wire()
        if self._uart in readable:
            self._from_board(self._uart.read(FULL))
            if not self._alive and self._tail == _PROMPT:
                raise VirtualBoardError("MicroPython cannot run the board's code")
        if self.serial in readable:
            self.from_client(self.serial.read())
        if self._process in readable:
            self._process_ended()
        elif self._wdt_left() == 0:
            self.hard_reset(WDT_RESET)
        return self._bell_read not in readable or self._obey()

    def _patience(self) -> float | None:
        """Seconds until something must be looked at; None for never."""
        moments = [_POLL_S] if self.serial.pending() else []
        if self._wdt_ms:
            moments.append(self._wdt_left())
        return min(moments, default=None)

    def _wdt_left(self) -> float | None:
        if not self._wdt_ms:
            return None
        return max(0.0, self._fed + self._wdt_ms / 1000 - time.monotonic())

    def _obey(self) -> bool:
        for _ in os.read(self._bell_read, 4096):
            call = self._orders.get()
            if call is None:
                return False
            call()
        return True

    # What MicroPython says.

    def _from_board(self, data: bytes) -> None:
        if data:
            self._tail = (self._tail + data)[-4:]
            self._show(data)

    def _show(self, data: bytes) -> None:
        """Put output on the console, with the line ends of a board's."""
        if self._hidden is not None:
            self._hidden += data
            at = self._hidden.find(_RAW_PROMPT)
            if at < 0:
                return
            data = bytes(self._hidden[at:])
            self._hidden = None
            self._open_gate()
        if self._after_return and data.startswith(b"\n"):
            text = b"\n" + _LONE_NEWLINE.sub(b"\r\n", data[1:])
        else:
            text = _LONE_NEWLINE.sub(b"\r\n", data)
        self._after_return = text.endswith(b"\r")
        self.serial.write(text)
        self.log.write(text)

    def _from_wire(self) -> None:
        lines = (self._wire_text + self._wire.read()).split(b"\n")
        self._wire_text = lines.pop()
        for line in lines:
            word, _, number = line.decode().partition(" ")
            if word == "feed":
                self._fed = time.monotonic()
            elif word == "wdt":
                self._fed = time.monotonic()
                self._wdt_ms = int(number)
            elif word == "hello":
                self._hello()
            elif word == "booted":
                self._enter_raw_repl()
            elif word == "soft":
                self._end_process()
                return self._soft_reset(raw=False)
            elif word == "reset":
                return self.hard_reset()
        return None

    def _hello(self) -> None:
        self._alive = True
        self._failed_starts = 0
        self.ready.set()
        if not self._raw:
            self._open_gate()

    def _open_gate(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        self._open = True
        self.from_client(held)

    def _enter_raw_repl(self) -> None:
        """boot.py is done and MicroPython waits: have it show its raw REPL, and nothing else."""
        self._from_board(self._uart.read())
        self._held[:0] = self._uart.unread()
        self._hidden = bytearray()
        self._uart.write(b"\x01")
        self._wire.write(b"g")

    # Resets.

    def _clear(self) -> None:
        """All that a hard reset forgets."""
        self._process: Process | None = None
        self._alive = self._open = self._raw = self._after_return = False
        self._hidden: bytearray | None = None
        self._held = bytearray()
        self._tail = b""
        self._wire_text = b""
        self._wdt_ms = 0
        self._fed = 0.0

    def _end_process(self) -> int:
        """End MicroPython and take its last words; its exit code."""
        if not self._process:
            return 0
        code = self._process.end()
        self._process = None
        self._from_board(self._uart.read())
        return code

    def _process_ended(self) -> None:
        started = self._alive
        code = self._end_process()
        if not started:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise VirtualBoardError("MicroPython does not start")
        if code < 0 or not started:
            self._show(f"\r\nMicroPython ended with code {code}\r\n".encode())
            self._hard_reset(HARD_RESET)
        else:
            self._soft_reset(raw=self._tail.endswith(_RAW_ENDINGS))

    def _hard_reset(self, cause: int) -> None:
        self._uart.unread()
        self._clear()
        self._show(f"\r\nrst: {CAUSES[cause]}\r\n".encode())
        self._boot(cause)

    def _soft_reset(self, raw: bool) -> None:
        self._show(b"MPY: soft reboot\r\n")
        self._alive = self._open = False
        self._hidden = None
        self._raw = raw
        self._boot(SOFT_RESET)

    def _boot(self, cause: int) -> None:
        self._wire.unread()
        self._wire.read()
        self._wire_text = b""
        self._tail = b""
        self._wire.write(self._wifi)
        settings = {
            "VBOARD_CAUSE": str(cause),
            "VBOARD_RAW": str(int(self._raw)),
            "VBOARD_FLASH": str(self._flash_bytes),
        }
        uart, wire = self._uart.inner.fileno(), self._wire.inner.fileno()
        self._process = Process(self._root, uart, wire, self._heap, settings)
        self.boots += 1
