"""DispatchQueue: what is in progress goes back to pending when the link is lost."""

from millpond.dispatch import RETRYABLE_ERROR, SUCCESS
from tests_host.core.dispatch_kit import Rig, check, started


def test_D16_after_a_lost_link_what_was_in_progress_goes_first_in_its_order():
    rig = started("a", "b", "c")
    rig.add("d", "e")
    rig.queue.move_all_back_to_pending()
    check(rig.queue)
    assert rig.held() == (["a", "b", "c", "d", "e"], [])
    rig.work()
    assert rig.attempts[3:] == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    assert rig.told == []


def test_D16_an_interrupted_attempt_is_not_counted():
    """SRS_09_048: after any number of them, max + 1 attempts remain."""
    rig = Rig(max_retry_count=1)
    item = rig.add("a")
    for _ in range(5):
        rig.work()
        rig.queue.move_all_back_to_pending()
        check(rig.queue)
    rig.work()
    rig.complete(item, RETRYABLE_ERROR)
    rig.work()
    rig.queue.move_all_back_to_pending()
    rig.work()
    assert rig.told == []
    rig.complete(item, RETRYABLE_ERROR)
    assert rig.results() == [("a", "ERROR")]


def test_D16_the_time_in_the_queue_goes_on_and_the_processing_time_begins_again():
    rig = Rig(max_enqueued_time_s=20, max_processing_time_s=10)
    rig.add("a")
    rig.work(0)
    rig.time = 9
    rig.queue.move_all_back_to_pending()
    rig.work(15)
    assert rig.told == [] and len(rig.attempts) == 2
    rig.work(19)
    assert rig.told == []
    rig.work(20)
    assert rig.results() == [("a", "TIMEOUT")]


def test_D16_a_completion_of_the_interrupted_attempt_is_a_stray():
    rig = started("a")
    rig.queue.move_all_back_to_pending()
    assert not rig.complete(1, SUCCESS) and rig.held() == (["a"], [])


def test_D16_with_nothing_in_progress_nothing_moves():
    rig = Rig()
    rig.queue.move_all_back_to_pending()
    rig.add("a", "b")
    rig.queue.move_all_back_to_pending()
    check(rig.queue)
    assert rig.held() == (["a", "b"], [])
