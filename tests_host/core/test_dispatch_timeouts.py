"""DispatchQueue: time-outs, which do_work finds first."""

from millpond.clock import Clock
from millpond.dispatch import RETRYABLE_ERROR, DispatchQueue
from tests_host.core.dispatch_kit import Rig, check


def test_SRS_09_035_without_a_limit_nothing_times_out():
    """SRS_09_037: neither in the queue nor in progress."""
    rig = Rig()
    rig.add("a")
    rig.work()
    rig.add("b")
    rig.work((1 << 30) - 1)
    assert rig.told == [] and rig.held() == ([], ["a", "b"])


def test_SRS_09_036_an_item_leaves_when_its_time_in_the_queue_is_up():
    """SRS_09_035, D2: at the limit, not after it; pending or in progress alike."""
    rig = Rig(window=1, max_enqueued_time_s=10)
    rig.add("in progress", "pending")
    rig.work()
    rig.work(9)
    assert rig.told == [] and rig.held() == (["pending"], ["in progress"])
    rig.work(10)
    assert rig.told == [
        ("pending", "TIMEOUT", None, "context of pending"),
        ("in progress", "TIMEOUT", None, "context of in progress"),
    ]
    assert rig.queue.is_empty() and rig.attempted() == ["in progress"]


def test_SRS_09_038_an_item_leaves_when_its_processing_time_is_up():
    """SRS_09_037, D2: at the limit; what is pending has none."""
    rig = Rig(window=1, max_processing_time_s=10)
    rig.add("a", "b")
    rig.work(5)
    rig.work(14)
    assert rig.told == [] and rig.held() == (["b"], ["a"])
    rig.work(15)
    assert rig.told == [("a", "TIMEOUT", None, "context of a")]
    assert rig.held() == ([], ["b"])
    rig.work(24)
    assert len(rig.told) == 1
    rig.work(25)
    assert rig.results() == [("a", "TIMEOUT"), ("b", "TIMEOUT")]


def test_SRS_09_038_the_shorter_of_both_limits_counts():
    for enqueued, processing, at in ((3, 9, 3), (9, 3, 5), (5, 3, 5)):
        rig = Rig(max_enqueued_time_s=enqueued, max_processing_time_s=processing)
        rig.add("a")
        rig.work(2)
        rig.work(at - 1)
        assert rig.told == []
        rig.work(at)
        assert rig.results() == [("a", "TIMEOUT")] and rig.queue.is_empty()


def test_SRS_09_040_the_processing_time_runs_from_the_attempt():
    """Each item has its own reading of the clock."""
    rig = Rig(max_processing_time_s=10)

    def slow(item, message):
        rig.time += 3

    rig.on_attempt = slow
    rig.add("a", "b")
    rig.work(0)  # a began at 0, b at 3
    rig.work(10)
    assert rig.results() == [("a", "TIMEOUT")]
    rig.work(12)
    assert len(rig.told) == 1
    rig.work(13)
    assert rig.results() == [("a", "TIMEOUT"), ("b", "TIMEOUT")]


def test_D10_when_the_clock_fails_nothing_times_out():
    rig = Rig(max_enqueued_time_s=5, max_processing_time_s=5)
    rig.add("a")
    rig.work()
    rig.time = 100
    rig.failure = "None"
    rig.work()
    assert rig.told == [] and rig.held() == ([], ["a"])
    rig.failure = None
    rig.work()
    assert rig.results() == [("a", "TIMEOUT")]


def test_SRS_09_036_an_on_complete_that_raises_keeps_none_from_being_told():
    rig = Rig(max_enqueued_time_s=5)
    rig.add("a", "b", "c")

    def fragile(message):
        if message == "a":
            raise KeyError(message)

    rig.on_told = fragile
    try:
        rig.work(5)
    except KeyError:
        check(rig.queue)
    assert rig.results() == [("a", "TIMEOUT")] and len(rig.queue) == 2
    rig.work()
    assert rig.results() == [("a", "TIMEOUT"), ("b", "TIMEOUT"), ("c", "TIMEOUT")]
    assert rig.attempts == []


def test_D1_time_outs_come_first_on_one_reading_of_the_clock():
    rig = Rig(max_enqueued_time_s=5)
    rig.add("old", "old too")
    rig.time = 3
    rig.add("young")
    order = []
    rig.on_attempt = lambda item, message: order.append("process " + message)
    rig.on_told = lambda message: order.append("tell " + message)
    before = rig.readings
    rig.work(5)
    assert order == ["tell old", "tell old too", "process young"]
    assert rig.readings - before == 2  # one for the time-outs, one for the attempt


