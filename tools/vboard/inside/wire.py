"""The wire between a virtual board's MicroPython and its supervisor, beside the console.

The board says lines (`hello`, `booted`, `reset`, `soft`, `wdt MS`, `feed`); the supervisor sends
single bytes: `g` (go on) and the states of the Wi-Fi, which stay in force until the next one.
Each end survives the other's silence: reading never blocks, except in `ask`.
"""

import os
import select
import time

_GO = b"g"
_WIFI = {b"W": "ok", b"A": "no_ap", b"P": "wrong_password", b"D": "down"}

_port = open(int(os.getenv("VBOARD_WIRE")), "r+b")
_poll = select.poll()
_poll.register(_port, select.POLLIN)
_state = {"wifi": "ok", "go": False}
_FEED = b"feed\n"


def _take():
    byte = _port.read(1)
    if byte == _GO:
        _state["go"] = True
    elif byte in _WIFI:
        _state["wifi"] = _WIFI[byte]
    elif not byte:
        halt()


def say(line):
    """Tell the supervisor one line."""
    _port.write(line.encode() + b"\n")


def ask(line):
    """Tell the supervisor one line and wait until it says to go on."""
    _state["go"] = False
    say(line)
    while not _state["go"]:
        try:
            _take()
        except KeyboardInterrupt:
            pass


def feed():
    """Feed the watchdog; allocates nothing."""
    _port.write(_FEED)


def wifi():
    """What the Wi-Fi is to do now: "ok", "no_ap", "wrong_password" or "down"."""
    while _poll.poll(0):
        _take()
    return _state["wifi"]


def halt():
    """Do nothing more: the supervisor ends this process."""
    while True:
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            pass
