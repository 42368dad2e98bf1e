"""History: what happens in one run, drawn from its seed before anything runs.

A history is the configuration and a list of (ms since the step before, what, argument). Dropping a
step leaves a history, which is how a failing one is made short.

Most steps are thrown one by one. What they would seldom come to in this way is a plot: some steps
in an order that is given, with gaps, numbers and faults that are thrown; two histories in three
have one somewhere.
"""

from tests_host.sim.prng import Prng

WRAP = 1 << 30

# What may happen, how often, and what the argument is drawn from.
_STEPS = (
    ("put", 30, (1, 1, 1, 2, 5, 20, 60)),
    ("put_qos0", 2, (1, 3)),
    ("put_qos2", 8, (1, 2, 6)),
    ("urgent", 4, (1, 2)),
    ("urgent_qos2", 2, (1, 2)),
    ("large", 3, (1, 2)),
    ("tracked", 4, (1, 3)),
    ("tracked_qos2", 3, (1, 3)),
    ("short_lived", 2, (1, 4)),
    ("latency", 4, (0, 1, 10, 150, 900)),
    ("piece", 3, (0, 1, 2, 7)),
    ("send_buffer", 2, (4, 100, 2048)),
    ("refuse", 4, (500, 3000, 20000)),
    ("no_answer", 3, (500, 4000, 15000)),
    ("half_open", 4, (0, 1, 2)),
    ("stall", 4, (300, 3000, 12000)),
    ("full", 2, (0,)),
    ("room_next", 3, (30, 110, 125, 150, 250, 400)),
    ("flaps", 3, (2, 4)),
    ("cut", 10, (0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7)),
    ("reset", 4, (0,)),
    ("reset_out", 6, tuple(range(0, 120, 3))),
    ("reset_in", 5, tuple(range(12))),
    ("reset_next", 3, tuple(range(0, 90, 5))),
    ("lose_acks", 6, (1, 1, 2, 5)),
    ("repeat_acks", 4, (1, 3)),
    ("foreign_acks", 3, (1, 3)),
    ("ack_delay", 3, (0, 30, 700, 6000)),
    ("refusal", 1, (2, 3, 5)),
    ("restart", 5, (0, 1)),
    ("forget", 2, (0,)),
    ("take_over", 2, (0,)),
    ("mute", 2, (2000, 9000)),
    ("nonsense", 4, tuple(range(12))),
    ("clock_step", 2, (-100000, 5, 86400, 1000000)),
    ("freeze", 2, (50, 800, 3000)),
    ("ids", 2, (65530, 65534)),
    ("wait", 6, (100, 2000, 30000)),
    ("stop", 2, (0, 5000)),
    ("interrupt", 2, (0, 3000)),
    ("power_loss", 3, (0, 2000)),
    ("heal", 8, (0,)),
    ("command", 2, tuple(range(6))),
)
_BAG = tuple(name for name, weight, _ in _STEPS for _ in range(weight))
_CHOICES = {name: choices for name, _, choices in _STEPS}

# Steps that a plot throws one of.
_LINK_LOST = (
    ("reset", 0),
    ("reset_out", 0),
    ("reset_out", 4),
    ("cut", 0),
    ("cut", 1),
    ("cut", 2),
    ("cut", 3),
    ("lose_acks", 1),
    ("lose_acks", 2),
    ("ack_delay", 700),
    ("ack_delay", 6000),
    ("restart", 1),
    ("latency", 900),
    ("flaps", 3),
    ("half_open", 2),
    ("stall", 3000),
)
_QOS2_CUT = (("cut", 0), ("cut", 1), ("cut", 2), ("cut", 3), ("lose_acks", 1), ("lose_acks", 2))
_RELEASE_CUT = (("cut", 2), ("cut", 3), ("reset_out", 4)) * 4
_SESSION_LOST = (("restart", 0), ("forget", 0))
_SOON = (0, 0, 5, 15, 25, 35, 60, 300)
_LATER = (300, 1000, 3000)
_QOS2 = (("put_qos2", 1), ("put_qos2", 1), ("put_qos2", 3), ("urgent_qos2", 1))

