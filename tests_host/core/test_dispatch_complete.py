"""DispatchQueue: how an attempt ends."""

from millpond.dispatch import (
    CANCELLED,
    ERROR,
    RETRYABLE_ERROR,
    SUCCESS,
    TIMEOUT,
    DispatchQueue,
)
from tests_host.core.dispatch_kit import Rig, check, started
from tests_host.kit import raises


def test_SRS_09_069_a_completion_names_an_item():
    """And a result that there is; else nothing changes, nor is it counted."""
    rig = started("a")
    for wrong in (None, "1", 1.0, True):
        assert repr(wrong) in raises(TypeError, rig.queue.complete, wrong, SUCCESS)
    for wrong in (-1, 5):
        text = raises(ValueError, rig.queue.complete, 1, wrong)
        assert text == "result {}: 0 to 4 expected".format(wrong)
    assert "None" in raises(TypeError, rig.queue.complete, 1, None)
    assert rig.held() == ([], ["a"]) and rig.told == [] and rig.queue.strays == 0


def test_SRS_09_044_what_is_not_in_progress_is_ignored():
    """D7: unknown, pending, or complete already; each is counted."""
    rig = Rig(4)
    for unknown in (0, -1, -3, 1, 5, 1 << 30, 1 << 40):
        assert rig.complete(unknown, SUCCESS) is False
    assert rig.queue.strays == 7
    item = rig.add("a")
    assert not rig.complete(item, SUCCESS)  # pending
    assert rig.held() == (["a"], []) and rig.queue.strays == 8
    rig.work()
    for unknown in (item + 1, item + 4, item - 4):
        assert not rig.complete(unknown, SUCCESS)
    assert rig.complete(item, SUCCESS) is True
    assert not rig.complete(item, SUCCESS)
    assert rig.results() == [("a", "SUCCESS")] and rig.queue.strays == 12


def test_SRS_09_045_a_completed_item_leaves_those_in_progress():
    """SRS_09_050: its slot is free again. Any may complete, in any order."""
    rig = started("a", "b", "c")
    for item, left in ((2, ["a", "c"]), (3, ["a"]), (1, [])):
        assert rig.complete(item, SUCCESS)
        assert rig.held() == ([], left)
    assert rig.results() == [("b", "SUCCESS"), ("c", "SUCCESS"), ("a", "SUCCESS")]


def test_SRS_09_047_a_retryable_error_brings_the_item_back_to_pending():
    rig = started("a", max_retry_count=1)
    assert rig.complete(1, RETRYABLE_ERROR, "busy") is True
    assert rig.held() == (["a"], []) and rig.told == []
    rig.work()
    assert rig.attempted() == ["a", "a"] and rig.held() == ([], ["a"])


def test_SRS_09_048_after_the_last_retry_it_is_an_ERROR():
    """D4: of max + 1 attempts in all; none after the first when max is 0."""
    for retries in (0, 1, 2, 5):
        always_fails(retries)


def always_fails(retries):
    rig = Rig(max_retry_count=retries)
    rig.on_attempt = lambda item, message: rig.complete(item, RETRYABLE_ERROR, "busy")
    rig.add("a")
    for n in range(retries + 1):
        assert rig.told == [] and len(rig.attempts) == n
        rig.work()
    assert rig.told == [("a", "ERROR", "busy", "context of a")]
    rig.work()
    assert len(rig.attempts) == retries + 1 and rig.queue.is_empty()


def test_SRS_09_049_the_user_is_told_message_result_reason_and_context():
    """SRS_09_050: once, and then the item is gone."""
    rig = started("a")
    reason = ["any", "object"]
    rig.complete(1, ERROR, reason)
    assert rig.told == [("a", "ERROR", reason, "context of a")]
    assert rig.told[0][2] is reason and rig.queue.is_empty()


def test_D4_an_attempt_is_counted_before_it_is_made():
    rig = Rig(max_retry_count=1)
    results = []

    def fails(item, message):
        rig.complete(item, RETRYABLE_ERROR)
        results.append(list(rig.results()))

    rig.on_attempt = fails
    rig.add("a")
    rig.work()
    rig.work()
    assert results == [[], [("a", "ERROR")]]


def test_D4_the_limit_is_read_at_completion():
    """SRS_09_060: setting it holds at once, for what is in progress too."""
    rig = started("a", "b", max_retry_count=5)
    rig.queue.set_option("max_retry_count", 0)
    rig.complete(1, RETRYABLE_ERROR)
    assert rig.results() == [("a", "ERROR")]
    rig.queue.set_option("max_retry_count", 1)
    rig.complete(2, RETRYABLE_ERROR)
    assert rig.held() == (["b"], [])


def test_D4_each_message_has_attempts_of_its_own():
    """Also in a slot that another item has used."""
    rig = Rig(1, max_retry_count=1)
    rig.on_attempt = lambda item, message: rig.complete(item, RETRYABLE_ERROR)
    for message in ("a", "b"):
        rig.add(message)
        rig.work()
        assert rig.held() == ([message], [])
        rig.work()
        assert rig.queue.is_empty()
    assert rig.attempted() == ["a", "a", "b", "b"]


def test_D5_a_retried_item_goes_to_the_tail_and_keeps_its_id():
    """SRS_09_047."""
    rig = started("a", "b", max_retry_count=3)
    rig.add("c")
    rig.complete(1, RETRYABLE_ERROR)
    assert rig.held() == (["c", "a"], ["b"])
    rig.work()
    assert rig.attempts == [(1, "a"), (2, "b"), (3, "c"), (1, "a")]
    assert rig.complete(1, SUCCESS)


