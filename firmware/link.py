"""Link: umqtt's client without the waiting.

It keeps umqtt.simple's settings, last will and callback, and replaces what blocks: every method
either returns at once or is a coroutine that yields to the event loop while it waits (L1).

    CLOSED --connect()--> RESOLVING --name--> CONNECTING --TCP--> GREETING --CONNACK--> UP
       ^                      |                   |                  |                  |
       +----------------- close(): lost, refused, overdue, malformed -------------------+

With TLS, SECURING lies between CONNECTING and GREETING: the CONNECT is being written, and the
handshake goes before it (`firmware.tls`).

Out: a packet is laid whole into one buffer and leaves with one write (L2). What the socket does
not take at once is finished by a small task of its own, continuing where it stopped.

In: `wait_msg` reads what has come and feeds it to mqtt_in.Inbound, which calls `on_puback` and
the like.

Every wait has a deadline (L3), but no timer of its own: `overdue(now)`, called a few times a
second, says in words when one has passed, and sends the pings (L6). The caller then closes the
link. Every way out closes the socket (L10).
"""

import asyncio
import errno
from time import ticks_diff, ticks_us

from micropython import const
from umqtt.simple import MQTTClient

from firmware import dial
from firmware.failures import refused
from firmware.keepalive import PING, Keepalive
from firmware.mqtt_in import Inbound
from firmware.mqtt_out import HEAD_MAX, Outbound
from millpond.clock import add, diff
from millpond.message import ProtocolError

CLOSED = const(0)
RESOLVING = const(1)
CONNECTING = const(2)
SECURING = const(3)
GREETING = const(4)
UP = const(5)

_CONTROL_ROOM = const(256)  # for PUBACKs and pings beside the largest PUBLISH
_TURN_US = const(2000)  # how long one turn of the event loop may go on reading
_PATIENCE_US = const(200)  # and how long for nothing
_REST = const(15)  # wake-ups that read once after that was in vain
_LEAVE_TRIES = const(50)

_WAITS = {
    RESOLVING: "address of the broker not found within {} s",
    CONNECTING: "TCP connection not made within {} s",
    SECURING: "TLS handshake not finished within {} s",
    GREETING: "no CONNACK within {} s",
}


