"""Sequences of operations, written by hand, into corners that chance seldom finds.

By machine: what the sequence is about, the configuration, the operations.
"""

_PUT = ("enqueue", 0, 3, 0, 1, 1, 0)  # and ttl, now
_RING = 1 << 30

QUEUE = (
    (
        "time is up at 0 on the ring, for the head and behind it",
        (4, 8, 2, "displace", 1, 0, 0),
        (
            (*_PUT, 0, _RING - 9),
            (*_PUT, 9, _RING - 9),
            (*_PUT, 8, _RING - 8),
            ("peek", _RING - 1),
            ("expire", _RING - 1),
            ("dequeue", _RING - 1),
            ("dequeue", _RING - 1),
            ("expire", 0),
        ),
    ),
    (
        "one sweep leaves a mortal message, the next one takes it",
        (3, 8, 1, "reject", 0xFFFF, 0, 0),
        (
            (*_PUT, 5, 0),
            (*_PUT, 10, 0),
            ("expire", 5),
            ("expire", 9),
            ("expire", 10),
            ("oldest_ms", 10),
        ),
    ),
    (
        "a window of the throughput ends after 10 s, not before, and not when time goes back",
        (3, 8, 1, "reject", 1, 0, 0),
        (
            ("expire", _RING - 100),
            (*_PUT, 0, _RING - 100),
            ("pop", _RING - 100),
            ("expire", 9899),
            ("throughput",),
            ("expire", 9900),
            ("throughput",),
            ("expire", 5000),
            ("throughput",),
            ("expire", 15000),
            ("throughput",),
        ),
    ),
    (
        "the log feeds a queue of one, at the begin and at the end of an overflow",
        (1, 8, 1, "oldest", (1 << 32) - 1, 1, 0),
        (
            (*_PUT, 1, 0),
            (*_PUT, 1, 0),
            ("expire", 1),
            (*_PUT, 1, 1),
            ("clear", 1),
            ("peek", 1),
            ("clear", 1),
            ("pop", 1),
            ("pop", 1),
        ),
    ),
    (
        "the longest time in queue, and one that counts as none",
        (3, 8, 1, "reject", 1, 0, 0),
        (
            (*_PUT, 0, 5),
            (*_PUT, 0, 6),
            (*_PUT, 0, 7),
            ("pop", 4),
            ("pop", 5 + _RING // 2),
            ("pop", 7 + _RING // 2),
        ),
    ),
    (
        "a log that feeds a queue with a lock is refused, and counted",
        (1, 8, 1, "oldest", 1, 1, 1),
        ((*_PUT, 0, 0), (*_PUT, 0, 0), ("pop", 0), (*_PUT, 0, 0), ("clear", 0)),
    ),
)

RING = (
    (
        "a size and a tag of two bytes",
        (3, 1000, 1, 0, 0),
        (
            ("append", 992, 0, 0xFEDC),
            ("append", 700, 0, 0x0102),
            ("append", 255, 0, 0x0203),
            ("append", 256, 0, 0x0304),
        ),
    ),
    (
        "a page with an open reservation is in USED, and a higher lane finds no other to steal",
        (3, 64, 2, 0, 0),
        (
            ("append", 3, 0, 1),
            ("reserve", 5, 0),
            ("head",),
            *[("append", 56, 1, n) for n in range(4)],
            ("commit", 5, 0, 2),
        ),
    ),
    (
        "a page is read to its end by a drop while its reservation is open, and given up",
        (3, 64, 1, 0, 0),
        (
            ("append", 3, 0, 1),
            ("reserve", 5, 0),
            ("drop", "poison"),
            ("cancel", 0),
            ("append", 3, 0, 2),
        ),
    ),
    (
        "the same, and the reservation becomes a message",
        (3, 64, 1, 0, 0),
        (("append", 3, 0, 1), ("reserve", 5, 0), ("drop", "poison"), ("commit", 0, 0, 9)),
    ),
    (
        "what was lost before a page that is taken away empty",
        (3, 64, 2, 0, 0),
        (
            *[("append", 56, 1, n) for n in range(3)],
            ("append", 1, 0, 0),
            ("sent", 1),
            ("ack", 1),
            ("reserve", 56, 0),
            ("cancel", 0),
            ("append", 56, 1, 3),
            ("sent", 2),
            ("ack", 2),
            ("append", 2, 0, 7),
        ),
    ),
    (
        "the page behind the one in flight is the last of its lane, and is stolen",
        (3, 64, 2, 0, 0),
        (
            ("append", 56, 0, 0),
            ("sent", 1),
            ("append", 56, 0, 1),
            *[("append", 56, 1, n) for n in range(3)],
            ("ack", 1),
            ("append", 56, 0, 2),
            ("append", 56, 0, 3),
        ),
    ),
    (
        "the page in flight in a lower lane is the only one there is to steal",
        (3, 64, 3, 0, 0),
        (
            ("append", 56, 0, 0),
            ("append", 56, 2, 0),
            ("append", 56, 2, 1),
            ("head",),
            ("sent", 1),
            ("rewind",),
            ("append", 56, 1, 2),
            ("append", 56, 0, 2),
            ("drop", "poison"),
        ),
    ),
    (
        "with a lock the head stays, whatever comes meanwhile",
        (3, 64, 2, 0, 1),
        (
            ("append", 56, 0, 0),
            ("head",),
            ("append", 56, 1, 1),
            ("head",),
            *[("append", 56, 1, n) for n in range(3)],
            ("retag", 7),
            ("head",),
            ("drop", "poison"),
        ),
    ),
    (
        "pages grow old behind the one that is sent, and the work page with them",
        (5, 64, 2, 0, 0),
        (
            ("limit_age", 0, 60),
            ("append", 56, 0, 0),
            ("sent", 1),
            ("append", 56, 0, 1),
            ("wait", 1),
            ("append", 20, 0, 2),
            ("append", 56, 1, 3),
            ("wait", 59),
            ("expire",),
            ("wait", 1),
            ("expire",),
            ("wait", 1),
            ("expire",),
            ("append", 3, 0, 4),
            ("ack", 1),
            ("drop", "poison"),
        ),
    ),
    (
        "a page opened for nothing gives a later message no age",
        (3, 64, 1, 0, 0),
        (
            ("limit_age", 0, 60),
            ("reserve", 56, 0),
            ("cancel", 0),
            ("wait", 100),
            ("append", 3, 0, 1),
            ("expire",),
        ),
    ),
    (
        "a reservation keeps its page, however old",
        (3, 64, 1, 0, 1),
        (
            ("limit_age", 0, 60),
            ("append", 3, 0, 1),
            ("reserve", 20, 0),
            ("wait", 100),
            ("expire",),
            ("head",),
            ("drop", "poison"),
            ("expire",),
            ("commit", 20, 0, 2),
            ("expire",),
        ),
    ),
)

_QUIET = ((), (), 1)
_LIMITS = (0, 0, 0)

DISPATCH = (
    (
        "closed from a callback of remove_all that has added one more",
        (4, 0, _LIMITS, (((), (("add", 1), ("close",)), 1), _QUIET)),
        (("add", 0), ("add", 1), ("remove_all",)),
    ),
    (
        "a limit set after the look for time-outs, in the same second",
        (4, 1, _LIMITS, (_QUIET,)),
        (
            *[("add", 0)] * 2,
            ("wait", 5),
            ("do_work",),
            ("set_option", 0, 5),
            ("do_work",),
        ),
    ),
    (
        "the interrupted attempt is not counted",
        (4, 0, (0, 0, 1), (_QUIET,)),
        (
            *[("add", 0)] * 2,
            ("do_work",),
            ("move_all_back_to_pending",),
            ("do_work",),
            *[("complete", back, 2) for back in (1, 0)],
            ("do_work",),
            *[("complete", back, 2) for back in (1, 0)],
        ),
    ),
    (
        "the link is lost in a callback, which ends the round, and work goes on with the next",
        (4, 0, _LIMITS, (((("move_all_back_to_pending",),), (), 1), _QUIET)),
        (*[("add", plan) for plan in (1, 0, 1)], ("do_work",), ("do_work",)),
    ),
    (
        "both limits at once, in progress and pending, and a callback that raises among them",
        (5, 2, (9, 4, 0), (_QUIET, ((), (("fail",),), 1))),
        (
            ("add", 0),
            ("do_work",),
            ("wait", 5),
            ("add", 1),
            ("do_work",),
            *[("add", 0)] * 3,
            ("wait", 4),
            ("do_work",),
            ("wait", 5),
            ("do_work",),
            ("do_work",),
        ),
    ),
)

SEQUENCES = {"dispatch": DISPATCH, "queue": QUEUE, "ring": RING}
