"""What the tests of the queue share: a filled queue, and what is in one."""

from millpond.message import Message
from millpond.message_queue import MessageQueue

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
