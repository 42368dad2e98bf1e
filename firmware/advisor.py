"""Advisor: what the health judges say of the intake and the ring, for a person (Q10).

The intake is a MessageQueue and judged as such. Of the ring it is the pages that are full or not,
and messages that are offered, lost and delivered; it counts no waiting times.
"""

from millpond.health import HealthJudge


class Advisor:
    """Judges `queue` and `ring`; `advice` is what was last said of them, a line each."""

    def __init__(self, queue, ring):
        self._queue = queue
        self._ring = ring
        self._intake = HealthJudge("the intake")
        self._pages = HealthJudge("the ring")
        self.advice = []

    def look(self, now):
        """Judge both anew; to be called every few seconds."""
        ring = self._ring
        found = self._intake.judge(now, self._queue)
        in_use = ring.pages - ring.pages_free()
        found += self._pages.weigh(now, in_use, ring.pages, ring_totals(ring))
        self.advice = [text for _, text in found]


def ring_totals(ring):
    """Messages offered to the ring, lost by it and delivered from it, and no waiting times."""
    lost = sum(ring.stolen) + sum(ring.expired) + sum(ring.dropped) + sum(ring.refused)
    acked = sum(ring.acked)
    return acked + lost + ring.messages(), lost, acked, 0
