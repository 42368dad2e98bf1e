"""Rig, the inside: the line from ring to broker in a MicroPython process, as a test orders.

    PagedRing -> Sender -> Uplink/Link -> the broker (or what stands in its place)

The first line of standard input has its options as JSON. Each further line is an order, {"do":
name, ...}, for the method `do_<name>`; its answer is the line {"done": name, ...} on standard
output. Between them stand the events: {"log": text} for each line of the log, {"inbound":
topic, ...} for each message received, {"wait_ms": n} for each wait before the next connection,
{"stray": text} for an exception that escaped a task.

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
from firmware.dial import sockaddr
from firmware.link import CLOSED, CONNECTING, GREETING, RESOLVING, SECURING, UP, Link
from firmware.opening import Opening
from firmware.resolver import Resolver
from firmware.supervisor import Supervisor
from firmware.tls import Tls
from firmware.uplink import Uplink
from millpond.clock import Clock
from millpond.message import TopicTable, make_tag
from millpond.paged_ring import STOLEN, PagedRing
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
    "max_retries": 5,
    "tls": None,
    "dns": None,
    "will": None,
    "greetings": [],
    "subscriptions": [],
    "topic": "rig/data",
    "receive": 1024,
    "first_id": 0,
    "start_ms": 0,
    "send_buffer": 0,
    "echo": False,
    "network": True,
    "tick_ms": 10,
}
LANES = 4
TRICKLE_MS = 10
LIMIT_MS = 20000
SOL_SOCKET = 1
SO_SNDBUF = 7
EPIPE = 32


def say(**event):
    print(json.dumps(event))


_SENDING = ("offline", "idle", "clearing", "leaving", "waiting", "release", "releasing")
_STATES = {
    CLOSED: "closed",
    RESOLVING: "resolving",
    CONNECTING: "connecting",
    SECURING: "securing",
    GREETING: "greeting",
    UP: "up",
}


class Log:
    """The log that an Uplink writes, as events."""

    def info(self, text):
        say(log=text)

    warning = error = info

    def exception(self, text, error):
        sys.print_exception(error)
        say(stray="{}: {}: {}".format(text, type(error).__name__, error))


class ToldBackoff(Backoff):
    """A Backoff whose waits are events."""

    def next_ms(self, permanent=False):
        ms = super().next_ms(permanent)
        say(wait_ms=ms)
        return ms


async def resolve_at_once(host, port):
    """By the port's own means, which stall the loop."""
    return sockaddr(host, port)


class NarrowLink(Link):
    """A Link whose socket takes only `send_buffer` bytes at once, as a board's does."""

    send_buffer = 0

    def _new_socket(self):
        sock = super()._new_socket()
        if self.send_buffer:
            sock.setsockopt(SOL_SOCKET, SO_SNDBUF, self.send_buffer)
        return sock


class BrokenOut:
    """A socket whose peer has gone, which only a write finds out."""

    def __init__(self, sock):
        self.readinto = sock.readinto
        self.close = sock.close

    def write(self, *_):
        raise OSError(EPIPE)


class Starving:
    """Stands in for an SSLContext, and for its socket if `late`, where memory is short: once."""

    readinto = None

    def __init__(self, tls, error, late):
        self._error = MemoryError() if error == "memory" else OSError(error)
        self._late = late
        self._tls, self._well = tls, tls._context
        tls._context = self

    def wrap_socket(self, *_, **__):
        self._tls._context = self._well
        if self._late:
            return self
        raise self._error

    def write(self, *_):
        raise self._error

    def close(self):
        pass


