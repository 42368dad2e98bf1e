"""A herd of boards coming back to a broker that was away, in virtual time.

Every board loses the broker in the same millisecond and tries again as `firmware.uplink` does,
with the real back-off and the default configuration: it waits, tries, and waits again while the
broker is away. A try takes no time where the broker's host refuses it, and the whole of
`mqtt.connect_timeout_s` where nobody answers.

The window is from the broker's return until the last board is back; the mean is the boards by its
seconds, the peak the most connects in any second of it, wherever that second begins. A broker that
everybody reaches is assumed: what the herd does to a broker that is overrun is not in here.
"""

import random

from firmware.backoff import Backoff
from firmware.config import TABLE

BOARDS = 10000
LONG_MS = 600000
SHORT_MS = 2000
_SECOND_MS = 1000
_DEFAULTS = {row[0]: row[1] for row in TABLE}


def measure() -> dict[str, object]:
    """The worse of refused and unanswered, after a long outage and after a short one."""
    hang_ms = 1000 * _DEFAULTS["mqtt.connect_timeout_s"]
    long = [peak(returns(LONG_MS, attempt_ms)) for attempt_ms in (0, hang_ms)]
    short = [peak(returns(SHORT_MS, attempt_ms)) for attempt_ms in (0, hang_ms)]
    return {
        "herd_peak": round(max(most / mean for most, mean in long), 2),
        "herd_peak_2s": round(max(most / mean for most, mean in short), 2),
        "herd_2s_per_s": max(most for most, _ in short),
        "herd": {"refused": (long[0], short[0]), "unanswered": (long[1], short[1])},
    }


def returns(outage_ms: int, attempt_ms: int = 0, boards: int = BOARDS, seed: int = 1) -> list[int]:
    """When each board's first successful try begins, ms after the broker's return, in order.

    A try that began before the return fails, whatever is left of it.
    """
    getrandbits = random.Random(seed).getrandbits
    least_ms = 1000 * _DEFAULTS["mqtt.backoff_min_s"]
    most_ms = 1000 * _DEFAULTS["mqtt.backoff_max_s"]
    moments = []
    for _ in range(boards):
        backoff = Backoff(least_ms, most_ms, getrandbits)
        at = backoff.next_ms()
        while at < outage_ms:
            at += attempt_ms + backoff.next_ms()
        moments.append(at - outage_ms)
    return sorted(moments)


def peak(moments: list[int]) -> tuple[int, float]:
    """The most of the sorted `moments` (ms) in any second, and the mean in a second up to the last.

    Where all come within one second, that second is the window.
    """
    most = first = 0
    for n, moment in enumerate(moments):
        while moments[first] <= moment - _SECOND_MS:
            first += 1
        most = max(most, n - first + 1)
    return most, round(len(moments) * _SECOND_MS / max(_SECOND_MS, moments[-1]), 1)
