"""Hypothesis profiles: "ci" does the same bounded work each time, "soak" looks much further.

`make soak` sets SOAK to a factor: the examples are that many times those of CI, and random.
"""

import os

from hypothesis import HealthCheck, settings

SOAK = int(os.environ.get("SOAK") or 0)

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}

settings.register_profile("ci", derandomize=True, database=None, **_COMMON)
settings.register_profile("soak", print_blob=True, **_COMMON)
settings.load_profile("soak" if SOAK else "ci")


def examples(number: int) -> int:
    """The number of examples to try, for a number that suits CI."""
    return number * max(1, SOAK)
