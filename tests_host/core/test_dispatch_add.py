"""DispatchQueue: messages added, and whether any are there."""

from millpond.dispatch import SUCCESS
from tests_host.core.dispatch_kit import Rig, check
from tests_host.kit import raises


def test_SRS_09_016_a_message_must_be_there():
    rig = Rig()
    assert "None" in raises(TypeError, rig.queue.add, None)
    raises(TypeError, rig.queue.add)
    assert rig.queue.is_empty() and rig.readings == 0
    for message in (0, "", b"", False, []):  # anything else is a message
        assert rig.queue.add(message)


def test_on_complete_must_be_callable():
    rig = Rig()
    assert "7" in raises(TypeError, rig.queue.add, "a", 7)
    check(rig.queue)
    assert rig.queue.is_empty()


def test_SRS_09_017_each_message_has_a_place_of_its_own():
    """SRS_09_023: equal messages are two items; SRS_09_025: success is an id, 1 or more."""
    rig = Rig(3)
    ids = [rig.add("same"), rig.add("same"), rig.add("other")]
    assert ids == [1, 2, 3]
    assert rig.held() == (["same", "same", "other"], [])
    rig.work()
    assert rig.attempts == [(1, "same"), (2, "same"), (3, "other")]
    rig.complete(2, SUCCESS)
    assert rig.held() == ([], ["same", "other"])


def test_SRS_09_018_a_full_queue_refuses():
    """SRS_09_022, SRS_09_024: with 0, and nothing changed. In progress counts too."""
    rig = Rig(2)
    rig.add("a")
    rig.work()
    rig.add("b")
    assert rig.add("c") == 0
    assert rig.held() == (["b"], ["a"]) and rig.told == []
    rig.complete(1, SUCCESS)
    assert rig.add("c") == 3
    assert rig.held() == (["b", "c"], [])


def test_SRS_09_019_the_time_in_the_queue_runs_from_add():
    rig = Rig(max_enqueued_time_s=10)
    rig.time = 7
    rig.add("a")
    assert rig.readings == 1
    rig.time = 9
    rig.add("b")
    rig.work(16)
    assert rig.told == []
    rig.work(17)
    assert rig.results() == [("a", "TIMEOUT")]


def test_SRS_09_020_add_fails_when_the_clock_does():
    """SRS_09_024, D10: nothing of it stays."""
    rig = Rig(1)
    for failure in ("None", "raises"):
        rig.failure = failure
        assert rig.add("a") == 0
        assert rig.queue.is_empty()
    rig.failure = None
    assert rig.add("b") == 1  # the one slot was not lost, nor an id used up


def test_another_error_of_the_clock_is_not_hidden():
    rig = Rig()

    def broken():
        raise KeyError("clock")

    rig.queue._clock = broken
    raises(KeyError, rig.queue.add, "a")
    check(rig.queue)
    assert rig.queue.is_empty()


def test_SRS_09_021_a_message_goes_to_the_tail_of_pending():
    rig = Rig()
    rig.add("a", "b")
    rig.add("c")
    assert rig.held() == (["a", "b", "c"], []) and rig.attempts == []
    rig.work()
    rig.add("d")
    assert rig.held() == (["d"], ["a", "b", "c"])
    assert rig.attempted() == ["a", "b", "c"]


def test_SRS_09_031_a_queue_with_nothing_pending_or_in_progress_is_empty():
    """SRS_09_032, SRS_09_033: else it is not; the answer is the value returned."""
    rig = Rig()
    assert rig.queue.is_empty() is True and len(rig.queue) == 0
    item = rig.add("a")
    assert rig.queue.is_empty() is False and len(rig.queue) == 1
    rig.work()
    assert rig.held() == ([], ["a"]) and rig.queue.is_empty() is False
    rig.complete(item, SUCCESS)
    assert rig.queue.is_empty() is True and len(rig.queue) == 0
