"""What the tests of the queue share: a filled queue, what is in one, and a watch for garbage."""

import gc

from millpond.message import Message
from millpond.message_queue import MessageQueue
from tests_host.kit import MICROPYTHON

WRAP = 1 << 30


def filled(capacity, *priorities, **options):
    """A queue with a message per priority, in that order, the payload its number: b"0", b"1" …"""
    queue = MessageQueue(capacity, 8, **options)
    for i, priority in enumerate(priorities):
        assert queue.enqueue("t", str(i).encode(), priority=priority)
    return queue


def shown(queue):
    """The payload that peek has shown, by its place in the buffer."""
    return bytes(queue.buffer[queue.head_at : queue.head_at + queue.head_length])


def drained(queue, now=0):
    """Every payload in the order it comes out; the queue is empty afterwards."""
    message = Message(queue.slot_size)
    out = []
    while queue.dequeue(message, now):
        queue.check()
        out.append(bytes(message.payload[: message.length]))
    return out


def books(queue):
    """The counters: enqueued, dequeued, refused, displaced, expired, cleared."""
    s = queue.stats
    return (s.enqueued, s.dequeued, s.refused, s.displaced, s.expired, s.cleared)


def leaves_the_heap_alone(call):
    """Run `call`; on MicroPython, assert that it took nothing from the heap, not even for a moment.

    A locked heap does not show a frame taken from the heap: MicroPython then uses the stack. Here
    the collector is set to run 8 KB from now; if it has run, the garbage laid out before is gone.
    """
    call()
    if not MICROPYTHON:
        return
    gc.collect()
    empty = gc.mem_alloc()
    garbage = [bytearray(1000) for _ in range(40)]
    before = gc.mem_alloc()
    gc.threshold(before - empty + 8192)
    del garbage
    call()
    left = gc.mem_alloc()
    gc.threshold(-1)
    assert left >= before, "the collector ran: {} bytes before, {} left".format(before, left)
