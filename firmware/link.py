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

In: `wait_msg` reads what has come and feeds it to mqtt_wire.Inbound, which calls `on_puback` and
the like.

Every wait has a deadline (L3), but no timer of its own: `overdue(now)`, called a few times a
second, says in words when one has passed, and sends the pings (L6). The caller then closes the
link. Every way out closes the socket (L10).
"""

import asyncio
import errno
from time import ticks_diff, ticks_us

from micropython import const
from umqtt.simple import MQTTClient, MQTTException

from firmware import dial
from firmware.mqtt_wire import (
    HEAD_MAX,
    Inbound,
    Outbound,
)
from millpond.clock import add, diff
from millpond.message import ProtocolError

CLOSED = const(0)
RESOLVING = const(1)
CONNECTING = const(2)
SECURING = const(3)
GREETING = const(4)
UP = const(5)

_CONTROL_ROOM = const(256)  # for PUBACKs and pings beside the largest PUBLISH
_MIN_PING_MS = const(1000)
_TURN_US = const(2000)  # how long one turn of the event loop may go on reading
_PATIENCE_US = const(200)  # and how long for nothing
_REST = const(15)  # wake-ups that read once after that was in vain
_LEAVE_TRIES = const(50)

# CONNACK return codes (MQTT 3.1.1, table 3.1).
REFUSALS = {
    1: "protocol version refused",
    2: "client identifier refused",
    3: "server unavailable",
    4: "bad user name or password",
    5: "not authorized",
}
# What trying again cannot mend.
PERMANENT = (1, 2, 4, 5)

_WAITS = {
    RESOLVING: "address of the broker not found within {} s",
    CONNECTING: "TCP connection not made within {} s",
    SECURING: "TLS handshake not finished within {} s",
    GREETING: "no CONNACK within {} s",
}


def refusal(code):
    """A CONNACK return code in words."""
    return "broker refused the connection: {}".format(REFUSALS.get(code, "code {}".format(code)))


class Link(MQTTClient):
    """An MQTT 3.1.1 client on a non-blocking socket; one connection at a time.

    Arguments as for umqtt.simple's MQTTClient, and: `largest` is the largest topic plus payload
    in bytes that will be published, `receive` the largest inbound body kept, `connect_timeout_s`
    the limit for each step of connecting. `resolve(host, port)` is a coroutine function that gives
    the broker's address (`firmware.dial`). `tls`, a `firmware.tls.Tls`, makes the connection a TLS
    one. `set_callback(f)` sets umqtt's `f(topic, msg)` for inbound messages; whoever owns the link
    replaces `on_acknowledged`, `on_received`, `on_completed`, `on_pong`, `on_subscribed`,
    `on_flushed` and, to know more of an inbound message than umqtt tells, `on_message`.
    """

    def __init__(
        self,
        client_id,
        server,
        port=1883,
        user=None,
        password=None,
        keepalive=60,
        largest=4096,
        receive=1024,
        connect_timeout_s=10,
        resolve=dial.resolve,
        tls=None,
    ):
        super().__init__(client_id, server, port, user, password, keepalive)
        self.state = CLOSED
        self.address = None
        self._timeout_s = connect_timeout_s
        self._resolve = resolve
        self._tls = tls
        self._deadline = None
        self._half_ms = keepalive * 500
        self._ping_limit_ms = max(self._half_ms, _MIN_PING_MS)
        self._heard_at = self.spoke_at = 0
        self._heard = self._spoke = self._talking = False
        self._ping_sent_at = None
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

        OSError when the network fails, MQTTException(code) when the broker refuses, ProtocolError
        when it speaks nonsense, Unreachable or Hopeless with a reason in words. The caller must
        `close` the link on any of them.
        """
        self.close()
        self._inbound.reset()
        self._connack = None
        self._ping_sent_at = None
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
            raise MQTTException(code)
        return session_present

    def _enter(self, state):
        self.state = state
        self._deadline = None

    def _new_socket(self):
        return dial.new_socket()

    def _greet(self, clean_session):
        flags = clean_session << 1
        strings = []
        if self.lw_topic:
            flags |= 4 | self.lw_qos << 3 | bool(self.lw_retain) << 5
            strings += [_utf8(self.lw_topic), _utf8(self.lw_msg)]
        if self.user:
            flags |= 0x80
            strings.append(_utf8(self.user))
            if self.pswd is not None:
                flags |= 0x40
                strings.append(_utf8(self.pswd))
        if not self._out.connect(_utf8(self.client_id), flags, self.keepalive, strings):
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
        if self.state != UP:
            raise OSError(errno.ENOTCONN)
        if not self._out.publish(topic, payload, flags, packet_id):
            if self._out.too_large():
                return None
            raise OSError(errno.ENOBUFS)
        return self._flush()

    def release(self, packet_id):
        """Send a PUBREL, the second step of QoS 2 (S6); as `send` otherwise."""
        if self.state != UP:
            raise OSError(errno.ENOTCONN)
        if not self._out.release(packet_id):
            raise OSError(errno.ENOBUFS)
        return self._flush()

    def subscribe(self, topic, qos=0, packet_id=1):
        """Send a SUBSCRIBE for one topic filter; the answer comes to `on_subscribed`."""
        if self.state != UP:
            raise OSError(errno.ENOTCONN)
        if not self._out.subscribe(_utf8(topic), packet_id, qos):
            raise OSError(errno.ENOBUFS)
        return self._flush()

    def ping(self):
        """Send a PINGREQ."""
        self.pings += 1
        return self._send_control(0xC0, b"")

    async def disconnect(self):
        """Take leave of the broker, so that it keeps the last will to itself, and close."""
        if self.state == UP:
            try:
                self._send_control(0xE0, b"")
                for _ in range(_LEAVE_TRIES):
                    if not self._out.end:
                        break
                    await asyncio.sleep_ms(10)
            except OSError:
                pass
        self.close()

    def _send_control(self, first, body):
        if self.state != UP:
            raise OSError(errno.ENOTCONN)
        if not self._out.control(first, body):
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
            self._spoke = self._talking = True
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
        self._heard = True
        self._inbound.feed(self._rx, n)
        return True

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
        if self.state != UP:
            self._require_up("PUBACK")
        self.on_acknowledged(packet_id)

    def on_pubrec(self, packet_id):
        self._require_up("PUBREC")
        self.on_received(packet_id)

    def on_pubcomp(self, packet_id):
        self._require_up("PUBCOMP")
        self.on_completed(packet_id)

    def on_suback(self, packet_id, code):
        self._require_up("SUBACK")
        self.on_subscribed(packet_id, code)

    def on_pingresp(self):
        self._require_up("PINGRESP")
        self._ping_sent_at = None
        self.on_pong()

    def on_publish(self, topic, payload, qos, retained, packet_id):
        self._require_up("PUBLISH")
        if payload is None:
            self.skipped += 1
        else:
            self.on_message(topic, payload, retained, self._inbound.dup)
        if qos:
            self._send_control(0x40, bytes((packet_id >> 8, packet_id & 0xFF)))

    def on_message(self, topic, payload, retained, dup):
        """Called for each message that came whole; topic and payload are views that hold only
        during the call. Meant to be replaced; this one calls umqtt's callback, with copies."""
        if self.cb:
            self.cb(bytes(topic), bytes(payload))

    def on_acknowledged(self, packet_id):
        """Called for each PUBACK. Meant to be replaced."""

    def on_received(self, packet_id):
        """Called for each PUBREC. Meant to be replaced."""

    def on_completed(self, packet_id):
        """Called for each PUBCOMP. Meant to be replaced."""

    def on_pong(self):
        """Called for each PINGRESP. Meant to be replaced."""

    def on_subscribed(self, packet_id, code):
        """Called for each SUBACK: the QoS granted, or 0x80 for a refusal. Meant to be replaced."""

    def on_flushed(self):
        """Called when bytes that had to wait have all left. Meant to be replaced."""

    def _require_up(self, what):
        if self.state != UP:
            raise ProtocolError("{} before CONNACK".format(what))

    # -- time and end ----------------------------------------------------------------------------

    def overdue(self, now):
        """None while all is well, else why the link must be closed, in words (L3, L6).

        Sends a ping when one is due. Call it a few times a second while the link is not CLOSED.
        """
        if self._heard:
            self._heard = False
            self._heard_at = now
        if self._spoke:
            self._spoke = False
            self.spoke_at = now
        if self.state != UP:
            if self._deadline is None:
                self._deadline = add(now, 1000 * self._timeout_s)
            elif diff(now, self._deadline) >= 0:
                return _WAITS[self.state].format(self._timeout_s)
            return None
        if not self._half_ms:
            return None
        if self._ping_sent_at is not None:
            if diff(now, self._ping_sent_at) >= self._ping_limit_ms:
                return "no answer to a ping within {:g} s".format(self._ping_limit_ms / 1000)
        elif (
            diff(now, self._heard_at) >= self._half_ms or diff(now, self.spoke_at) >= self._half_ms
        ):
            self._ping_sent_at = now
            self.ping()
        return None

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