def test_D6_the_user_never_sees_a_retryable_error():
    """SRS_09_049: other results pass unchanged, and so does the reason."""
    for result, name in (
        (SUCCESS, "SUCCESS"),
        (ERROR, "ERROR"),
        (RETRYABLE_ERROR, "ERROR"),
        (TIMEOUT, "TIMEOUT"),
        (CANCELLED, "CANCELLED"),
    ):
        rig = started("a")
        assert rig.complete(1, result, "reason")
        assert rig.told == [("a", name, "reason", "context of a")]


def test_D7_a_repeated_completion_is_ignored():
    """SRS_09_044: also of what has been sent back to pending."""
    rig = started("a", max_retry_count=3)
    assert rig.complete(1, RETRYABLE_ERROR)
    assert not rig.complete(1, RETRYABLE_ERROR) and not rig.complete(1, SUCCESS)
    assert rig.held() == (["a"], []) and rig.told == [] and rig.queue.strays == 2


def test_D7_a_late_completion_does_not_meet_the_next_user_of_the_slot():
    """SRS_09_044: after a time-out, a cancellation or a completion."""
    rig = Rig(1, max_processing_time_s=5)
    late = []
    for message, end in (("a", "timeout"), ("b", "cancel"), ("c", "complete"), ("d", None)):
        item = rig.add(message)
        assert item and item not in late
        rig.work()
        for earlier in late:
            assert not rig.complete(earlier, SUCCESS)
        assert rig.held() == ([], [message])
        late.append(item)
        if end == "timeout":
            rig.work(rig.time + 5)
        elif end == "cancel":
            rig.queue.remove_all()
        else:
            rig.complete(item, SUCCESS)
    assert [result for _, result in rig.results()] == [
        "TIMEOUT",
        "CANCELLED",
        "SUCCESS",
        "SUCCESS",
    ]
    assert rig.queue.strays == 6


def test_D7_ids_rise_until_they_must_begin_again():
    """A slot's ids lie `capacity` apart up to 2**30 - 1, the last small int of a 32-bit board."""
    top = (1 << 30) - 1
    for capacity in (1, 3, 16):
        rig = Rig(capacity)
        seen = [rig.add(n) for n in range(capacity)]
        rig.queue.remove_all()
        seen += [rig.add(n) for n in range(capacity)]
        assert seen == list(range(1, 2 * capacity + 1))
        rig.queue.remove_all()
        for slot in range(capacity):
            highest = top - (top - slot - 1) % capacity
            rig.queue._ids[slot] = highest - capacity
        high = [rig.add(n) for n in range(capacity)]
        assert max(high) == top and min(high) > top - capacity
        assert sorted(high) == list(range(min(high), top + 1))
        rig.work()
        assert all([rig.complete(item, SUCCESS) for item in high])
        assert [rig.add(n) for n in range(capacity)] == list(range(1, capacity + 1))
        rig.work()
        assert not any([rig.complete(item, SUCCESS) for item in high])
        assert rig.complete(1, SUCCESS)


def test_D7_a_report_of_an_earlier_attempt_is_taken_for_the_one_in_progress():
    """D5: the id is the item's, as the message is in the text. It ends once all the same."""
    rig = started("a", max_retry_count=3)
    rig.complete(1, RETRYABLE_ERROR)
    rig.work()
    assert rig.complete(1, SUCCESS, "of the first attempt")
    assert not rig.complete(1, ERROR, "of the second")
    assert rig.results() == [("a", "SUCCESS")] and rig.queue.strays == 1


def test_D8_the_completion_callback_may_be_None():
    rig = Rig(max_enqueued_time_s=5)
    for end in (SUCCESS, ERROR, RETRYABLE_ERROR):
        item = rig.queue.add("a")
        rig.work()
        assert rig.complete(item, end) and rig.queue.is_empty()
    rig.queue.add("b")
    rig.queue.remove_all()
    rig.queue.add("c")
    rig.work(5)
    assert rig.queue.is_empty() and rig.told == []


def test_D8_a_callback_that_is_false_is_still_called():
    class Told(list):
        def __call__(self, *args):
            self.append(args)

    told = Told()
    queue = DispatchQueue(lambda item, message, complete, _: complete(item, SUCCESS), lambda: 0)
    queue.add("a", told)
    queue.do_work()
    check(queue)
    assert told == [("a", SUCCESS, None, None)]


def test_D8_each_item_has_a_callback_of_its_own():
    rig = Rig()
    told = []
    for name in "ab":
        rig.queue.add(name, lambda message, *_, name=name: told.append(name + message))
    rig.work()
    rig.complete(2, SUCCESS)
    rig.complete(1, SUCCESS)
    assert told == ["bb", "aa"]


def test_D8_the_item_has_left_when_its_callback_is_called():
    """However it ends, is_empty no longer counts it and its slot can be used."""
    for end in ("complete", "retries over", "time-out", "clock", "remove_all", "close"):
        rig = Rig(1, max_enqueued_time_s=9)
        assert seen_at(end, rig) == [(True, 0)], end


def seen_at(end, rig):
    """What the callback sees of is_empty and len when its item ends so."""
    seen = []
    rig.on_told = lambda message: seen.append((rig.queue.is_empty(), len(rig.queue)))
    item = rig.add("a")
    if end == "clock":
        rig.failure = "None"
        rig.work()
    elif end == "time-out":
        rig.work(9)
    elif end == "remove_all":
        rig.queue.remove_all()
    elif end == "close":
        rig.queue.close()
    else:
        rig.work()
        rig.complete(item, SUCCESS if end == "complete" else RETRYABLE_ERROR)
    return seen


def test_D8_what_is_still_to_be_told_is_held():
    rig = Rig(max_enqueued_time_s=9)
    left = []
    rig.on_told = lambda message: left.append(len(rig.queue))
    rig.add("a", "b", "c")
    rig.work(9)
    assert left == [2, 1, 0]
