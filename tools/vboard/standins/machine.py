"""`machine` of an ESP32, for the virtual board: what the firmware uses, and no pins.

Resets, the reset's cause and the watchdog are the supervisor's work: it ends this process and
starts another, as a reset does. Timers are threads that schedule their callback, as the soft
timers of an ESP32 do; unlike there, nothing runs while the REPL waits for a key.
"""

import _thread
import os
import time

import micropython
import wire
from micropython import const

PWRON_RESET = const(1)
HARD_RESET = const(2)
WDT_RESET = const(3)
DEEPSLEEP_RESET = const(4)
SOFT_RESET = const(5)

_FREQUENCIES = (20000000, 40000000, 80000000, 160000000, 240000000)
_HARDWARE_TIMERS = const(4)

_freq = 160000000


def reset():
    """Reset the board as its reset button does; does not return."""
    wire.say("reset")
    wire.halt()


def soft_reset():
    """Start the interpreter again; boot.py and main.py run as after Ctrl-D."""
    raise SystemExit


def reset_cause():
    """One of the …_RESET constants."""
    return int(os.getenv("VBOARD_CAUSE"))


def unique_id():
    """The board's 6 bytes."""
    return b"\x02vbrd\x01"


def freq(hz=None):
    """Get or set the CPU's frequency in Hz; ValueError for one that an ESP32 does not have."""
    global _freq
    if hz is None:
        return _freq
    if hz not in _FREQUENCIES:
        raise ValueError("frequency must be 20MHz, 40MHz, 80Mhz, 160MHz or 240MHz")
    _freq = hz
    return None


def idle():
    """Let others run."""
    time.sleep_ms(1)


class WDT:
    """The watchdog: not fed for `timeout` ms, it resets the board. Making it again sets a new
    time-out; nothing stops it, a soft reset neither."""

    def __init__(self, id=0, timeout=5000):
        if id != 0:
            raise ValueError
        if timeout <= 0:
            raise ValueError("WDT timeout too short")
        wire.say("wdt {}".format(timeout))

    def feed(self):
        wire.feed()


class Timer:
    """Timer(-1) is virtual, 0…3 are the hardware's; the callback gets the timer."""

    ONE_SHOT = const(0)
    PERIODIC = const(1)

    def __init__(self, id, **kwargs):
        if not -1 <= id < _HARDWARE_TIMERS:
            raise ValueError("invalid Timer number, max {}".format(_HARDWARE_TIMERS))
        self._run = 0
        if kwargs:
            self.init(**kwargs)

    def init(self, *, mode=PERIODIC, callback=None, period=-1, freq=None, hard=False):
        """Start, with `period` in ms or `freq` in Hz."""
        if hard:
            raise ValueError("hard Timers are not implemented")
        if freq is not None:
            period = int(1000 / freq)
        if period == 0:
            raise ValueError("period too small for soft timer, less than OS tick period of 1 ms.")
        self.deinit()
        if period > 0:
            _thread.start_new_thread(self._ticks, (self._run, mode, callback, period))

    def deinit(self):
        """Stop."""
        self._run += 1

    def _ticks(self, run, mode, callback, period):
        due = time.ticks_ms()
        while True:
            due = time.ticks_add(due, period)
            time.sleep_ms(max(0, time.ticks_diff(due, time.ticks_ms())))
            if run != self._run:
                return
            try:
                micropython.schedule(callback, self)
            except RuntimeError:
                pass
            if mode == Timer.ONE_SHOT:
                return
