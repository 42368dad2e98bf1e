"""DispatchQueue: made, closed, its options, and what becomes of NULL handles and lack of memory."""

import millpond.dispatch as dispatch
from millpond.dispatch import OPTIONS, RESULTS, SUCCESS, DispatchQueue
from tests_host.core.dispatch_kit import Rig, check
from tests_host.kit import MICROPYTHON, raises


def ignore(*_):
    pass


def no_time():
    return 0


def test_SRS_09_001_a_queue_without_configuration_is_not_made():
    raises(TypeError, DispatchQueue)
    raises(TypeError, DispatchQueue, ignore)


def test_SRS_09_002_on_process_must_be_callable():
    for wrong in (None, 7, "process"):
        assert repr(wrong) in raises(TypeError, DispatchQueue, wrong, no_time)
        assert repr(wrong) in raises(TypeError, DispatchQueue, ignore, wrong)


def test_SRS_09_004_all_storage_is_made_once():
    """SRS_09_006, SRS_09_008: the list of pending items and the list of those in progress."""
    for capacity in (1, 2, 7, 300):
        queue = DispatchQueue(ignore, no_time, capacity)
        check(queue)
        assert queue.is_empty() and len(queue) == 0 and queue.capacity == capacity
        before = [getattr(queue, name) for name in ("_next", "_prev", "_messages", "_ids")]
        for n in range(capacity):
            assert queue.add(n)
        queue.do_work()
        check(queue)
        queue.remove_all()
        after = [getattr(queue, name) for name in ("_next", "_prev", "_messages", "_ids")]
        assert all([a is b for a, b in zip(before, after)])
        assert [len(store) for store in after] == [capacity + 4] * 2 + [capacity] * 2


class Scarce:
    """Stands in for `array`, and has memory for only so many."""

    def __init__(self, enough_for):
        self.left = enough_for
        self.array = dispatch.array

    def __call__(self, *args):
        if not self.left:
            raise MemoryError
        self.left -= 1
        return self.array(*args)


def test_SRS_09_005_without_memory_no_queue_is_made():
    """SRS_09_007, SRS_09_009, SRS_09_011: whichever store lacks it; what was made is let go."""
    real = dispatch.array
    for enough_for in (0, 1, 2):
        dispatch.array = Scarce(enough_for)
        try:
            raises(MemoryError, DispatchQueue, ignore, no_time)
        finally:
            dispatch.array = real
    check(DispatchQueue(ignore, no_time))


def test_SRS_09_011_the_memory_of_a_queue_half_made_comes_back():
    """On MicroPython, where its collector can be called (not so in a browser's)."""
    if not MICROPYTHON or not collects():
        return
    real = dispatch.array
    before = collected()
    for _ in range(20):
        dispatch.array = Scarce(2)  # two stores of 8 KB are made
        try:
            raises(MemoryError, DispatchQueue, ignore, no_time, 4000)
        finally:
            dispatch.array = real
    assert collected() - before < 8000


def collected():
    """Bytes in use."""
    import gc

    gc.collect()
    return gc.mem_alloc()


def collects():
    before = collected()
    bytearray(50000)
    return collected() - before < 50000


def test_SRS_09_010_every_argument_is_kept():
    """SRS_09_012: and the queue is given back, ready for use."""
    rig = Rig(3, 2, max_enqueued_time_s=10, max_processing_time_s=4, max_retry_count=7)
    queue = rig.queue
    assert isinstance(queue, DispatchQueue)
    assert (queue.capacity, queue.window) == (3, 2)
    assert queue.options() == {
        "max_enqueued_time_s": 10,
        "max_processing_time_s": 4,
        "max_retry_count": 7,
    }
    rig.add("a")
    rig.work()
    assert rig.attempted() == ["a"] and rig.readings == 3


def test_SRS_09_010_the_default_is_no_limit():
    queue = DispatchQueue(ignore, no_time)
    assert queue.options() == dict([(name, 0) for name in OPTIONS])
    assert (queue.capacity, queue.window, queue.strays) == (16, 0, 0)


def test_bad_arguments_are_named_with_their_limits():
    for capacity in (0, -1, 32768):
        text = raises(ValueError, DispatchQueue, ignore, no_time, capacity)
        assert text == "capacity {}: 1 to 32767 expected".format(capacity)
    assert "window -1" in raises(ValueError, DispatchQueue, ignore, no_time, 4, -1)
    for wrong in (None, "4", 4.0, True):
        assert "capacity " + repr(wrong) in raises(TypeError, DispatchQueue, ignore, no_time, wrong)
        assert "window " + repr(wrong) in raises(
            TypeError, DispatchQueue, ignore, no_time, window=wrong
        )
    for name in OPTIONS:
        for value, kind in ((-1, ValueError), (1 << 30, ValueError), (1.5, TypeError)):
            text = raises(kind, DispatchQueue, ignore, no_time, **{name: value})
            assert name in text and str(value) in text
    text = raises(ValueError, DispatchQueue, ignore, no_time, max_retries=1)
    assert "max_retries" in text and "max_retry_count" in text


def test_results_are_numbered_in_the_order_of_their_names():
    assert RESULTS == ("SUCCESS", "ERROR", "RETRYABLE_ERROR", "TIMEOUT", "CANCELLED")
    assert [getattr(dispatch, name) for name in RESULTS] == [0, 1, 2, 3, 4]