class Link(MQTTClient):
    """An MQTT 3.1.1 client on a non-blocking socket; one connection at a time.

    Arguments as for umqtt.simple's MQTTClient, and: `resolve(host, port)` is a coroutine function
    that gives the broker's address as `firmware.dial` takes it, `largest` the largest topic plus
    payload in bytes that will be published, `receive` the largest inbound body kept,
    `connect_timeout_s` the limit for each step of connecting. `tls`, a `firmware.tls.Tls`, makes
    the connection a TLS one. `set_callback(f)` sets umqtt's `f(topic, msg)` for inbound messages;
    whoever owns the link replaces `on_acknowledged`, `on_received`, `on_completed`, `on_pong`,
    `on_subscribed`, `on_flushed` and, to know more of an inbound message than umqtt tells,
    `on_message`.
    """

    def __init__(
        self,
        client_id,
        server,
        port=1883,
        user=None,
        password=None,
        keepalive=60,
        *,
        resolve,
        largest=4096,
        receive=1024,
        connect_timeout_s=10,
        tls=None,
    ):
        super().__init__(client_id, server, port, user, password, keepalive)
        self.state = CLOSED
        self.address = None
        self._timeout_s = connect_timeout_s
        self._resolve = resolve
        self._tls = tls
        self._deadline = None
        self._silence = Keepalive(keepalive)
        self._talking = False
        self.largest = largest
        self._out = Outbound(largest + HEAD_MAX + _CONTROL_ROOM)
        self._rx = bytearray(256)
        self._inbound = Inbound(self, receive)
        self._readable = self._writable = None
        self._flusher = None
        self._connack = None
        self._resting = 0
        self.skipped = 0
        self.pings = 0

    # -- connecting ------------------------------------------------------------------------------

    async def connect(self, clean_session=True):
        """Connect to the broker; True when it has kept our session (L7).

        Unreachable, Hopeless, ProtocolError or OSError says why not (`firmware.failures`). On any
        of them the caller must `close` the link.
        """
        self.close()
        self._inbound.reset()
        self._silence.reset()
        self._connack = None
        self._enter(RESOLVING)
        self.address = await self._resolve(self.server, self.port)
        self._enter(CONNECTING)
        self.sock = self._new_socket()
        self._readable, self._writable = dial.waits(self.sock)
        dial.begin(self.sock, self.address)
        await self._writable
        self._greet(clean_session)
        if self._tls:
            await self._secure()
        self._enter(GREETING)
        self._flush()
        while self._connack is None:
            await self.wait_msg()
        session_present, code = self._connack
        if code:
            raise refused(code)
        return session_present

    def _enter(self, state):
        self.state = state
        self._deadline = None

    def _new_socket(self):
        return dial.new_socket()

    def _greet(self, clean_session):
        will = None
        if self.lw_topic:
            will = (_utf8(self.lw_topic), _utf8(self.lw_msg), self.lw_qos, self.lw_retain)
        user, password = _utf8(self.user or None), _utf8(self.pswd)
        client_id = _utf8(self.client_id)
        if not self._out.connect(client_id, self.keepalive, clean_session, will, user, password):
            size = len(self._out.buffer)
            raise ValueError("client id, will, user and password: {} bytes at most".format(size))

    async def _secure(self):
        """Write the first of the CONNECT, before which the socket does the handshake."""
        self._enter(SECURING)
        self.sock = self._tls.wrap(self.sock, self.server)
        self._readable, self._writable = dial.waits(self.sock)
        begun = self._out.at
        try:
            while not self._write_some() and self._out.at == begun:
                await self._writable
                self.sock.heed()
        except (OSError, MemoryError) as error:
            self.sock.explain(error)
            raise

    # -- sending ---------------------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0, dup=False, packet_id=0):
        """Send a PUBLISH; True when all its bytes have left, else they follow (L2).

        `topic` and `msg` are bytes, str or a memoryview of bytes. OSError when the link is not up
        or the buffer is full, ValueError when the message can never fit it.
        """
        topic, msg = _utf8(topic), _utf8(msg)
        left = self.send(topic, msg, (dup << 3) | (qos << 1) | bool(retain), packet_id)
        if left is None:
            raise ValueError(
                "topic of {} and payload of {} bytes: {} expected at most".format(
                    len(topic), len(msg), self.largest
                )
            )
        return left

    def send(self, topic, payload, flags, packet_id):
        """`publish` for each message: bytes, and `flags` as in the first byte of a PUBLISH.

        None, and nothing is sent, when the message can never fit the buffer.
        """
        # `_when_up` and `_sent`, without the calls.
        if self.state != UP:
            raise OSError(errno.ENOTCONN)
        if not self._out.publish(topic, payload, flags, packet_id):
            if self._out.too_large():
                return None
            raise OSError(errno.ENOBUFS)
        return self._flush()

    def release(self, packet_id):
        """Send a PUBREL, the second step of QoS 2 (S6); as `publish` otherwise."""
        return self._sent(self._when_up().release(packet_id))

    def subscribe(self, topic, qos=0, packet_id=1):
        """Send a SUBSCRIBE for one topic filter; the answer comes to `on_subscribed`."""
        return self._sent(self._when_up().subscribe(_utf8(topic), packet_id, qos))

    def ping(self):
        """Send a PINGREQ."""
        self.pings += 1
        return self._sent(self._when_up().ping())

    async def disconnect(self):
        """Take leave of the broker, so that it keeps the last will to itself, and close."""
        if self.state == UP:
            try:
                self._sent(self._out.disconnect())
                for _ in range(_LEAVE_TRIES):
                    if not self._out.end:
                        break
                    await asyncio.sleep_ms(10)
            except OSError:
                pass
        self.close()

    def _when_up(self):
        """Where packets are laid, while they may be."""
        if self.state != UP:
            raise OSError(errno.ENOTCONN)
        return self._out

    def _sent(self, is_laid):
        """Send what has been laid, if there was room for it."""
        if not is_laid:
            raise OSError(errno.ENOBUFS)
        return self._flush()

    def _flush(self):
        """Hand the socket what it takes; True when that was all."""
        if self._flusher is None:
            if self._write_some():
                return True
            self._flusher = asyncio.create_task(self._finish_writing(self.sock))
        return False

    def _write_some(self):
        out = self._out
        written = self.sock.write(out.buffer, out.at, out.end - out.at)
        if written:
            self._silence.spoke = self._talking = True
            out.at += written
        if out.at < out.end:
            return False
        out.clear()
        return True

    async def _finish_writing(self, sock):
        """Write the rest as the socket takes it. An error shows at the reader, which is waiting."""
        try:
            while self.sock is sock:
                await self._writable
                if self._write_some():
                    break
            self._flusher = None
            self.on_flushed()
        except OSError:
            pass

    # -- receiving -------------------------------------------------------------------------------

    async def wait_msg(self):
        """Wait until something comes, and handle it. OSError when the peer has closed."""
        await self._readable
        self.check_msg()

    async def listen(self):
        """Handle what comes until the connection ends, with the error that ends it."""
        readable = self._readable
        while True:
            await readable
            if self._resting:
                self._resting -= 1
                self.check_msg()
            else:
                self._read_on()

    def _read_on(self):
        """Handle what has come, and as long as that made us send, what comes in answer.

        A near broker acknowledges sooner than the poller would wake us. Bounded by a turn's time;
        and where an answer is not that near, the next wake-ups read once and no more.
        """
        began = heard = ticks_us()
        self._talking = False
        self.check_msg()
        while self._talking and self.state == UP:
            self._talking = False
            if self.check_msg():
                heard = ticks_us()
                if ticks_diff(heard, began) >= _TURN_US:
                    break
            elif ticks_diff(ticks_us(), heard) < _PATIENCE_US:
                self._talking = True
            else:
                self._resting = _REST

    def check_msg(self):
        """Handle what has come, without waiting; True when something had."""
        n = self.sock.readinto(self._rx)
        if n is None:
            return False
        if n == 0:
            raise OSError(errno.ECONNRESET)
        self._silence.heard = True
        self._inbound.feed(self._rx, n)
        return True

    # -- what Inbound calls ----------------------------------------------------------------------

    def on_connack(self, session_present, code):
        if self.state != GREETING or self._connack is not None:
            raise ProtocolError("CONNACK out of order")
        if code and session_present:
            raise ProtocolError("CONNACK refuses and names a session")
        self._connack = (session_present, code)
        if not code:
            # At once, for messages of a kept session may follow in the same bytes.
            self.state = UP

    def on_puback(self, packet_id):
        if self.state != UP:  # looked at here already, for it comes once a message
            self._require_up("PUBACK")
        self.on_acknowledged(packet_id)

    def on_pubrec(self, packet_id):
        self._require_up("PUBREC")
        self.on_received(packet_id)

    def on_pubrel(self, packet_id):
        self._require_up("PUBREL")
        self._sent(self._when_up().complete(packet_id))

    def on_pubcomp(self, packet_id):
        self._require_up("PUBCOMP")
        self.on_completed(packet_id)

    def on_suback(self, packet_id, code):
        self._require_up("SUBACK")
        self.on_subscribed(packet_id, code)

    def on_pingresp(self):
        self._require_up("PINGRESP")
        self._silence.ponged()
        self.on_pong()

    def on_publish(self, topic, payload, qos, retained, packet_id):
        self._require_up("PUBLISH")
        if payload is None:
            self.skipped += 1
        else:
            self.on_message(topic, payload, retained, self._inbound.dup)
        if qos:
            # We never ask for QoS 2, but a session may hold what another client of our name has
            # asked for; what comes again here is handed on again, as of QoS 1.
            self._sent(self._when_up().acknowledge(packet_id, qos))

    def _require_up(self, what):
        if self.state != UP:
            raise ProtocolError("{} before CONNACK".format(what))

    # -- what the owner replaces -----------------------------------------------------------------

    def on_message(self, topic, payload, retained, dup):
        """Called for each message that came whole; topic and payload are views that hold only
        during the call. This one calls umqtt's callback, with copies."""
        if self.cb:
            self.cb(bytes(topic), bytes(payload))

    def on_acknowledged(self, packet_id):
        """Called for each PUBACK."""

    def on_received(self, packet_id):
        """Called for each PUBREC."""

    def on_completed(self, packet_id):
        """Called for each PUBCOMP."""

    def on_pong(self):
        """Called for each PINGRESP."""

    def on_subscribed(self, packet_id, code):
        """Called for each SUBACK: the QoS granted, or 0x80 for a refusal."""

    def on_flushed(self):
        """Called when bytes that had to wait have all left."""

    # -- time and end ----------------------------------------------------------------------------

    def overdue(self, now):
        """None while all is well, else why the link must be closed, in words (L3, L6).

        Sends a ping when one is due. Call it a few times a second while the link is not CLOSED.
        """
        if self.state != UP:
            self._silence.note(now)
            return self._late(now)
        due = self._silence.look(now)
        if due != PING:
            return due
        self.ping()
        return None

    def _late(self, now):
        """Why a step of connecting has taken too long, or None. It begins when first seen."""
        if self._deadline is None:
            self._deadline = add(now, 1000 * self._timeout_s)
        elif diff(now, self._deadline) >= 0:
            return _WAITS[self.state].format(self._timeout_s)
        return None

    def has_spoken(self, now):
        """Whether bytes have left between the `overdue` at `now` and the one before it."""
        return self._silence.spoke_at == now

    def close(self):
        """Close the socket, on whatever path the link ended (L10)."""
        self.state = CLOSED
        self._deadline = None
        self._out.clear()
        if self._flusher:
            self._flusher.cancel()
            self._flusher = None
        if self.sock:
            self.sock.close()
            self.sock = None


def _utf8(text):
    return text.encode() if isinstance(text, str) else text
