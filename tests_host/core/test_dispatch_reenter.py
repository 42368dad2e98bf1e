"""DispatchQueue: every call from every callback."""

from millpond.dispatch import ERROR, RETRYABLE_ERROR, SUCCESS
from tests_host.core.dispatch_kit import ALL_CANCELLED, Rig, check, full


def test_D14_close_from_on_process():
    """The items of the running do_work go too, and nothing of the queue is used any more."""
    rig = full()
    rig.on_attempt = lambda item, message: rig.queue.close()
    rig.work()
    assert rig.results() == [("a", "CANCELLED"), ("b", "CANCELLED"), ("c", "CANCELLED")] + [
        ("d", "CANCELLED")
    ]
    assert rig.attempted() == ["a", "b", "c"] and rig.add("e") == 0


def test_D14_remove_all_from_on_process():
    rig = full()
    rig.on_attempt = lambda item, message: rig.queue.remove_all()
    rig.work()
    assert rig.results() == ALL_CANCELLED and rig.attempted() == ["a", "b", "c"]
    rig.on_attempt = None
    rig.add("e")
    rig.work()
    assert rig.held() == ([], ["e"])


def test_D14_completing_an_item_that_on_process_has_cancelled_is_a_stray():
    rig = Rig(1)

    def cancels_first(item, message):
        rig.queue.remove_all()
        rig.add("next user of the slot")
        assert not rig.complete(item, SUCCESS)

    rig.on_attempt = cancels_first
    rig.add("a")
    rig.work()
    assert rig.results() == [("a", "CANCELLED")]
    assert rig.held() == (["next user of the slot"], []) and rig.queue.strays == 1


def test_D14_an_error_of_on_process_does_not_meet_the_next_user_of_the_slot():
    rig = Rig(1)

    def cancels_and_raises(item, message):
        rig.queue.remove_all()
        rig.add("next")
        raise KeyError(message)

    rig.on_attempt = cancels_and_raises
    rig.add("a")
    try:
        rig.work()
    except KeyError:
        check(rig.queue)
    assert rig.results() == [("a", "CANCELLED")] and rig.held() == (["next"], [])


def test_D14_close_from_a_time_out():
    """SRS_09_036: each item is told once, the others that were due as TIMEOUT."""
    rig = Rig(max_enqueued_time_s=5)
    rig.add("a", "b")
    rig.time = 1
    rig.add("c")
    rig.on_told = lambda message: rig.queue.close()
    rig.work(5)
    assert rig.results() == [("a", "TIMEOUT"), ("b", "TIMEOUT"), ("c", "CANCELLED")]
    assert rig.attempts == []


def test_D14_remove_all_from_a_time_out():
    rig = Rig(max_processing_time_s=5)
    rig.add("a", "b")
    rig.work(0)
    rig.add("c")
    rig.on_told = lambda message: rig.queue.remove_all()
    rig.work(5)
    assert rig.results() == [("a", "TIMEOUT"), ("b", "TIMEOUT"), ("c", "CANCELLED")]


def test_D14_close_from_a_completion():
    rig = full()
    rig.on_told = lambda message: rig.queue.close()
    assert rig.complete(2, SUCCESS)
    assert rig.results() == [
        ("b", "SUCCESS"),
        ("a", "CANCELLED"),
        ("c", "CANCELLED"),
        ("d", "CANCELLED"),
    ]


def test_D14_close_from_remove_all():
    """What the callbacks of remove_all had added before is cancelled too."""
    rig = full()

    def adds_then_closes(message):
        if message == "a":
            assert rig.add("a+")
        if message == "b":
            rig.queue.close()
            assert rig.queue.is_empty()
            assert rig.add("b+") == 0

    rig.on_told = adds_then_closes
    rig.queue.remove_all()
    check(rig.queue)
    assert rig.results() == ALL_CANCELLED + [("a+", "CANCELLED")]


def test_D14_close_from_close():
    rig = full()
    rig.on_told = lambda message: rig.queue.close()
    rig.queue.close()
    check(rig.queue)
    assert rig.results() == ALL_CANCELLED