# A plot is a row of (gaps, steps), each thrown.
# The power goes with QoS 2 half way and the session kept, and then the link again and again.
_HALF_WAY = (
    (_LATER, (("heal", 0), ("power_loss", 0), ("power_loss", 0))),
    ((1000, 3000), _QOS2_CUT),
    ((0,), _QOS2),
    (_SOON, (("power_loss", 0), ("power_loss", 0), ("power_loss", 2000), ("stop", 0))),
    (_SOON, _LINK_LOST + _RELEASE_CUT),
    ((0, 60, 1500, 3000), _QOS2),
    (_SOON, _LINK_LOST),
    (_LATER, (("heal", 0), ("power_loss", 0), ("reset", 0))),
    (_SOON, _QOS2),
)
_PLOTS = (
    _HALF_WAY,
    _HALF_WAY,
    # The link is lost between the steps of QoS 2; the session as well, now and then.
    (
        (_LATER, (("heal", 0),)),
        ((1500, 3000), _QOS2_CUT),
        ((0,), (("put_qos2", 2), ("tracked_qos2", 2), ("urgent_qos2", 1))),
        (_SOON, _QOS2_CUT + _LINK_LOST),
        (_SOON, _SESSION_LOST + _LINK_LOST),
        (_LATER, _QOS2_CUT + _LINK_LOST),
    ),
    # Several losses in quick succession, with messages between them.
    (
        (_SOON, (("put", 5), ("put_qos2", 2), ("tracked", 3))),
        (_SOON, _LINK_LOST),
        ((60, 300, 1500), _LINK_LOST),
        (_SOON, (("put", 2), ("put_qos2", 2))),
        ((60, 300, 1500), _LINK_LOST + _SESSION_LOST),
        ((60, 300, 1500), _LINK_LOST),
    ),
    # The opening leaves in pieces, and the link is lost before it is over.
    (
        (_SOON, (("send_buffer", 4), ("send_buffer", 100), ("send_buffer", 20))),
        ((0,), (("piece", 0), ("piece", 7), ("latency", 150))),
        ((0,), (("reset", 0), ("flaps", 4), ("restart", 0))),
        ((300, 1000, 1500, 3000), (("reset", 0), ("reset_out", 3), ("half_open", 2))),
        ((300, 1000, 1500, 3000), (("reset", 0), ("reset_next", 30), ("put", 2))),
    ),
    # The broker takes all and then nothing more.
    (
        (_LATER, (("heal", 0),)),
        ((0,), (("room_next", 90), ("room_next", 110), ("room_next", 125), ("room_next", 250))),
        ((0,), (("reset", 0), ("restart", 0))),
        (_SOON, (("put", 5), ("put_qos2", 2))),
        ((3000, 20000), (("wait", 30000), ("put", 1))),
    ),
    # A broker that takes connections and no messages.
    (
        (_LATER, (("put", 5), ("put_qos2", 2))),
        ((0,), (("cut", 4), ("cut", 0))),
        ((0,), (("cut", 0), ("cut", 1), ("cut", 6))),
        ((0,), (("cut", 0), ("cut", 1))),
        (_SOON, (("put", 1), ("reset", 0))),
    ),
)


def draw(seed):
    """(configuration, start of the ticks, steps) of a seed."""
    dice = Prng(seed)
    page = dice.among((2048, 2048, 4096))
    config = {
        "mqtt": {
            "host": "192.0.2.1",
            "qos": dice.among((1, 1, 2, 0)),
            "keepalive_s": dice.among((0, 2, 5, 10, 60)),
            "clean_session": dice.one_in(6),
            "connect_timeout_s": dice.among((2, 5)),
            "ack_timeout_s": dice.among((2, 5, 10)),
            "backoff_min_s": 1,
            "backoff_max_s": dice.among((1, 4, 10)),
            "max_retries": dice.among((100, 100, 3)),
        },
        "send": {"rate_limit": dice.among((0, 0, 0, 5, 50))},
        "intake": {"slots": 32, "overflow": dice.among(("displace", "reject", "oldest"))},
        "ring": {
            "page_bytes": page,
            "bytes": page * dice.among((3, 4, 6, 12)),
            "max_age_s": dice.among((0, 0, 0, 3, 20)),
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
        "counter": (dice.among((0, 1, 2)), dice.among((0, 0, 300, 1000))),
    }
    start = dice.among((0, 5000, WRAP // 2 - 20000, WRAP - 5000, WRAP - 40000))
    steps = []
    for _ in range(6 + dice.below(30)):
        what = dice.among(_BAG)
        steps.append(
            (dice.among((0, 0, 10, 60, 300, 1500, 4000)), what, dice.among(_CHOICES[what]))
        )
    if not dice.one_in(3):
        _plot(dice, config, steps)
    return config, start, steps


def _plot(dice, config, steps):
    """Put a plot among the steps. Where the power goes, ids of two lives should meet."""
    plot = dice.among(_PLOTS)
    if plot is _HALF_WAY:
        config["mqtt"]["clean_session"] = False
        if dice.one_in(2):
            config["mqtt"]["qos"] = 2
        else:
            config["plant"]["enabled"] = False
            config["counter"] = (0, 0)
    at = dice.below(len(steps))
    steps[at:at] = [(dice.among(gaps),) + dice.among(acts) for gaps, acts in plot]


def in_words(config, start, steps):
    """A history for a person, a step a line."""
    lines = ["ticks start at {}; {}".format(start, config)]
    at = 0
    for ms, what, argument in steps:
        at += ms
        lines.append("{:7d} ms  {} {}".format(at, what, argument))
    return "\n".join(lines)
