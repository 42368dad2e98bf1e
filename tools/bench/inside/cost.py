"""What an operation costs, in ns, when 10, 1,000 or 30,000 messages are held.

Each run puts a few messages in and takes as many out, so that the number held stays what it is.
"""

import json
import time

from millpond.dispatch import SUCCESS, DispatchQueue
from millpond.message_queue import MessageQueue
from millpond.paged_ring import PagedRing

_HELD = (10, 1000, 30000)
_RUNS = 100
_CALLS = 200
_PAYLOAD = bytes(16)


class Queue:
    """MessageQueue: enqueue, peek and pop."""

    def __init__(self, held):
        self._queue = MessageQueue(held + 1, 16)
        self._topic = self._queue.topics.index("t")
        for _ in range(held):
            self._queue.enqueue(self._topic, _PAYLOAD)

    def work(self):
        queue = self._queue
        for _ in range(_CALLS):
            queue.enqueue(self._topic, _PAYLOAD)
            queue.peek(0)
            queue.pop(0)


class Displaced:
    """MessageQueue: a full queue displaces its oldest of the lowest priority."""

    def __init__(self, held):
        self._queue = MessageQueue(held, 16, overflow="oldest")
        self._topic = self._queue.topics.index("t")
        for _ in range(held):
            self._queue.enqueue(self._topic, _PAYLOAD)

    def work(self):
        for _ in range(_CALLS):
            self._queue.enqueue(self._topic, _PAYLOAD)


class Ring:
    """PagedRing: append, head, sent and ack."""

    def __init__(self, held):
        self._ring = PagedRing(24 * (held + 500) + 8192, 1024)
        for _ in range(held):
            self._ring.append(_PAYLOAD)

    def work(self):
        ring = self._ring
        for _ in range(_CALLS):
            ring.append(_PAYLOAD)
            ring.head()
            ring.sent(1)
            ring.ack(1)


class Stolen:
    """PagedRing: append where every page has to be stolen."""

    def __init__(self, held):
        self._ring = PagedRing(max(3, -(-held // 42)) * 1024, 1024)
        for _ in range(held + 500):
            self._ring.append(_PAYLOAD)

    def work(self):
        for _ in range(_CALLS):
            self._ring.append(_PAYLOAD)


class Dispatch:
    """DispatchQueue: add, and complete what was added, with others in progress."""

    def __init__(self, held):
        self._items = []
        self._queue = DispatchQueue(self._process, lambda: 0, held + 2)
        for _ in range(held):
            self._queue.add("m")
        self._queue.do_work()

    def _process(self, item, message, complete, context):
        self._items.append(item)

    def work(self):
        queue = self._queue
        for _ in range(_CALLS):
            queue.add("m")
            queue.do_work()
            queue.complete(self._items.pop(), SUCCESS)


def least_ns(subjects):
    """The least time one call took of each, in ns; by turns, for the machine's moods."""
    least = [1 << 29] * len(subjects)
    for _ in range(_RUNS):
        for i in range(len(subjects)):
            start = time.ticks_us()
            subjects[i].work()
            spent = time.ticks_diff(time.ticks_us(), start)
            least[i] = min(least[i], spent * 1000 // _CALLS)
    return least


def main():
    costs = {}
    for kind in (Queue, Displaced, Ring, Stolen, Dispatch):
        costs[kind.__name__.lower()] = least_ns([kind(held) for held in _HELD])
    print(json.dumps(costs))


main()
