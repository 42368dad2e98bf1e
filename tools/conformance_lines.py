"""The requirements of seed 002 and of D1-D17 in our own few words, and where each is met.

`CHAPTERS` holds, under a heading, rows of (number, what it asks, how it is met, where). Where the
seed speaks of NULL and of memory, `how` says what becomes of it in Python. `DECISIONS` holds rows
of (number, what it says, where).
"""

_NULL = "a call without a queue: TypeError or AttributeError"
_ONCE = "all storage is made by the constructor"
_PROPAGATES = "MemoryError goes to the caller, nothing half-made is kept"

CHAPTERS = (
    (
        "Making a queue",
        (
            (1, "no configuration, no queue", "TypeError", "__init__"),
            (2, "no process callback, no queue", "TypeError naming the value", "__init__"),
            (4, "a queue is allocated", _ONCE, "__init__"),
            (5, "no memory for it, no queue", _PROPAGATES, "__init__"),
            (6, "it has a list of pending items", "a list linked through the slots", "__init__"),
            (7, "that list cannot be made: no queue", _PROPAGATES, "__init__"),
            (8, "it has a list of those in progress", "a list linked so too", "__init__"),
            (9, "that list cannot be made: no queue", _PROPAGATES, "__init__"),
            (10, "the configuration is kept", "in attributes", "__init__"),
            (11, "a failure releases what was allocated", _PROPAGATES, "__init__"),
            (12, "the queue is returned", "by the constructor", "__init__"),
        ),
    ),
    (
        "Destroying it",
        (
            (13, "NULL: return", _NULL, "close"),
            (14, "everything is removed first", "close calls remove_all", "close"),
            (
                15,
                "all memory is freed",
                "messages, contexts and callbacks are let go; the slots go with the object",
                "close",
            ),
        ),
    ),
    (
        "Adding a message",
        (
            (16, "NULL queue or message: fail", "message None: TypeError; " + _NULL, "add"),
            (17, "an item is allocated for the message", "a free slot is taken", "add"),
            (18, "it cannot be: fail", "no free slot: 0", "add"),
            (19, "its enqueue time is the clock's", "in seconds the clock has advanced", "add"),
            (20, "the clock fails: fail", "0", "add"),
            (21, "it goes to the end of pending", "as asked", "add"),
            (22, "it cannot be added: fail", "linking cannot fail; a full queue: 0", "add"),
            (23, "it holds the message", "and its callback and context", "add"),
            (24, "a failure releases what was allocated", "nothing is taken before", "add"),
            (25, "success is 0", "success is the item's id, 1 or more", "add"),
        ),
    ),
    (
        "Removing everything",
        (
            (26, "NULL: return", _NULL, "remove_all"),
            (27, "all items leave both lists", "as asked", "remove_all"),
            (28, "each is told CANCELLED", "as asked", "remove_all"),
            (29, "each is freed", "its slot is free before it is told", "remove_all"),
        ),
    ),
    (
        "Is it empty?",
        (
            (30, "NULL: fail", _NULL, "is_empty"),
            (31, "nothing pending or in progress: true", "the value returned", "is_empty"),
            (32, "else false", "the value returned", "is_empty"),
            (33, "success is 0", "the answer itself is returned", "is_empty"),
        ),
    ),
    (
        "do_work: time-outs",
        (
            (34, "NULL: return", _NULL, "do_work"),
            (35, "with a limit on the time in the queue, all are checked", "as asked", "do_work"),
            (36, "at that limit: removed and told TIMEOUT", "as asked", "do_work"),
            (
                37,
                "with a limit on processing, those in progress are checked",
                "as asked",
                "do_work",
            ),
            (38, "at that limit: removed and told TIMEOUT", "as asked", "do_work"),
        ),
    ),
    (
        "do_work: what is pending",
        (
            (39, "each item comes in progress", "as asked", "do_work"),
            (40, "its start is the clock's", "one reading for each", "do_work"),
            (41, "the clock fails: it is not in progress", "it leaves pending", "do_work"),
            (
                42,
                "a failure: told ERROR and freed",
                "the clock's, or an exception of on_process",
                "do_work",
            ),
            (43, "else it is processed", "with its id, `complete` and context", "do_work"),
        ),
    ),
    (
        "Completing an attempt",
        (
            (69, "NULL queue or message: return", "item None: TypeError; " + _NULL, "complete"),
            (44, "not in progress: ignored", "False, and counted in `strays`", "complete"),
            (45, "in progress: removed", "as asked", "complete"),
            (47, "RETRYABLE_ERROR with attempts left: pending again", "as asked", "complete"),
            (48, "RETRYABLE_ERROR with none left: ERROR", "as asked", "complete"),
            (
                49,
                "else told message, result, reason and context",
                "by the item's on_complete",
                "complete",
            ),
            (50, "the item is freed", "its slot is free before it is told", "complete"),
        ),
    ),
    (
        "The limit on the time in the queue",
        (
            (51, "NULL: fail", _NULL, "set_option"),
            (53, "it is kept", "as max_enqueued_time_s, 0 for none", "set_option"),
            (54, "success is 0", "no exception", "set_option"),
        ),
    ),
    (
        "The limit on processing",
        (
            (55, "NULL: fail", _NULL, "set_option"),
            (57, "it is kept", "as max_processing_time_s, 0 for none", "set_option"),
            (58, "success is 0", "no exception", "set_option"),
        ),
    ),
    (
        "The number of retries",
        (
            (59, "NULL: fail", _NULL, "set_option"),
            (60, "it is kept", "as max_retry_count", "set_option"),
            (61, "success is 0", "no exception", "set_option"),
        ),
    ),
    (
        "The options together",
        (
            (62, "NULL: fail", _NULL, "options"),
            (63, "a set of options is created", "a new dict", "options"),
            (64, "it cannot be: fail", _PROPAGATES, "options"),
            (65, "each option is added to it", "three, by name", "options"),
            (66, "one cannot be: fail", _PROPAGATES, "options"),
            (67, "a failure releases what was allocated", _PROPAGATES, "options"),
            (68, "the set is returned", "as asked", "options"),
        ),
    ),
)

