"""History: what happens in one run, drawn from its seed before anything runs.

A history is the configuration and a list of (ms since the step before, what, argument). Dropping a
step leaves a history, which is how a failing one is made short.
"""

from tests_host.sim.prng import Prng

WRAP = 1 << 30

# What may happen, how often, and what the argument is drawn from.
_STEPS = (
    ("put", 30, (1, 1, 1, 2, 5, 20, 60)),
    ("put_qos0", 2, (1, 3)),
    ("put_qos2", 8, (1, 2, 6)),
    ("urgent", 4, (1, 2)),
    ("large", 3, (1, 2)),
    ("tracked", 4, (1, 3)),
    ("short_lived", 2, (1, 4)),
    ("latency", 4, (0, 1, 10, 150, 900)),
    ("piece", 3, (0, 1, 2, 7)),
    ("send_buffer", 2, (4, 100, 2048)),
    ("refuse", 4, (500, 3000, 20000)),
    ("no_answer", 3, (500, 4000, 15000)),
    ("half_open", 4, (0, 1, 2)),
    ("stall", 4, (300, 3000, 12000)),
    ("full", 2, (0,)),
    ("reset", 4, (0,)),
    ("reset_out", 6, tuple(range(0, 120, 3))),
    ("reset_in", 5, tuple(range(12))),
    ("reset_next", 3, tuple(range(0, 90, 5))),
    ("lose_acks", 6, (1, 1, 2, 5)),
    ("repeat_acks", 4, (1, 3)),
    ("ack_delay", 3, (0, 30, 700, 6000)),
    ("restart", 5, (0, 1)),
    ("forget", 2, (0,)),
    ("take_over", 2, (0,)),
    ("mute", 2, (2000, 9000)),
    ("nonsense", 4, tuple(range(12))),
    ("clock_step", 2, (-100000, 5, 86400, 1000000)),
    ("wait", 6, (100, 2000, 30000)),
    ("stop", 2, (0, 5000)),
    ("interrupt", 2, (0, 3000)),
    ("power_loss", 3, (0, 2000)),
    ("heal", 8, (0,)),
    ("command", 2, tuple(range(6))),
)
_BAG = tuple(name for name, weight, _ in _STEPS for _ in range(weight))
_CHOICES = {name: choices for name, _, choices in _STEPS}


def draw(seed):
    """(configuration, start of the ticks, steps) of a seed."""
    dice = Prng(seed)
    page = dice.among((2048, 2048, 4096))
    config = {
        "mqtt": {
            "host": "192.0.2.1",
            "qos": dice.among((1, 1, 2, 0)),
            "keepalive_s": dice.among((5, 10, 60)),
            "clean_session": dice.one_in(6),
            "connect_timeout_s": dice.among((2, 5)),
            "ack_timeout_s": dice.among((2, 5, 10)),
            "backoff_min_s": 1,
            "backoff_max_s": dice.among((1, 4, 10)),
            "max_retries": 100,
        },
        "send": {"rate_limit": dice.among((0, 0, 0, 5, 50))},
        "intake": {"slots": 32, "overflow": dice.among(("displace", "reject", "oldest"))},
        "ring": {
            "page_bytes": page,
            "bytes": page * dice.among((3, 4, 6, 12)),
            "max_age_s": dice.among((0, 0, 0, 20)),
        },
        "batch": {
            "encoding": dice.among(("f7", "json")),
            "max_readings": dice.among((1, 10, 50)),
            "max_age_ms": dice.among((0, 500, 5000)),
        },
        "watchdog": {"delivery_timeout_s": dice.among((5, 30)), "check_period_s": 1},
        "health": {"period_s": dice.among((5, 600))},
        "plant": {"enabled": dice.one_in(3), "period_ms": dice.among((200, 1000))},
        "board": {"enabled": False},
        "log": {"level": "error", "status_s": 0},
    }
    start = dice.among((0, 5000, WRAP // 2 - 20000, WRAP - 5000, WRAP - 40000))
    steps = []
    for _ in range(6 + dice.below(30)):
        what = dice.among(_BAG)
        steps.append(
            (dice.among((0, 0, 10, 60, 300, 1500, 4000)), what, dice.among(_CHOICES[what]))
        )
    return config, start, steps


def in_words(config, start, steps):
    """A history for a person, a step a line."""
    lines = ["ticks start at {}; {}".format(start, config)]
    at = 0
    for ms, what, argument in steps:
        at += ms
        lines.append("{:7d} ms  {} {}".format(at, what, argument))
    return "\n".join(lines)
