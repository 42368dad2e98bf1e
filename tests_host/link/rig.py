"""Rig, the inside: the line from ring to broker in a MicroPython process, as a test orders.

    PagedRing -> Sender -> Uplink/Link -> the broker (or what stands in its place)

The first line of standard input has its options as JSON. Each further line is an order, {"do":
name, ...}, for the method `do_<name>`; its answer is the line {"done": name, ...} on standard
output. Between them stand the events: {"log": text} for each line of the log, {"inbound":
topic, ...} for each message received, {"stray": text} for an exception that escaped a task.

Messages are numbered from 0; each payload repeats its number. `advance` lets the clock jump, so
that a deadline of a minute need not be waited for.
"""

import asyncio
import gc
import json
import random
import sys
import time

import umqtt.simple
from firmware.backoff import Backoff
from firmware.link import Link
from firmware.uplink import Uplink
from millpond.clock import Clock, diff
from millpond.message import TopicTable, make_tag
from millpond.paged_ring import PagedRing
from millpond.sender import Sender

OPTIONS = {
    "host": "127.0.0.1",
    "port": 0,
    "client_id": "rig",
    "user": None,
    "password": None,
    "keepalive_s": 60,
    "clean_session": False,
    "connect_timeout_s": 10,
    "ack_timeout_s": 20,
    "backoff_ms": [1, 50],
    "ring_bytes": 65536,
    "page_bytes": 4096,
    "rate_limit": 0,
    "will": None,
    "greetings": [],
    "subscriptions": [],
    "topic": "rig/data",
    "receive": 1024,
    "first_id": 0,
    "start_ms": 0,
    "send_buffer": 0,
}
LANES = 4
TICK_MS = 10
SOL_SOCKET = 1
SO_SNDBUF = 7


def say(**event):
    print(json.dumps(event))


class Log:
    """The log that an Uplink writes, as events."""

    def info(self, text):
        say(log=text)

    warning = info


class NarrowLink(Link):
    """A Link whose socket takes only `send_buffer` bytes at once, as a board's does."""

    send_buffer = 0

    def _set_nodelay(self, sock):
        super()._set_nodelay(sock)
        if self.send_buffer:
            sock.setsockopt(SOL_SOCKET, SO_SNDBUF, self.send_buffer)


class Rig:
    """The composition, and what may be ordered."""

    def __init__(self, options):
        self.o = options
        self.skew_ms = options["start_ms"] - time.ticks_ms()
        self.clock = Clock(lambda: time.ticks_ms() + self.skew_ms)
        self.beat_at = self.clock.now()
        self.numbers = 0
        self.received = 0
        self.topics = TopicTable()
        self.ring = PagedRing(options["ring_bytes"], options["page_bytes"], LANES)
        self.sender = Sender(
            self.ring, self.topics, options["ack_timeout_s"], options["rate_limit"]
        )
        for _ in range(options["first_id"]):
            self.sender.next_packet_id()
        self.backoff = Backoff(*options["backoff_ms"], random.getrandbits)
        self.link = self.make_link()
        self.uplink = Uplink(
            self.link,
            self.sender,
            self.ring,
            self.clock,
            self.backoff,
            Log(),
            options["clean_session"],
            None,
            lambda: options["greetings"],
            options["subscriptions"],
        )

    def make_link(self):
        o = self.o
        link = NarrowLink(
            o["client_id"],
            o["host"],
            o["port"],
            o["user"],
            o["password"],
            o["keepalive_s"],
            largest=self.ring.page_payload + 64,
            receive=o["receive"],
            connect_timeout_s=o["connect_timeout_s"],
        )
        link.send_buffer = o["send_buffer"]
        link.set_callback(self.on_inbound)
        if o["will"]:
            link.set_last_will(*o["will"], True, 1)
        return link

    def on_inbound(self, topic, payload):
        self.received += 1
        say(inbound=topic.decode(), size=len(payload), text=payload[:40].decode())

    def beat(self):
        self.beat_at = self.clock.now()

    # -- tasks -----------------------------------------------------------------------------------

    async def run(self):
        asyncio.get_event_loop().set_exception_handler(on_stray)
        tasks = [
            asyncio.create_task(guarded(job))
            for job in (self.uplink.run(self.beat), self.tick(), self.trickle())
        ]
        await self.obey()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def tick(self):
        while True:
            self.uplink.tick()
            await asyncio.sleep_ms(TICK_MS)

    async def trickle(self):
        self.trickling = None
        while True:
            await asyncio.sleep_ms(TICK_MS)
            if self.trickling:
                self.do_put(**self.trickling)

    async def obey(self):
        orders = asyncio.StreamReader(sys.stdin)
        while True:
            line = await orders.readline()
            if not line:
                return
            order = json.loads(line)
            name = order.pop("do")
            say(done=name, **(getattr(self, "do_" + name)(**order) or {}))

    # -- orders ----------------------------------------------------------------------------------

    def do_put(self, n=1, size=64, qos=1, lane=0, topic=None, text=None):
        """Append `n` numbered messages of `size` bytes, or the one payload `text`, and send."""
        tag = make_tag(self.topics.index(topic or self.o["topic"]), qos, False)
        for _ in range(n):
            payload = numbered(self.numbers, size) if text is None else text.encode()
            self.numbers += text is None
            self.ring.append(payload, lane, tag)
            self.uplink.kick()

    def do_trickle(self, **put):
        """`put` such messages every 10 ms; without any, stop doing so."""
        self.trickling = put

    def do_advance(self, ms):
        """Let the clock jump ahead, right after a look at the deadlines."""
        self.uplink.tick()
        self.skew_ms += ms

    def do_give_up(self):
        self.uplink.give_up("the test says so")

    def do_memory(self):
        gc.collect()
        return {"used": gc.mem_alloc()}

    def do_umqtt(self):
        return {"file": umqtt.simple.__file__}

    def do_stats(self):
        """All there is to know."""
        uplink, link, sender, ring = self.uplink, self.link, self.sender, self.ring
        now = self.clock.now()
        return {
            "up": uplink.is_up(),
            "state": link.state,
            "connects": uplink.connects,
            "attempts": uplink.attempts,
            "losses": uplink.losses,
            "reason": uplink.reason,
            "waiting_ms": uplink.waiting_ms,
            "ceiling_ms": self.backoff.ceiling_ms,
            "pings": link.pings,
            "skipped": link.skipped,
            "received": self.received,
            "delivered": sender.delivered,
            "resent": sender.resent,
            "sending": sender.state,
            "held": ring.messages(),
            "stolen": sum(ring.stolen),
            "stray_acks": ring.stray_acks,
            "silent_ms": diff(now, self.beat_at),
            "now": now,
        }


def numbered(n, size):
    """The payload of message `n`: its six digits, again and again."""
    digits = "{:06d}".format(n).encode()
    return (digits * (size // 6 + 1))[:size]


def on_stray(_loop, context):
    error = context["exception"]
    sys.print_exception(error)
    say(stray="{}: {}".format(type(error).__name__, error))


async def guarded(job):
    try:
        await job
    except Exception as error:
        on_stray(None, {"exception": error})


if __name__ == "__main__":
    options = dict(OPTIONS)
    options.update(json.loads(sys.stdin.readline()))
    asyncio.run(Rig(options).run())