def test_a_NULL_queue_is_a_wrong_argument():
    """SRS_09_013, SRS_09_016, SRS_09_026, SRS_09_030, SRS_09_034, SRS_09_069: every method."""
    wrong = (TypeError, AttributeError)
    for name in ("close", "remove_all", "is_empty", "do_work", "move_all_back_to_pending"):
        raises(wrong, getattr(DispatchQueue, name), None)
    raises(wrong, DispatchQueue.add, None, "message")
    raises(wrong, DispatchQueue.complete, None, 1, SUCCESS)


def test_a_NULL_queue_has_no_options():
    """SRS_09_051, SRS_09_055, SRS_09_059, SRS_09_062: neither to set nor to read."""
    for name in OPTIONS:
        raises((TypeError, AttributeError), DispatchQueue.set_option, None, name, 1)
    raises((TypeError, AttributeError), DispatchQueue.options, None)


def test_SRS_09_014_close_cancels_everything():
    rig = Rig()
    rig.add("a", "b")
    rig.work()
    rig.add("c")
    rig.queue.close()
    check(rig.queue)
    assert rig.results() == [("a", "CANCELLED"), ("b", "CANCELLED"), ("c", "CANCELLED")]


def test_SRS_09_015_close_lets_go_of_all_it_was_given():
    rig = Rig()
    rig.add("a", "b")
    rig.work()
    queue = rig.queue
    queue.close()
    check(queue)  # no slot keeps a message, a callback or a context
    assert rig.process not in [queue._on_process, queue._clock]
    assert rig.clock not in [queue._on_process, queue._clock]


def test_SRS_09_015_a_closed_queue_is_harmless():
    rig = Rig(max_enqueued_time_s=1)
    item = rig.add("a")
    rig.work()
    rig.queue.close()
    readings = rig.readings
    assert rig.add("b") == 0 and rig.queue.is_empty()
    rig.work(99)
    rig.queue.remove_all()
    rig.queue.move_all_back_to_pending()
    rig.queue.close()
    assert not rig.complete(item, SUCCESS) and rig.queue.strays == 1
    rig.queue.set_option("max_retry_count", 2)
    assert rig.queue.options()["max_retry_count"] == 2
    assert rig.results() == [("a", "CANCELLED")] and len(rig.attempts) == 1
    assert rig.readings == readings


def test_SRS_09_053_max_enqueued_time_can_be_set():
    """SRS_09_054: without an error."""
    rig = Rig()
    rig.add("a")
    rig.work(5)
    rig.queue.set_option("max_enqueued_time_s", 6)
    rig.work(5)
    assert rig.told == []
    rig.queue.set_option("max_enqueued_time_s", 5)
    rig.work(5)
    assert rig.results() == [("a", "TIMEOUT")]
    assert rig.queue.options()["max_enqueued_time_s"] == rig.queue.max_enqueued_time_s == 5


def test_SRS_09_057_max_processing_time_can_be_set():
    """SRS_09_058: without an error."""
    rig = Rig()
    rig.add("a")
    rig.work(2)
    rig.work(5)
    rig.queue.set_option("max_processing_time_s", 3)
    rig.work(5)
    assert rig.results() == [("a", "TIMEOUT")]
    assert rig.queue.options()["max_processing_time_s"] == rig.queue.max_processing_time_s == 3


def test_SRS_09_060_max_retry_count_can_be_set():
    """SRS_09_061: without an error."""
    rig = Rig()
    rig.queue.set_option("max_retry_count", 1)
    item = rig.add("a")
    rig.work()
    assert rig.complete(item, dispatch.RETRYABLE_ERROR) and rig.told == []
    rig.work()
    assert rig.attempted() == ["a", "a"]
    assert rig.queue.options()["max_retry_count"] == rig.queue.max_retry_count == 1


def test_a_refused_option_leaves_the_old_one():
    queue = Rig(max_retry_count=3).queue
    before = queue.options()
    for name in OPTIONS:
        for value, kind in ((-1, ValueError), (1 << 30, ValueError), (None, TypeError)):
            assert str(value) in raises(kind, queue.set_option, name, value)
    assert queue.options() == before


def test_D11_there_are_three_options_by_name():
    """SRS_09_063, SRS_09_065, SRS_09_068: a dict of them all, to set another queue by."""
    one = Rig(max_enqueued_time_s=1, max_processing_time_s=2, max_retry_count=3).queue
    other = Rig().queue
    options = one.options()
    assert sorted(options) == sorted(OPTIONS) and len(OPTIONS) == 3
    for name in options:
        other.set_option(name, options[name])
    assert other.options() == options
    options["max_retry_count"] = 9
    assert one.options()["max_retry_count"] == 3  # what was handed out is a copy


def test_D11_an_unknown_option_is_an_error():
    queue = Rig().queue
    for name in ("max_retry", "", None, "capacity", "window", "_on_process"):
        text = raises(ValueError, queue.set_option, name, 1)
        assert repr(name) in text and "max_enqueued_time_s" in text
    assert (queue.capacity, queue.window) == (8, 0)


def test_SRS_09_064_without_memory_no_options_are_given():
    """SRS_09_066, SRS_09_067: whichever of them lacks it; the queue is as it was."""
    queue = Rig(max_retry_count=3).queue
    names = dispatch.OPTIONS
    dispatch.OPTIONS = names + ("without memory",)
    try:
        raises(AttributeError, queue.options)
    finally:
        dispatch.OPTIONS = names
    if MICROPYTHON:
        import micropython

        given = None
        micropython.heap_lock()
        try:
            given = queue.options()
        except MemoryError:
            pass
        finally:
            micropython.heap_unlock()
        assert given is None
    assert queue.options()["max_retry_count"] == 3