def test_D14_do_work_from_on_process_leaves_it_to_the_one_that_is_running():
    """D13: so that callbacks that work nest no deeper than one call."""
    rig = Rig(200)
    depth = [0, 0]

    def works(item, message):
        depth[0] += 1
        depth[1] = max(depth)
        rig.queue.do_work()
        depth[0] -= 1
        rig.complete(item, SUCCESS)

    rig.on_attempt = works
    rig.on_told = lambda message: rig.queue.do_work()
    for n in range(200):
        rig.queue.add(n, rig.tell)
    rig.work()
    assert rig.attempted() == list(range(200)) and depth == [0, 1]
    assert [message for message, _ in rig.results()] == list(range(200))


def test_D14_do_work_from_a_completion_begins_the_next():
    rig = Rig(window=1)
    rig.on_told = lambda message: rig.work()
    rig.add("a", "b")
    rig.work()
    rig.complete(1, SUCCESS)
    assert rig.attempted() == ["a", "b"]


def test_D14_after_an_error_do_work_works_again():
    rig = Rig()

    def fragile(item, message):
        raise KeyError(message)

    rig.on_attempt = fragile
    rig.add("a", "b")
    for left in (1, 0):
        try:
            rig.work()
        except KeyError:
            check(rig.queue)
        assert len(rig.queue) == left
    assert rig.results() == [("a", "ERROR"), ("b", "ERROR")]


def test_D14_a_completion_may_complete_others():
    rig = full()
    rig.on_told = lambda message: message == "a" and rig.complete(2, ERROR)
    rig.complete(1, SUCCESS)
    assert rig.results() == [("a", "SUCCESS"), ("b", "ERROR")]


def test_D14_add_from_a_completion_has_the_slot_that_became_free():
    rig = Rig(1)
    rig.on_told = lambda message: message == "a" and rig.add("b")
    rig.add("a")
    rig.work()
    rig.complete(1, SUCCESS)
    assert rig.held() == (["b"], [])


def test_D14_the_link_may_be_lost_in_on_process():
    """D13, D16: what was moved back goes first, in its order, at the next do_work."""
    rig = Rig(max_retry_count=0)
    rig.add("a", "b", "c")

    def loses_link(item, message):
        if message == "b":
            rig.queue.move_all_back_to_pending()

    rig.on_attempt = loses_link
    rig.work()
    assert rig.attempted() == ["a", "b"] and rig.held() == (["a", "b", "c"], [])
    rig.on_attempt = None
    rig.work()
    assert rig.attempted() == ["a", "b", "a", "b", "c"] and rig.told == []


def test_D14_a_link_lost_at_every_attempt_ends_each_do_work():
    rig = Rig()
    rig.add("a", "b")
    rig.on_attempt = lambda item, message: rig.queue.move_all_back_to_pending()
    for n in range(1, 4):
        rig.work()
        assert rig.attempted() == ["a"] * n and rig.held() == (["a", "b"], [])


def test_D13_with_nothing_to_move_back_do_work_goes_on():
    """D16."""
    rig = Rig()
    rig.add("a", "b")

    def ends_then_moves(item, message):
        rig.complete(item, SUCCESS)
        rig.queue.move_all_back_to_pending()

    rig.on_attempt = ends_then_moves
    rig.work()
    assert rig.attempted() == ["a", "b"]


def test_D14_an_on_process_that_raises_and_a_callback_that_works_do_not_nest():
    """The do_work that tells of the error is still the one that is running."""
    rig = Rig()
    rig.add("a", "b")

    def fragile(item, message):
        raise KeyError(message)

    rig.on_attempt = fragile
    rig.on_told = lambda message: rig.work()
    try:
        rig.work()
    except KeyError:
        check(rig.queue)
    assert rig.attempted() == ["a"] and rig.results() == [("a", "ERROR")]


def test_D14_an_on_complete_that_raises_for_an_on_process_that_raised():
    """do_work works again."""
    rig = Rig()
    rig.add("a", "b")

    def fragile(*args):
        raise KeyError

    rig.on_attempt = rig.on_told = fragile
    for left in (1, 0):
        try:
            rig.work()
        except KeyError:
            check(rig.queue)
        assert len(rig.queue) == left
    assert rig.results() == [("a", "ERROR"), ("b", "ERROR")]


def test_D14_options_may_be_set_from_callbacks():
    """D4, D11: a limit set in on_process holds for what it completes there."""
    rig = Rig()

    def sets(item, message):
        rig.queue.set_option("max_retry_count", 1)
        rig.complete(item, RETRYABLE_ERROR)
        assert rig.queue.options()["max_retry_count"] == 1

    rig.on_attempt = sets
    rig.add("a")
    rig.work()
    assert rig.held() == (["a"], [])