class Rig:
    """The composition, and what may be ordered."""

    def __init__(self, options):
        self.o = options
        self.skew_ms = options["start_ms"] - time.ticks_ms()
        self.clock = Clock(lambda: time.ticks_ms() + self.skew_ms)
        self.log = Log()
        self.network = options["network"]
        self.worst_lag_ms = 0
        self.numbers = 0
        self.received = 0
        self.dropped = []
        self.first_at = self.last_at = None
        self.topics = TopicTable()
        self.ring = PagedRing(
            options["ring_bytes"], options["page_bytes"], LANES, on_drop=self.on_drop
        )
        self.sender = Sender(
            self.ring,
            self.topics,
            options["ack_timeout_s"],
            options["rate_limit"],
            on_delivered=self.on_delivered,
            max_retries=options["max_retries"],
        )
        for _ in range(options["first_id"]):
            self.sender.next_packet_id()
        self.backoff = ToldBackoff(*options["backoff_ms"], random.getrandbits)
        self.link = self.make_link()
        self.uplink = self.make_uplink()
        self.trickling = None
        self.supervisor = Supervisor(self.clock, self.log)
        self.supervisor.add("link", self.uplink.run, LIMIT_MS)
        self.supervisor.add("tick", self.tick, LIMIT_MS)
        self.supervisor.add("trickle", self.trickle, LIMIT_MS)

    def make_uplink(self):
        self.opening = Opening(
            self.link,
            self.sender,
            self.clock,
            self.log,
            lambda: self.o["greetings"],
            self.o["subscriptions"],
        )
        return Uplink(
            self.link,
            self.sender,
            self.ring,
            self.clock,
            self.backoff,
            self.log,
            self.opening,
            self.o["clean_session"],
            lambda: None if self.network else "no network",
        )

    def make_resolve(self):
        servers = self.o["dns"]
        if servers is None:
            return resolve_at_once
        limit_ms = 800 * self.o["connect_timeout_s"]
        known = {"known.test": "127.0.0.1"}
        resolver = Resolver(
            lambda: servers,
            self.clock,
            self.log,
            random.getrandbits,
            limit_ms,
            lambda: known,
            lambda: self.uplink.connects,
        )
        return resolver.resolve

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
            resolve=self.make_resolve(),
            tls=Tls(*o["tls"]) if o["tls"] else None,
        )
        link.send_buffer = o["send_buffer"]
        link.set_callback(self.on_inbound)
        if o["will"]:
            link.set_last_will(*o["will"], True, 1)
        return link

    def on_drop(self, _at, length, _tag, _lane, reason):
        if reason != STOLEN:
            self.dropped.append([reason, length])

    def on_delivered(self, _at, _length, _tag):
        self.last_at = self.clock.now()
        if self.first_at is None:
            self.first_at = self.last_at

    def on_inbound(self, topic, payload):
        self.received += 1
        say(inbound=topic.decode(), size=len(payload), text=payload[:40].decode())
        if self.o["echo"]:
            self.do_put()

    # -- tasks -----------------------------------------------------------------------------------

    async def run(self):
        """Run until there are no more orders, or until one of them says to run anew: True."""
        asyncio.get_event_loop().set_exception_handler(
            lambda _loop, context: self.log.exception("stray task", context["exception"])
        )
        self.supervisor.start()
        again = await self.obey()
        await self.supervisor.stop()
        return again

    async def tick(self, beat):
        while True:
            beat()
            self.uplink.tick()
            due = time.ticks_add(time.ticks_ms(), self.o["tick_ms"])
            await asyncio.sleep_ms(self.o["tick_ms"])
            self.worst_lag_ms = max(self.worst_lag_ms, time.ticks_diff(time.ticks_ms(), due))

    async def trickle(self, beat):
        while True:
            beat()
            await asyncio.sleep_ms(TRICKLE_MS)
            if self.trickling:
                self.do_put(**self.trickling)

    async def obey(self):
        """Do as ordered; True when all is to run again, False at the end of the orders."""
        orders = asyncio.StreamReader(sys.stdin)
        while True:
            line = await orders.readline()
            if not line:
                return False
            order = json.loads(line)
            name = order.pop("do")
            say(done=name, **(getattr(self, "do_" + name)(**order) or {}))
            if name == "stop":
                return True
            if name == "interrupt":
                raise KeyboardInterrupt

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
        """Let the clock jump ahead, with a look at the deadlines right before and behind."""
        self.uplink.tick()
        self.skew_ms += ms
        self.uplink.tick()

    def do_stop(self, give_up=False):
        """Cancel all tasks and start them again, as the console does."""
        if give_up:
            self.do_give_up()

    def do_interrupt(self):
        """Leave the event loop between two instructions, and start the tasks again in another."""

    def do_break_writes(self):
        self.link.sock = BrokenOut(self.link.sock)

    def do_starve(self, error, late):
        """The next TLS connection finds no memory: error "memory", or an errno."""
        Starving(self.link._tls, error, late)

    def do_network(self, up):
        """Whether there is a network from now on."""
        self.network = up

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
            "worst_lag_ms": self.worst_lag_ms,
            "state": _STATES[link.state],
            "connects": uplink.connects,
            "attempts": uplink.attempts,
            "losses": uplink.losses,
            "reason": uplink.reason,
            "waiting_ms": uplink.waiting_ms,
            "ceiling_ms": self.backoff.ceiling_ms,
            "pings": link.pings,
            "skipped": link.skipped,
            "subscribed": sorted(self.opening.subscribed),
            "refused": sorted(self.opening.refused),
            "received": self.received,
            "delivered": sender.delivered,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "resent": sender.resent,
            "sending": _SENDING[sender.state],
            "held": ring.messages(),
            "stolen": sum(ring.stolen),
            "dropped": self.dropped,
            "stray_acks": ring.stray_acks + sender.strays,
            "unwell": self.supervisor.unwell(now),
            "now": now,
        }


def numbered(n, size):
    """The payload of message `n`: its six digits, again and again."""
    digits = "{:06d}".format(n).encode()
    return (digits * (size // 6 + 1))[:size]


if __name__ == "__main__":
    options = dict(OPTIONS)
    options.update(json.loads(sys.stdin.readline()))
    rig = Rig(options)
    again = True
    while again:
        asyncio.new_event_loop()
        try:
            again = asyncio.run(rig.run())
        except KeyboardInterrupt:
            say(log="interrupted")