DECISIONS = (
    (1, "Time-outs first, on one reading of the clock, then what is pending.", "do_work"),
    (2, "A limit is reached at ≥; an item that reached it unattempted never is.", "do_work"),
    (3, "A retry keeps the enqueue time; processing time is each attempt's own.", "complete"),
    (4, "Attempts count before the callback: max + 1 in all, read at completion.", "complete"),
    (5, "A retried item goes to the end of pending under its id.", "complete"),
    (6, "RETRYABLE_ERROR is told as ERROR; reasons and other results pass.", "complete"),
    (7, "Late, repeated and unknown completions are ignored and counted.", "complete"),
    (8, "on_complete is per item, may be None, and comes after the item left.", "add"),
    (9, "remove_all cancels what is in progress first.", "remove_all"),
    (10, "With the clock failing: no time-outs, pending ends in ERROR, add fails.", "do_work"),
    (11, "Three options, set and read by name; another name is an error.", "set_option"),
    (
        12,
        "Expiry looks at every item, and a clock that steps back hides none."
        " The original stops at the first item that is not due.",
        "do_work",
    ),
    (
        13,
        "A do_work processes only what was pending when it began."
        " The original goes on until nothing is pending.",
        "do_work",
    ),
    (
        14,
        "Any call is allowed from any callback, and each item is told once."
        " The original uses freed memory on four such paths.",
        "__init__",
    ),
    (
        15,
        "remove_all cancels what was there when it began, and ends."
        " The original goes on as long as callbacks add.",
        "remove_all",
    ),
    (
        16,
        "Link lost: what is in progress is first in pending, in its order, the attempt not"
        " counted. The text has no such call.",
        "move_all_back_to_pending",
    ),
    (
        17,
        "window bounds how many are in progress. The text has no bound, which is the default, 0.",
        "__init__",
    ),
)

# From here on the decisions depart from the original implementation.
FIRST_DEVIATION = 12
