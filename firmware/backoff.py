"""Backoff: how long to wait before the next try to connect (L5).

The ceiling doubles with each failure up to a cap, and the wait is drawn evenly below it (full
jitter), so that a thousand boards that lost one broker do not come back in one second. Only a
delivery proves the broker well again and resets it: a broker that accepts and drops is no better
than one that is gone. What trying again cannot mend waits the whole cap.
"""


class Backoff:
    """Waits between `minimum_ms` and `cap_ms`; `getrandbits(n)` gives n random bits."""

    def __init__(self, minimum_ms, cap_ms, getrandbits):
        if not 1 <= minimum_ms <= cap_ms:
            raise ValueError("back-off {} to {} ms: 1 <= least <= cap".format(minimum_ms, cap_ms))
        self._minimum_ms = minimum_ms
        self._cap_ms = cap_ms
        self._getrandbits = getrandbits
        self.ceiling_ms = minimum_ms

    def reset(self):
        """A message was delivered."""
        self.ceiling_ms = self._minimum_ms

    def next_ms(self, permanent=False):
        """The next wait in milliseconds; the whole cap when the failure is `permanent`."""
        if permanent:
            self.ceiling_ms = self._cap_ms
            return self._cap_ms
        ceiling = self.ceiling_ms
        self.ceiling_ms = min(2 * ceiling, self._cap_ms)
        return self._getrandbits(24) % (ceiling + 1)
