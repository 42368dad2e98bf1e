"""The plan of a chaos run: which fault comes when, drawn from a seed and from nothing else.

Pure. The same seed and number of faults give the same plan; what the network, the broker and the
board make of it in real time differs from run to run.

Every hand of HAND faults holds each kind as often as KINDS says, in a random order. Most faults
last 50 to 400 ms; a kind in _LONG sometimes lasts longer than the board's deadlines, so that the
board has to find out by itself.
"""

import random
from typing import NamedTuple

# How often in a hand of 100, and what happens.
KINDS = {
    "refuse": (8, "the listener is closed and what is open is reset"),
    "reset": (6, "what is open is reset"),
    "reset up": (12, "a reset behind a random byte on its way to the broker"),
    "reset down": (8, "a reset behind a random byte on its way to the board"),
    "stall": (8, "nothing moves, either way; then what was held comes"),
    "half open up": (5, "what goes up vanishes; then a reset"),
    "half open down": (5, "what comes down vanishes; then a reset"),
    "silence": (3, "a reset; new connections are accepted and never answered"),
    "split": (7, "every byte travels by itself"),
    "delay": (7, "everything comes late"),
    "swallow ack": (5, "an acknowledgement vanishes; with or without a reset then"),
    "swallow publish": (2, "a publication vanishes, and the connection stays"),
    "swallow connack": (2, "a reset; the answer to the next connect vanishes"),
    "repeat ack": (7, "an acknowledgement comes twice"),
    "freeze": (6, "SIGSTOP of the broker, then SIGCONT"),
    "kill": (2, "SIGKILL of the broker, its sessions saved; it comes back"),
    "kill, session lost": (1, "SIGKILL of the broker, its sessions lost; it comes back"),
    "restart": (1, "SIGTERM of the broker; it comes back"),
    "take-over": (4, "a second client with the board's id, which keeps the session"),
    "take-over, clean": (1, "the same, and the session is forgotten"),
}
HAND = sum(often for often, _ in KINDS.values())
SESSION_LOST = ("kill, session lost", "take-over, clean")

_SHORTEST_MS, _LONGEST_MS = 50, 400
_LONG = {"stall", "half open up", "half open down", "freeze"}
_LONG_ONE_IN = 8
_LONG_MS = (1100, 2200)
_SHAPES = ("", "", "", "", "split", "delay")
_MOST_BYTES = {"reset up": 320, "reset down": 8}


class Fault(NamedTuple):
    """One fault. `under` is a shape ("split", "delay" or "") that lies under it.

    `settled`: it waits for a delivery first, so that it meets a link at work; else it follows the
    one before at once. `count` is the byte that a reset comes behind, else the number of packets.
    """

    kind: str
    ms: int
    count: int
    under: str
    settled: bool


def plan(seed, faults: int) -> list[Fault]:
    """The `faults` faults of a run, from a seed of any kind that `random.Random` takes."""
    rng = random.Random(seed)
    drawn: list[Fault] = []
    while len(drawn) < faults:
        hand = [kind for kind, (often, _) in KINDS.items() for _ in range(often)]
        rng.shuffle(hand)
        drawn += [_draw(rng, kind) for kind in hand]
    return drawn[:faults]


def _draw(rng: random.Random, kind: str) -> Fault:
    ms = rng.randint(_SHORTEST_MS, _LONGEST_MS)
    long = rng.randrange(_LONG_ONE_IN) == 0
    long_ms = rng.randint(*_LONG_MS)
    count = rng.randint(1, _MOST_BYTES.get(kind, 3))
    under = rng.choice(_SHAPES)
    settled = rng.random() < 0.4
    return Fault(kind, long_ms if long and kind in _LONG else ms, count, under, settled)
