"""The line from `ring.append` to the acknowledgement, as the firmware composes it."""

import asyncio
import random
import sys
import time

from firmware.backoff import Backoff
from firmware.dial import sockaddr
from firmware.link import UP, Link
from firmware.log import Log
from firmware.opening import Opening
from firmware.uplink import Uplink
from millpond.batch import F7Writer
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import NORMAL, TopicTable, make_tag
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.sender import Sender

TOPIC = "bench/data"
PAYLOAD = bytes(64)


def address():
    """Host and port of the broker, from the command line."""
    return sys.argv[1], int(sys.argv[2])


async def resolve_at_once(host, port):
    """The broker's address, which is in numbers."""
    return sockaddr(host, port)


class Line:
    """Intake, packer, ring, sender and uplink on one connection.

    `send` begins at the ring, `send_all_the_way` at the intake queue. `port` is the broker's where
    the command line says something else; `ring` and `page` are bytes, `link` is for the Link.
    """

    def __init__(self, client_id, log_level="error", port=0, ring=49152, page=4096, **link):
        host, broker = address()
        clock = Clock(time.ticks_ms)
        topics = TopicTable()
        self._topic = topics.index(TOPIC)
        self.tag = make_tag(self._topic, 1, False)
        self._ledger = Ledger()
        self.ring = PagedRing(ring, page, 4, on_drop=self._ledger.lost)
        self.queue = MessageQueue(64, 96, topics)
        self.packer = Packer(
            self.queue, self.ring, clock, self._ledger, lambda: F7Writer(1, 1), "bench/readings"
        )
        self.sender = Sender(
            self.ring, topics, on_delivered=self._delivered, prepare=self.packer.prepare
        )
        link.setdefault("resolve", resolve_at_once)
        self.link = Link(client_id, host, port or broker, keepalive=0, **link)
        log = Log(log_level, clock)
        self.uplink = Uplink(
            self.link,
            self.sender,
            self.ring,
            clock,
            Backoff(10, 100, random.getrandbits),
            log,
            Opening(self.link, self.sender, clock, log),
            clean_session=True,
        )
        self._left = 0
        self._from_intake = False
        self._done = asyncio.Event()
        self._task = None

    async def connect(self):
        self._task = asyncio.create_task(self.uplink.run(_nothing))
        while self.link.state != UP:
            await asyncio.sleep_ms(1)

    async def send(self, n, held=8):
        """Append and deliver `n` messages, never more than `held` waiting at a time."""
        self._from_intake = False
        await self._send(n, held)

    async def send_all_the_way(self, n, held=8):
        """As `send`, but enqueue each message and let the packer bring it to the ring."""
        self._from_intake = True
        await self._send(n, held)

    async def drained(self):
        """Wait until all that the ring holds is acknowledged."""
        self._done.clear()
        if self.ring.messages():
            await self._done.wait()

    async def _send(self, n, held):
        self._done.clear()
        self._left = n
        for _ in range(min(n, held)):
            self._produce()
        self.uplink.kick()
        await self._done.wait()

    def _produce(self):
        self._left -= 1
        if self._from_intake:
            self.queue.enqueue(self._topic, PAYLOAD, 1, NORMAL)
            self.packer.poll(0, True)
        else:
            self.ring.append(PAYLOAD, NORMAL, self.tag)

    def _delivered(self, at, length, tag):
        self._ledger.delivered(at, length, tag)
        if self._left:
            self._produce()
        elif not self.ring.messages():
            self._done.set()

    def close(self):
        self._task.cancel()
        self.link.close()


def _nothing():
    pass
