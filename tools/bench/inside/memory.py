"""Heap allocated per message by the core alone and with the link, and growth over a long run."""

import asyncio
import gc
import json
import time

import micropython
from rig import PAYLOAD, Line

from millpond.batch import F7Writer
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message import NORMAL, QOS_AT_LEAST_ONCE, TopicTable
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.reading import FLOAT32, pack_reading
from millpond.sender import Sender

_CORE_MESSAGES = 20000
_LINK_MESSAGES = 5000
_LONG_RUN = 200000


class Core:
    """The line from the intake to the acknowledgement, with nobody at its end."""

    def __init__(self):
        topics = TopicTable()
        self.data = topics.index("bench/data")
        self.other = topics.index("bench/other")
        clock = Clock(time.ticks_ms)
        clock.set_unix(1767225600)
        ledger = Ledger()
        self.queue = MessageQueue(64, 96, topics)
        self.ring = PagedRing(49152, 4096, 4, on_drop=ledger.lost)
        self.packer = Packer(
            self.queue, self.ring, clock, ledger, lambda: F7Writer(1, 1), self.data, 1, 50, 0
        )
        self.sender = Sender(
            self.ring, topics, on_delivered=ledger.delivered, prepare=self.packer.prepare
        )
        self.sender.connected(False, 0)
        self.record = bytearray(13)
        pack_reading(self.record, 0, 7, FLOAT32, 21.5, 5)

    def pass_on(self, n):
        """Send `n` items, every second one a reading, from enqueue to acknowledged."""
        queue = self.queue
        sender = self.sender
        for i in range(n):
            if i & 1:
                queue.enqueue(self.data, self.record, QOS_AT_LEAST_ONCE, NORMAL, False, 0, i)
            else:
                queue.enqueue(self.other, PAYLOAD, QOS_AT_LEAST_ONCE, i & 3, False, 0, i)
            if i & 15 == 15:
                self.packer.poll(i, True)
            while sender.next(i):
                sender.left(i)
                sender.acked(sender.packet_id, i)


def core_bytes():
    """Bytes a message; a MemoryError under the locked heap would end the benchmark."""
    core = Core()
    core.pass_on(1000)
    micropython.heap_lock()
    core.pass_on(_CORE_MESSAGES)
    micropython.heap_unlock()
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    core.pass_on(_CORE_MESSAGES)
    spent = gc.mem_alloc() - before
    gc.enable()
    return spent / _CORE_MESSAGES


async def link_bytes(line):
    await line.send(500)
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    await line.send(_LINK_MESSAGES)
    spent = gc.mem_alloc() - before
    gc.enable()
    return spent / _LINK_MESSAGES


async def growth(line):
    """Bytes that a long run from the intake on leaves on the heap, after a collect."""
    await line.send_all_the_way(2000)
    gc.collect()
    before = gc.mem_alloc()
    await line.send_all_the_way(_LONG_RUN)
    gc.collect()
    return gc.mem_alloc() - before


async def main():
    core = core_bytes()
    line = Line("memory")
    await line.connect()
    link = await link_bytes(line)
    grown = await growth(line)
    line.close()
    print(
        json.dumps(
            {
                "core_bytes_per_message": core,
                "link_bytes_per_message": link,
                "heap_growth_bytes": grown,
                "messages": _LONG_RUN,
            }
        )
    )


asyncio.run(main())
