"""What lost messages in the stores of others, in MessageQueue, PagedRing and DispatchQueue."""

from millpond.dispatch import SUCCESS, DispatchQueue
from millpond.message import CRITICAL, HIGH, LOW, NORMAL, Message, TopicTable, make_tag
from millpond.message_queue import OVERFLOWS, MessageQueue
from millpond.paged_ring import PagedRing
from millpond.sender import Sender
from tests_host.core.queue_kit import drained

PAGE = 64


def numbered(n, size=8):
    return (b"%04d" % n + bytes(size))[:size]


def held_by(ring):
    """Every payload in the order it comes out of a ring; it is empty afterwards."""
    out = []
    while ring.head():
        out.append(bytes(ring.buffer[ring.head_at : ring.head_at + ring.head_length]))
        ring.sent(1)
        assert ring.ack(1)
        ring.check()
    return out


# -- every capacity, from the smallest -----------------------------------------------------------


def test_mq_MsgQueue_a_queue_of_any_capacity_holds_as_many_and_gives_them_all():
    """Report: mq/MsgQueue."""
    for overflow in OVERFLOWS:
        for capacity in range(1, 21):
            queue = MessageQueue(capacity, 8, overflow=overflow)
            assert drained(queue) == []
            for first in (0, 1, 100):
                assert queue.enqueue("t", numbered(first))
                assert drained(queue) == [numbered(first)]
            for _ in range(3):
                for n in range(capacity):
                    assert not queue.is_full() and queue.enqueue("t", numbered(n))
                assert queue.is_full() and len(queue) == capacity
                assert drained(queue) == [numbered(n) for n in range(capacity)]
                assert queue.is_empty() and queue.stats.refused == queue.stats.displaced == 0


def test_mq_MsgQueue_one_more_than_the_capacity_is_one_that_is_counted():
    """Report: mq/MsgQueue."""
    for capacity in range(1, 21):
        for overflow, lost in (("displace", "refused"), ("reject", "refused"), ("oldest", "first")):
            queue = MessageQueue(capacity, 8, overflow=overflow)
            for n in range(capacity + 1):
                queue.enqueue("t", numbered(n))
            first = lost == "first"
            kept = range(first, capacity + first)
            assert queue.stats.refused + queue.stats.displaced == 1
            assert drained(queue) == [numbered(n) for n in kept]


def test_mq_MsgQueue_a_ring_of_any_number_of_pages_fills_every_one():
    """Report: mq/MsgQueue."""
    for pages in range(3, 21):
        ring = PagedRing(pages * PAGE, PAGE)
        assert ring.append(numbered(0)) and held_by(ring) == [numbered(0)]
        for _ in range(2):
            for n in range(pages):
                assert ring.append(numbered(n, ring.page_payload))
            assert ring.pages_free() == 0 and ring.stolen == [0]
            assert held_by(ring) == [numbered(n, ring.page_payload) for n in range(pages)]
            assert ring.pages_free() == pages


class Items:
    """A DispatchQueue that notes what it attempts and what it tells."""

    def __init__(self, capacity):
        self.items = []
        self.told = []
        self.queue = DispatchQueue(self.process, lambda: 0, capacity)

    def process(self, item, message, complete, context):
        self.items.append(item)

    def tell(self, message, result, reason, context):
        self.told.append((message, result))

    def finish(self):
        """Process all and complete all; what was told."""
        self.queue.do_work()
        while self.items:
            assert self.queue.complete(self.items.pop(0), SUCCESS)
        told = self.told
        self.told = []
        return told


def test_mq_MsgQueue_a_dispatch_queue_of_any_capacity_holds_as_many():
    """Report: mq/MsgQueue, Telegraf#17240."""
    for capacity in range(1, 21):
        items = Items(capacity)
        for _ in range(3):
            for n in range(capacity):
                assert items.queue.add(n, items.tell)
            assert items.queue.add(-1, items.tell) == 0
            assert items.finish() == [(n, SUCCESS) for n in range(capacity)]
            assert items.queue.is_empty()
            assert items.queue.add("first", items.tell)
            assert items.finish() == [("first", SUCCESS)]


