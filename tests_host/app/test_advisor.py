"""Advisor: what is said of intake and ring, and from what."""

from firmware.advisor import Advisor, ring_totals
from millpond.message_queue import MessageQueue
from millpond.paged_ring import PagedRing


class Link:
    """What is asked of an Uplink."""

    losses = 0
    reason = "the broker closed the connection"


def test_Q10_advice_of_both_judges():
    queue, ring = MessageQueue(10), PagedRing(640, 64)
    advisor = Advisor(queue, ring, Link())
    for _ in range(9):
        queue.enqueue("t", b"x")
        ring.append(bytes(50))
    assert advisor.advice == []
    advisor.look(1000)
    assert len(advisor.advice) == 2
    assert "the intake is 90 % full" in advisor.advice[0]
    assert "the ring is 90 % full" in advisor.advice[1]


def test_Q10_what_is_well_again_is_not_spoken_of():
    queue = MessageQueue(10)
    advisor = Advisor(queue, PagedRing(640, 64), Link())
    for _ in range(9):
        queue.enqueue("t", b"x", now=1000)
    advisor.look(1000)
    while queue.pop(1000):
        pass
    advisor.look(11000)
    assert advisor.advice == []


def test_ring_totals_count_what_was_offered_lost_and_delivered():
    ring = PagedRing(192, 64)
    for _ in range(5):
        ring.append(bytes(50))
    ring.sent(1)
    ring.ack(1)
    assert ring_totals(ring) == (5, 2, 1, 0)


def test_Q10_a_link_that_is_lost_again_and_again_is_told_until_it_holds():
    link = Link()
    advisor = Advisor(MessageQueue(10), PagedRing(640, 64), link)
    now = (1 << 30) - 3000
    text = "the link was lost 3 times in {} s, last: the broker closed the connection"
    for seconds, losses, said in (
        (0, 0, []),
        (30, 1, []),
        (30, 1, []),
        (1, 0, []),
        (5, 3, [text.format(6)]),
        (54, 0, [text.format(60)]),
        (59, 0, [text.format(60)]),
        (5, 0, []),
    ):
        now = (now + 1000 * seconds) & 0x3FFFFFFF
        link.losses += losses
        advisor.look(now)
        assert advisor.advice == said, (now, advisor.advice)
