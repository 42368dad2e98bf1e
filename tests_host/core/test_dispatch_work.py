"""DispatchQueue: do_work takes up what is pending."""

from millpond.dispatch import RETRYABLE_ERROR, SUCCESS, DispatchQueue
from tests_host.core.dispatch_kit import Rig, check


def test_SRS_09_039_all_pending_items_come_in_progress():
    """SRS_09_043: and each is processed, with its context and the means to complete it."""
    rig = Rig()
    seen = []

    def on_process(item, message, complete, context):
        seen.append((item, message, context))
        assert complete(item, SUCCESS, "reason of " + message)

    queue = DispatchQueue(on_process, rig.clock)
    rig.queue = queue
    rig.add("a", "b", "c")
    rig.work()
    assert seen == [
        (1, "a", "context of a"),
        (2, "b", "context of b"),
        (3, "c", "context of c"),
    ]
    assert rig.told[1] == ("b", "SUCCESS", "reason of b", "context of b")
    assert len(rig.told) == 3 and queue.is_empty()


def test_SRS_09_039_an_item_in_progress_is_not_processed_again():
    rig = Rig()
    rig.add("a")
    rig.work()
    rig.work()
    assert rig.attempted() == ["a"] and rig.held() == ([], ["a"])


def test_SRS_09_041_D10_when_the_clock_fails_pending_items_end_in_ERROR():
    """SRS_09_042: unprocessed, told once and let go."""
    for failure in ("None", "raises"):
        rig = Rig()
        rig.add("a", "b")
        rig.failure = failure
        rig.work()
        assert rig.attempts == [] and rig.queue.is_empty()
        assert rig.told == [
            ("a", "ERROR", None, "context of a"),
            ("b", "ERROR", None, "context of b"),
        ]


def test_D10_a_clock_that_fails_once_costs_one_item():
    """It is read anew for each item (SRS_09_040, SRS_09_041)."""
    rig = Rig()
    rig.add("a", "b", "c")

    def fails_next(item, message):
        rig.failure = "None" if message == "a" else None

    def mended(message):
        rig.failure = None

    rig.on_attempt = fails_next
    rig.on_told = mended
    rig.work()
    assert rig.attempted() == ["a", "c"] and rig.results() == [("b", "ERROR")]


def test_SRS_09_042_an_on_process_that_raises_ends_its_item_in_ERROR():
    """And only that: the error goes to the caller, the others wait for the next do_work."""
    rig = Rig()
    rig.add("a", "bad", "c")

    def fragile(item, message):
        if message == "bad":
            raise KeyError(message)

    rig.on_attempt = fragile
    try:
        rig.work()
    except KeyError:
        check(rig.queue)
    else:
        raise AssertionError("the error was hidden")
    assert rig.told == [("bad", "ERROR", None, "context of bad")]
    assert rig.held() == (["c"], ["a"]) and rig.queue.strays == 0
    rig.work()
    assert rig.attempted() == ["a", "bad", "c"] and len(rig.told) == 1


def test_an_on_process_that_raises_after_completing_changes_nothing_more():
    rig = Rig()
    rig.add("a")

    def hasty(item, message):
        rig.complete(item, SUCCESS)
        raise KeyError(message)

    rig.on_attempt = hasty
    try:
        rig.work()
    except KeyError:
        check(rig.queue)
    assert rig.results() == [("a", "SUCCESS")] and rig.queue.is_empty()
    rig.on_attempt = None
    rig.add("b")
    rig.work()
    assert rig.attempted() == ["a", "b"]


def test_D13_do_work_processes_what_was_pending_when_it_began():
    """SRS_09_039: what callbacks add waits for the next call, so each call ends."""
    rig = Rig()
    rig.add("a")

    def adds(item, message):
        rig.add(message + "+")

    rig.on_attempt = adds
    rig.work()
    assert rig.attempted() == ["a"] and rig.held() == (["a+"], ["a"])
    rig.work()
    assert rig.attempted() == ["a", "a+"]


def test_D13_a_retry_waits_for_the_next_do_work():
    rig = Rig(max_retry_count=100)
    rig.on_attempt = lambda item, message: rig.complete(item, RETRYABLE_ERROR)
    rig.add("a", "b")
    for n in range(1, 4):
        rig.work()
        assert rig.attempted() == ["a", "b"] * n and rig.held() == (["a", "b"], [])


def test_D13_what_a_time_out_adds_waits_for_the_next_do_work():
    rig = Rig(max_enqueued_time_s=5)
    rig.add("a")
    rig.on_told = lambda message: rig.add("again")
    rig.work(5)
    assert rig.attempts == [] and rig.held() == (["again"], [])
    rig.on_told = None
    rig.work(5)
    assert rig.attempted() == ["again"]


def test_D13_the_last_of_the_round_may_leave_before_its_turn():
    """Then the round ends before what was added, not with it."""
    rig = Rig()

    def removes(item, message):
        if message == "b":
            rig.queue.remove_all()
        rig.add(message + "+")

    rig.on_attempt = removes
    rig.add("a", "b", "c", "last")
    rig.work()
    assert rig.attempted() == ["a", "b"] and rig.held() == (["b+"], [])
    assert rig.results() == [(name, "CANCELLED") for name in ("a", "b", "c", "last", "a+")]


def test_D17_the_window_bounds_what_is_in_progress():
    rig = Rig(window=2)
    rig.add("a", "b", "c", "d")
    rig.work()
    assert rig.held() == (["c", "d"], ["a", "b"])
    rig.work()
    assert rig.attempted() == ["a", "b"]
    rig.complete(2, SUCCESS)
    assert rig.attempted() == ["a", "b"]  # do_work alone begins attempts
    rig.work()
    assert rig.held() == (["d"], ["a", "c"])


def test_D17_an_attempt_that_ends_at_once_makes_room_for_the_next():
    rig = Rig(window=1)
    rig.on_attempt = lambda item, message: message != "c" and rig.complete(item, SUCCESS)
    rig.add("a", "b", "c", "d")
    rig.work()
    assert rig.held() == (["d"], ["c"]) and len(rig.told) == 2


def test_D17_no_window_is_no_bound():
    rig = Rig(300)
    for n in range(300):
        rig.queue.add(n)
    rig.work()
    assert rig.attempted() == list(range(300)) and rig.queue.add("one more") == 0


def test_D17_a_time_out_makes_room_in_the_window():
    rig = Rig(window=1, max_processing_time_s=5)
    rig.add("a", "b")
    rig.work(0)
    rig.work(5)
    assert rig.results() == [("a", "TIMEOUT")] and rig.held() == ([], ["b"])