# -- the first after a drain ---------------------------------------------------------------------


def test_Telegraf_17240_the_first_after_a_full_drain_on_every_lane_of_the_queue():
    """Report: Telegraf#17240."""
    for overflow in OVERFLOWS:
        for capacity in (1, 2, 3, 7):
            queue = MessageQueue(capacity, 8, overflow=overflow)
            for fill in range(capacity + 2):
                for priority in (LOW, NORMAL, HIGH, CRITICAL):
                    for n in range(fill):
                        queue.enqueue("t", numbered(n), priority=priority)
                    drained(queue)
                    assert queue.enqueue("t", b"first", priority=priority)
                    assert drained(queue) == [b"first"]


def test_Telegraf_17240_the_first_after_a_full_drain_wherever_the_page_ended():
    """Report: Telegraf#17240."""
    for lane in range(4):
        for size in range(PAGE - 7):
            for count in (1, 2, 7, 11):
                ring = PagedRing(5 * PAGE, PAGE, 4)
                for n in range(count):
                    ring.append(numbered(n, size), lane)
                held_by(ring)
                assert ring.append(b"first", lane)
                assert ring.messages() == 1 and held_by(ring) == [b"first"]


# -- connections come and go ---------------------------------------------------------------------


def test_thingsboard_gateway_2124_what_is_stored_outlives_every_connection():
    """Report: thingsboard-gateway#2124."""
    topics = TopicTable()
    tag = make_tag(topics.index("t"), 1, False)
    ring = PagedRing(20 * PAGE, PAGE, 4)
    sender = Sender(ring, topics)
    for n in range(60):
        ring.append(numbered(n), n % 4, tag)
    expected = [n for lane in (3, 2, 1, 0) for n in range(60) if n % 4 == lane]
    for connection in range(50):
        sender.connected(connection % 2 == 1, 0)
        assert ring.messages() == 60
        if connection % 3:
            assert sender.next(0)
        if connection % 3 == 2:
            sender.left(0)
        sender.disconnected()
        assert ring.messages() == 60
        ring.check()
    sender.connected(False, 0)
    out = []
    while sender.next(0):
        out.append(int(bytes(ring.buffer[sender.at : sender.at + 4])))
        sender.left(0)
        assert sender.acked(sender.packet_id, 0)
    assert out == expected and ring.messages() == 0


# -- more than fits ------------------------------------------------------------------------------


def test_PahoJava_224_of_30_into_10_the_last_10_are_left_and_none_comes_back():
    """Report: PahoJava#224, PahoJava#594."""
    queue = MessageQueue(10, 8, overflow="oldest")
    for n in range(30):
        assert queue.enqueue("t", numbered(n))
        assert len(queue) == min(n + 1, 10)
    assert queue.stats.displaced == 20 and queue.stats.refused == 0
    assert drained(queue) == [numbered(n) for n in range(20, 30)]
    message = Message(8)
    assert not queue.dequeue(message, 0) and queue.is_empty()
    for overflow in ("displace", "reject"):
        queue = MessageQueue(10, 8, overflow=overflow)
        taken = [queue.enqueue("t", numbered(n)) > 0 for n in range(30)]
        assert taken == [True] * 10 + [False] * 20 and queue.stats.refused == 20
        assert drained(queue) == [numbered(n) for n in range(10)]


def test_PahoJava_594_of_30_pages_into_10_the_last_10_are_left_over_any_number_of_connections():
    """Report: PahoJava#224, PahoJava#594."""
    lost = []
    ring = PagedRing(10 * PAGE, PAGE, on_drop=lambda at, length, *_: lost.append(length))
    topics = TopicTable()
    tag = make_tag(topics.index("t"), 1, False)
    sender = Sender(ring, topics)
    for n in range(30):
        assert ring.append(numbered(n, ring.page_payload), 0, tag)
        sender.connected(False, 0)
        sender.disconnected()
        assert ring.messages() == min(n + 1, 10)
    assert ring.stolen == [20] and len(lost) == 20
    assert held_by(ring) == [numbered(n, ring.page_payload) for n in range(20, 30)]
    assert ring.messages() == 0 and not ring.head()
