"""DispatchQueue: everything removed."""

from millpond.dispatch import RETRYABLE_ERROR, SUCCESS
from tests_host.core.dispatch_kit import ALL_CANCELLED, Rig, check, full


def test_SRS_09_027_remove_all_removes_what_is_pending_and_in_progress():
    """SRS_09_028, SRS_09_029, D9: those in progress first; each told, each slot free."""
    rig = full()
    rig.queue.remove_all()
    check(rig.queue)
    assert rig.results() == ALL_CANCELLED
    assert rig.told[0] == ("a", "CANCELLED", None, "context of a")
    assert rig.queue.is_empty() and rig.held() == ([], [])
    rig.work()
    assert rig.attempted() == ["a", "b"]


def test_SRS_09_027_an_empty_queue_stays_so():
    rig = Rig()
    rig.queue.remove_all()
    check(rig.queue)
    assert rig.told == []
    assert rig.add("a") == 1  # and the queue can be used further


def test_D15_remove_all_ends_although_callbacks_add():
    """It cancels what was there when it began; what is added stays."""
    rig = full()
    rig.on_told = lambda message: rig.add(message + "+")
    rig.queue.remove_all()
    check(rig.queue)
    assert rig.results() == ALL_CANCELLED
    assert rig.held() == (["a+", "b+", "c+", "d+"], [])


def test_D15_it_ends_although_callbacks_add_and_remove():
    """D14: a remove_all within remove_all leaves the work to the one that is running."""
    rig = full()

    def adds_and_removes(message):
        rig.add(message + "+")
        rig.queue.remove_all()

    rig.on_told = adds_and_removes
    rig.queue.remove_all()
    check(rig.queue)
    assert rig.results() == ALL_CANCELLED
    assert rig.held() == (["a+", "b+", "c+", "d+"], [])


def test_D15_what_callbacks_set_going_is_not_cancelled():
    """The do_work of the first callback tells the others, and then takes up what was added."""
    rig = full()

    def adds_and_works(message):
        rig.add(message + "+")
        rig.work()

    rig.on_told = adds_and_works
    rig.queue.remove_all()
    check(rig.queue)
    assert rig.results() == ALL_CANCELLED
    assert rig.held() == (["b+", "c+", "d+"], ["a+"])


def test_D15_what_was_there_cannot_escape():
    """Nothing else can happen any more to what is to be cancelled."""
    rig = full(max_retry_count=9)
    done = []

    def meddles(message):
        if message == "a":
            done.append(rig.complete(2, SUCCESS))
            done.append(rig.complete(2, RETRYABLE_ERROR))
            rig.queue.move_all_back_to_pending()
            rig.work()

    rig.on_told = meddles
    rig.queue.remove_all()
    assert rig.results() == ALL_CANCELLED and done == [False, False]
    assert rig.attempted() == ["a", "b"]


def test_D15_a_callback_that_raises_keeps_none_from_being_told():
    for resume in ("remove_all", "do_work", "close"):
        rig = full()

        def fragile(message):
            if message == "b":
                raise KeyError(message)

        rig.on_told = fragile
        try:
            rig.queue.remove_all()
        except KeyError:
            check(rig.queue)
        else:
            raise AssertionError("the error was hidden")
        assert len(rig.queue) == 2
        getattr(rig.queue, resume)()
        check(rig.queue)
        assert rig.results() == ALL_CANCELLED and rig.queue.is_empty()
        assert rig.attempted() == ["a", "b"]


def test_SRS_09_014_close_can_be_tried_again_after_a_callback_that_raised():
    rig = full()

    def fragile(message):
        if message in "bc":
            raise KeyError(message)

    rig.on_told = fragile
    for left in (2, 1, 0):
        try:
            rig.queue.close()
        except KeyError:
            pass
        check(rig.queue)
        assert len(rig.queue) == left
    assert rig.results() == ALL_CANCELLED
