"""What the tests of DispatchQueue share: a queue with a settable clock and a diary, and a proof.

A test says what it shows of seed 002 by naming it: `SRS_09_036` or `D12`, in its name or in its
docstring. `tools.conformance` collects these.
"""

from millpond.dispatch import RESULTS, DispatchQueue

_PENDING, _IN_PROGRESS, _LEAVING, _FREE = -1, -2, -3, -4


class Rig:
    """A queue and all that surrounds it.

    `attempts` and `told` are diaries: (item, message) per call of on_process, (message, name of
    the result, reason, context) per call of on_complete. `on_attempt(item, message)` and
    `on_told(message)`, when set, are called from there. `failure` makes the clock fail: "None" or
    "raises". The queue is proven sound at each step.
    """

    def __init__(self, capacity=8, window=0, **options):
        self.time = 0
        self.failure = None
        self.readings = 0
        self.attempts = []
        self.told = []
        self.on_attempt = None
        self.on_told = None
        self.queue = DispatchQueue(self.process, self.clock, capacity, window, **options)

    def clock(self):
        self.readings += 1
        if self.failure == "raises":
            raise OSError(5)
        return None if self.failure else self.time

    def process(self, item, message, complete, context):
        self.attempts.append((item, message))
        check(self.queue)
        if self.on_attempt:
            self.on_attempt(item, message)

    def tell(self, message, result, reason, context):
        self.told.append((message, RESULTS[result], reason, context))
        check(self.queue)
        if self.on_told:
            self.on_told(message)

    def add(self, *messages):
        """Add messages; the id of the last."""
        for message in messages:
            item = self.queue.add(message, self.tell, "context of " + str(message))
            check(self.queue)
        return item

    def work(self, at=None):
        """One do_work, at a time if given."""
        if at is not None:
            self.time = at
        self.queue.do_work()
        check(self.queue)

    def complete(self, item, result, reason=None):
        done = self.queue.complete(item, result, reason)
        check(self.queue)
        return done

    def attempted(self):
        """The messages processed, in order."""
        return [message for _, message in self.attempts]

    def results(self):
        """(message, name of the result) of what was told, in order."""
        return [entry[:2] for entry in self.told]

    def held(self):
        """What is pending and what is in progress, as two lists of messages."""
        return listed(self.queue, _PENDING), listed(self.queue, _IN_PROGRESS)


def started(*messages, **options):
    """A rig with these in progress."""
    rig = Rig(**options)
    rig.add(*messages)
    rig.work()
    assert rig.held() == ([], list(messages))
    return rig


def full(**options):
    """A rig with a and b in progress, c and d pending."""
    rig = Rig(6, **options)
    rig.add("a", "b")
    rig.work()
    rig.add("c", "d")
    return rig


ALL_CANCELLED = [(message, "CANCELLED") for message in "abcd"]


def slots(queue, where):
    """The slots of a list, in order."""
    out = []
    slot = queue._next[where]
    while slot != where:
        assert slot >= 0 and len(out) < queue.capacity, "list {} is broken".format(where)
        out.append(slot)
        slot = queue._next[slot]
    return out


def listed(queue, where):
    """The messages of a list, in order."""
    return [queue._messages[slot] for slot in slots(queue, where)]


def check(queue):
    """Prove the invariants of a queue: each slot in one list, links and counts agree, no leaks."""
    seen = []
    for where in (_PENDING, _IN_PROGRESS, _LEAVING, _FREE):
        here = slots(queue, where)
        assert len(here) == queue._sizes[where]
        prior = where
        for slot in here:
            assert queue._prev[slot] == prior and queue._where[slot] == where
            prior = slot
        assert queue._prev[where] == prior
        seen += here
    assert sorted(seen) == list(range(queue.capacity))
    free = queue._sizes[_FREE]
    assert len(queue) == queue.capacity - free and queue.is_empty() == (not len(queue))
    for slot in range(queue.capacity):
        if queue._where[slot] == _FREE:
            kept = (queue._messages[slot], queue._on_complete[slot], queue._contexts[slot])
            assert kept == (None, None, None), "slot {} keeps {}".format(slot, kept)
        else:
            assert queue._messages[slot] is not None
            assert queue._ids[slot] > 0 and (queue._ids[slot] - 1) % queue.capacity == slot
            least = 1 if queue._where[slot] == _IN_PROGRESS else 0
            assert least <= queue._attempts[slot] or queue._where[slot] == _LEAVING
    last = queue._last
    assert last == _PENDING or queue._where[last] == _PENDING
