"""Uplink: the Sender's decisions carried out over the Link, connection after connection.

    DOWN --wait--> CONNECTING --CONNACK--> UP --lost--> DOWN ...

`run` holds one connection at a time and waits between them. Each begins with the greetings and
subscriptions, one behind the other as the socket takes them; only then is the Sender let loose.
`kick` sends what may be sent now: it is called after every append, acknowledgement and connect.
`tick` looks at all deadlines; when one has passed it makes `run` give the connection up, by
cancelling its wait. Whatever ends a connection ends here, with its reason in words in `reason`.
"""

import asyncio
import errno

from micropython import const
from umqtt.simple import MQTTException

from firmware.link import CLOSED, PERMANENT, UP, refusal
from millpond.message import ProtocolError

_EPIPE = const(32)  # the errno module of MicroPython lacks it
_NO_ADDRESS = "no address found for {}"

_ERRORS = {
    errno.ECONNREFUSED: "connection refused: no broker listens at {}",
    errno.ECONNRESET: "the broker at {} closed the connection",
    _EPIPE: "the broker at {} closed the connection",
    errno.EHOSTUNREACH: "no route to {}",
    errno.ETIMEDOUT: "no answer from {}",
    errno.ENOBUFS: "the send buffer is full: {} takes no data",
    errno.ENOTCONN: "the connection to {} is gone",
    # What getaddrinfo raises, on a port by port basis; the unix port raises a text.
    -2: _NO_ADDRESS,
    -200: _NO_ADDRESS,
    -202: _NO_ADDRESS,
}


class Uplink:
    """Keeps `link` connected and moves the ring's messages over it.

    `network_up()`, if given, tells whether there is a network to connect over. `greetings()` gives
    the (topic, payload) pairs that are published, retained, on each connect. `subscriptions` are
    (topic, qos) pairs, made anew when the broker has lost the session (L7).
    """

    def __init__(
        self,
        link,
        sender,
        ring,
        clock,
        backoff,
        log,
        clean_session=False,
        network_up=None,
        greetings=lambda: (),
        subscriptions=(),
    ):
        self._link = link
        self._sender = sender
        self._view = memoryview(ring.buffer)
        self._clock = clock
        self._backoff = backoff
        self._log = log
        self._clean_session = clean_session
        self._network_up = network_up
        self._greetings = greetings
        self._subscriptions = subscriptions
        self._task = None
        self._beat = None
        self._opening = iter(())
        self._given_up = None
        self.where = "{}:{}".format(link.server, link.port)
        self.reason = "not connected yet"
        self.connects = 0
        self.losses = 0
        self.attempts = 0
        self.since = 0
        self.waiting_ms = 0
        link.on_acknowledged = self._acknowledged
        link.on_flushed = self._flushed

    # -- sending ---------------------------------------------------------------------------------

    def kick(self):
        """Send what may be sent now (S1, S9). Never raises for the link's sake."""
        try:
            self._send(self._clock.now())
        except OSError as error:
            if asyncio.current_task() is self._task:
                raise  # out of a callback of `listen`, which ends with it
            self.give_up(self._in_words(error))

    def _send(self, now):
        sender = self._sender
        while sender.next(now):
            payload = self._view[sender.at : sender.at + sender.length]
            if not self._link.send(sender.topic, payload, sender.flags, sender.packet_id):
                return
            sender.left(now)

    def _acknowledged(self, packet_id):
        """A PUBACK came (S2). Runs within the link's `listen`, which hands on what it raises."""
        now = self._clock.now()
        if self._sender.acked(packet_id, now):
            self._send(now)
            self._backoff.reset()

    def _flushed(self):
        self._sender.left(self._clock.now())
        try:
            self._proceed()
        except OSError as error:
            self.give_up(self._in_words(error))

    # -- connections -----------------------------------------------------------------------------

    async def run(self, beat):
        """Connect, serve, and connect again, for ever."""
        self._task = asyncio.current_task()
        self._beat = beat
        self._ended()
        while True:
            await self._wait_for_network(beat)
            permanent = await self._connection()
            self.waiting_ms = self._backoff.next_ms(permanent)
            self._log.warning(
                "link down: {}; next try in {} ms".format(self.reason, self.waiting_ms)
            )
            await self._wait(self.waiting_ms, beat)

    async def _wait_for_network(self, beat):
        beat()
        while self._network_up and not self._network_up():
            self.reason = "no network"
            await asyncio.sleep_ms(200)
            beat()

    async def _wait(self, ms, beat):
        while ms > 0:
            beat()
            await asyncio.sleep_ms(min(ms, 1000))
            ms -= 1000

    async def _connection(self):
        """One connection from beginning to end; True when its failure is permanent."""
        self._given_up = None
        self.attempts += 1
        try:
            await self._serve()
        except asyncio.CancelledError:
            if self._given_up is None:
                self.reason = "stopped"
                raise
            self.reason = self._given_up
        except MQTTException as error:
            self.reason = refusal(error.args[0])
            return error.args[0] in PERMANENT
        except ProtocolError as error:
            self.reason = "the broker broke the protocol: {}".format(error)
        except OSError as error:
            self.reason = self._given_up or self._in_words(error)
        finally:
            self._ended()
        return False

    async def _serve(self):
        link = self._link
        present = await link.connect(self._clean_session)
        self.connects += 1
        self.since = self._clock.seconds
        self._log.info("link up: {}, session {}".format(self.where, "kept" if present else "new"))
        self._opening = self._open(present)
        self._proceed()
        await link.listen()

    def _open(self, present):
        """Greet and subscribe, a packet a step; each step yields whether it has left entirely."""
        for topic, payload in self._greetings():
            yield self._link.publish(topic, payload, True)
        if not present:
            for topic, qos in self._subscriptions:
                yield self._link.subscribe(topic, qos, self._sender.next_packet_id())
        self._sender.connected(present, self._clock.now())

    def _proceed(self):
        """Go on with the opening, and behind it with the ring. `_flushed` takes up what waits."""
        for left in self._opening:
            if not left:
                return
        self._send(self._clock.now())

    def _ended(self):
        if self._link.state == UP:
            self.losses += 1
            self.since = self._clock.seconds
        self._link.close()
        self._sender.disconnected()

    # -- deadlines -------------------------------------------------------------------------------

    def tick(self):
        """Look at every deadline of the link; to be called a few times a second (L3, L6, S5).

        While that is done the task of `run` cannot wait for ever, so this beats for it.
        """
        if self._link.state == CLOSED or self._given_up is not None:
            return
        self._beat()
        now = self._clock.now()
        try:
            reason = self._link.overdue(now)
        except OSError as error:
            reason = self._in_words(error)
        if not reason and self._sender.overdue(now):
            reason = "no acknowledgement within {} s".format(self._sender.ack_timeout_s)
        if reason:
            self.give_up(reason)
        else:
            self.kick()

    def give_up(self, reason):
        """Drop the connection for `reason` and make it anew. Not to be called from within `run`."""
        if self._link.state == CLOSED or self._given_up is not None:
            return
        self._given_up = reason
        self._task.cancel()

    def is_up(self):
        """True while the broker has accepted us and nothing says otherwise."""
        return self._link.state == UP and self._given_up is None

    def _in_words(self, error):
        text = _ERRORS.get(error.errno, _NO_ADDRESS if "addrinfo" in str(error) else None)
        if text:
            return text.format(self.where)
        return "network error {}: {}".format(error.errno, errno.errorcode.get(error.errno, error))
