"""The traces that the state machines of tests_host/models recorded, done again (see replay_kit)."""

from tests_host.core.dispatch_driver import DispatchDriver
from tests_host.core.queue_driver import QueueDriver
from tests_host.core.replay_kit import replay
from tests_host.core.ring_driver import RingDriver
from tests_host.kit import raises


def test_traces_of_MessageQueue():
    from tests_host.core.traces_queue import TRACES

    replay(QueueDriver, TRACES)


def test_traces_of_PagedRing():
    from tests_host.core.traces_ring import TRACES

    replay(RingDriver, TRACES)


def test_traces_of_DispatchQueue():
    from tests_host.core.traces_dispatch import TRACES

    replay(DispatchDriver, TRACES)


def test_replay_names_the_step_that_differs():
    config = (1, 8, 1, "reject", 1, 0, 0)
    put = ("enqueue", 0, 3, 0, 1, 1, 0, 0, 0)
    # Places of `state`: held, is_empty, is_full, fill_percent, enqueued, …, high_water, …, topics.
    taken = (0, 1, 2, 1, 3, 100, 4, 1, 10, 1, 18, 1)
    good = ((put, 1, taken), (put, 0, (6, 1, 15, 1)), (("pop", 5), 0, ()))
    text = raises(AssertionError, replay, QueueDriver, ((config, good),))
    assert "trace 0 (1, 8" in text and "step 2 ('pop', 5)" in text, text
    assert "1 given, 0 expected" in text, text
    wrong = ((put, 1, taken), (put, 0, (6, 2)))
    text = raises(AssertionError, replay, QueueDriver, ((config, wrong),))
    assert "step 1" in text and "refused is 1, 2 expected" in text, text