def test_D1_an_item_whose_time_is_up_meanwhile_is_judged_the_next_time():
    rig = Rig(max_enqueued_time_s=5)
    rig.add("a", "b")

    def slow(item, message):
        rig.time += 5

    rig.on_attempt = slow
    rig.work(0)
    assert rig.attempted() == ["a", "b"] and rig.told == []
    rig.work()
    assert rig.results() == [("a", "TIMEOUT"), ("b", "TIMEOUT")]


def test_D2_an_item_whose_time_is_up_is_never_attempted():
    rig = Rig(max_enqueued_time_s=5)
    rig.add("a")
    rig.time = 1
    rig.add("b")
    rig.work(5)
    assert rig.results() == [("a", "TIMEOUT")] and rig.attempted() == ["b"]


def test_D3_the_time_in_the_queue_outlives_a_retry():
    rig = Rig(max_enqueued_time_s=10, max_retry_count=9)
    item = rig.add("a")
    rig.work(4)
    rig.complete(item, RETRYABLE_ERROR)
    rig.work(8)
    rig.complete(item, RETRYABLE_ERROR)
    rig.work(9)
    assert rig.told == [] and len(rig.attempts) == 3
    rig.work(10)
    assert rig.results() == [("a", "TIMEOUT")]


def test_D3_the_processing_time_begins_again_at_each_attempt():
    rig = Rig(max_processing_time_s=10, max_retry_count=9)
    item = rig.add("a")
    rig.work(0)
    rig.time = 9
    rig.complete(item, RETRYABLE_ERROR)
    rig.work(9)
    rig.work(18)
    assert rig.told == [] and len(rig.attempts) == 2
    rig.work(19)
    assert rig.results() == [("a", "TIMEOUT")]


def test_D12_every_item_is_looked_at():
    """Not only up to the first whose time is not up: a retried item is older than those before."""
    rig = Rig(window=2, max_enqueued_time_s=10, max_retry_count=5)
    old = rig.add("old")
    rig.work(0)
    rig.time = 5
    rig.add("young", "younger")
    rig.complete(old, RETRYABLE_ERROR)
    assert rig.held() == (["young", "younger", "old"], [])
    rig.work(10)
    assert rig.results() == [("old", "TIMEOUT")] and rig.attempted() == ["old", "young", "younger"]


def test_D12_in_progress_too():
    """In the order they began, the processing time of which is the same for all."""
    rig = Rig(max_processing_time_s=10, max_retry_count=5)
    rig.add("a", "b", "c")
    rig.work(0)
    rig.queue.move_all_back_to_pending()
    rig.queue.window = 1
    rig.work(4)  # a alone began anew
    rig.queue.window = 0
    rig.time = 0  # the clock steps back
    rig.work(0)
    assert rig.held() == ([], ["a", "b", "c"])
    rig.work(9)
    assert rig.told == []
    rig.work(10)
    assert rig.results() == [("a", "TIMEOUT"), ("b", "TIMEOUT"), ("c", "TIMEOUT")]


def test_D12_a_clock_that_steps_back_hides_no_time_out():
    """An item from before the step keeps the age it had, one from after it is new."""
    rig = Rig(max_enqueued_time_s=10)
    rig.time = 1000
    rig.add("before")
    rig.work(1004)
    rig.time = 3
    rig.add("after")
    rig.work(8)
    assert rig.told == []
    rig.work(9)  # 4 s before the step, 6 s since
    assert rig.results() == [("before", "TIMEOUT")]
    rig.work(12)
    assert len(rig.told) == 1
    rig.work(13)
    assert rig.results()[1:] == [("after", "TIMEOUT")]


def test_D12_a_clock_that_always_steps_back_times_nothing_out_too_soon():
    rig = Rig(max_enqueued_time_s=10, max_processing_time_s=10)
    rig.add("a")
    for time in (5, 2, 6, 0):  # 9 seconds forward in all
        rig.work(time)
    assert rig.told == []
    rig.work(1)
    assert rig.results() == [("a", "TIMEOUT")]


def test_the_seconds_of_a_Clock_are_a_clock():
    """Across the wrap of its ticks."""
    ticks = [(1 << 30) - 2500]
    clock = Clock(lambda: ticks[0])

    def seconds():
        clock.now()
        return clock.seconds

    told = []
    queue = DispatchQueue(lambda *_: None, seconds, max_enqueued_time_s=5)
    queue.add("a", lambda *args: told.append(args))
    for ms in (2000, 2000, 900, 100):
        assert told == []
        ticks[0] = (ticks[0] + ms) & ((1 << 30) - 1)
        queue.do_work()
    assert told == [("a", 3, None, None)]
