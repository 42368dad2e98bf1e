"""Pump: moves on what the intake holds, and lets go what may be sent.

    MessageQueue --poll--> Packer --> PagedRing --kick--> Uplink

Who has put something into the intake calls `now`, so that it waits for nothing. `run` is the task
for what time alone brings: batches that are old enough, messages that have expired, receipts that
are due. Nothing is kept here, so the task may be stopped and started again anywhere.
"""

import asyncio

from micropython import const

from millpond.clock import diff

_PERIOD_MS = const(50)
_LIMIT = const(64)  # items packed in one turn of the loop
_EXPIRE_MS = const(1000)


class Pump:
    """Moves from `queue` through `packer` to `ring`, and on over `uplink`; works `receipts`."""

    def __init__(self, queue, packer, ring, receipts, uplink, clock):
        self._queue = queue
        self._packer = packer
        self._ring = ring
        self._receipts = receipts
        self._uplink = uplink
        self._clock = clock

    def poll(self):
        """Bring what the intake holds to the ring."""
        self._packer.poll(self._clock.now(), self._uplink.is_up(), _LIMIT)

    def now(self):
        """Bring what the intake holds to the ring, and send what may be sent."""
        self.poll()
        self._uplink.kick()

    def flush(self):
        """Send now what the intake and open batches hold."""
        self.poll()
        self._packer.flush()
        self._uplink.kick()

    async def run(self, beat):
        """Do what time alone brings, for ever."""
        expired_at = self._clock.now()
        while True:
            beat()
            self._receipts.work()
            self.now()
            now = self._clock.now()
            self._ring.seconds = self._clock.seconds
            if diff(now, expired_at) >= _EXPIRE_MS:
                expired_at = now
                self._queue.expire(now)
                self._ring.expire()
            await asyncio.sleep_ms(_PERIOD_MS)
