"""Advisor: what is to be said of the intake, the ring and the link, for a person (Q10).

The intake is a MessageQueue and judged as such. Of the ring it is the pages that are full or not,
and messages that are offered, lost and delivered; it counts no waiting times. A link that is lost
again and again is never down for long, so its losses are counted, a window after the other.
"""

from micropython import const

from millpond.clock import diff
from millpond.health import HealthJudge

_WINDOW_MS = const(60000)
_UNSTEADY = const(3)  # losses of the link in a window


class Advisor:
    """Judges `queue`, `ring` and `uplink`; `advice` is what was last said of them, a line each."""

    def __init__(self, queue, ring, uplink):
        self._queue = queue
        self._ring = ring
        self._uplink = uplink
        self._intake = HealthJudge("the intake")
        self._pages = HealthJudge("the ring")
        self._losses = uplink.losses  # when the window began
        self._window_at = None
        self._unsteady = []
        self.advice = []

    def look(self, now):
        """Judge all anew; to be called every few seconds."""
        ring = self._ring
        found = self._intake.judge(now, self._queue)
        in_use = ring.pages - ring.pages_free()
        found += self._pages.weigh(now, in_use, ring.pages, ring_totals(ring))
        self.advice = self._link(now) + [text for _, text in found]

    def _link(self, now):
        """What there is to say of the losses of the link, a line or none."""
        uplink = self._uplink
        if self._window_at is None:
            self._window_at = now
        ms = diff(now, self._window_at)
        lost = uplink.losses - self._losses
        if lost >= _UNSTEADY:
            text = "the link was lost {} times in {} s, last: {}"
            self._unsteady = [text.format(lost, ms // 1000, uplink.reason)]
        elif ms >= _WINDOW_MS:
            self._unsteady = []
        if ms >= _WINDOW_MS:
            self._losses = uplink.losses
            self._window_at = now
        return self._unsteady


def ring_totals(ring):
    """Messages offered to the ring, lost by it and delivered from it, and no waiting times."""
    lost = sum(ring.stolen) + sum(ring.expired) + sum(ring.dropped) + sum(ring.refused)
    acked = sum(ring.acked)
    return acked + lost + ring.messages(), lost, acked, 0
