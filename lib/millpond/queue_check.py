"""The proof of a MessageQueue's invariants, kept apart because only tests and doubters run it."""

from millpond.message import PRIORITIES

_FLAGS = 15  # where a slot has its flags (see message_queue)


def check(queue):
    """AssertionError naming the first invariant of `queue` that is broken."""
    taken = list(queue._free)[queue._count :]
    for lane in range(PRIORITIES):
        taken += _check_lane(queue, lane)
    _expect(sum(queue._counts) == queue._count, "lanes do not add up to the count")
    _expect(sorted(taken) == list(range(queue.capacity + 1)), "slots {}".format(sorted(taken)))
    stats = queue.stats
    held = stats.enqueued - stats.dequeued - stats.displaced - stats.expired - stats.cleared
    _expect(held == queue._count, "counted {}, held {}".format(held, queue._count))


def _check_lane(queue, lane):
    """Check a lane's ring; its slots in order."""
    head = queue._heads[lane]
    count = queue._counts[lane]
    _expect(0 <= head < queue.capacity, "lane {}: head {}".format(lane, head))
    tail = (head + count) % queue.capacity
    _expect(tail == queue._tails[lane], "lane {}: tail is not at {}".format(lane, tail))
    slots = [queue._rings[lane][(head + i) % queue.capacity] for i in range(count)]
    for slot in slots:
        flags = queue.buffer[slot * queue._stride + _FLAGS]
        _expect(flags >> 2 & 3 == lane, "slot {} is in lane {}".format(slot, lane))
        _expect(lane <= queue._top, "lane {} is above the top".format(lane))
    return slots


def _expect(holds, text):
    if not holds:
        raise AssertionError(text)
