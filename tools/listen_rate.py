"""Rate: how many readings come in a second, where they come in batches, seconds apart.

The mean over the last half minute, from arrival to arrival: what came with the first arrival came
before the time that is measured, so that whole periods are counted however long they are.
"""

from collections import deque

_OVER_S = 30.0
_AT_LEAST_S = 5.0


class Rate:
    """Fed the Unix time at which each reading came."""

    def __init__(self):
        self._arrivals: deque[list] = deque()  # [time, readings]

    def add(self, received: float) -> None:
        """One reading came."""
        if self._arrivals and self._arrivals[-1][0] == received:
            self._arrivals[-1][1] += 1
        else:
            self._arrivals.append([received, 1])
            self._forget(received)

    def per_second(self, now: float) -> float | None:
        """Readings per second; None when they have not come for long enough to tell."""
        self._forget(now)
        if not self._arrivals:
            return 0.0
        times = [time for time, _ in self._arrivals]
        gap = max((b - a for a, b in zip(times, times[1:], strict=False)), default=0.0)
        span = max(times[-1], now - gap) - times[0]
        if len(times) < 2 or span < _AT_LEAST_S:
            return None
        return (sum(number for _, number in self._arrivals) - self._arrivals[0][1]) / span

    def text(self, now: float) -> str:
        """The rate as it is shown."""
        rate = self.per_second(now)
        return "…/s" if rate is None else f"{rate:.1f}/s"

    def _forget(self, now: float) -> None:
        while self._arrivals and self._arrivals[0][0] < now - _OVER_S:
            self._arrivals.popleft()
