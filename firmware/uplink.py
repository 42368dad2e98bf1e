"""Uplink: the Sender's decisions carried out over the Link, connection after connection.

    DOWN --wait--> CONNECTING --CONNACK--> UP --lost--> DOWN ...

`run` holds one connection at a time and waits between them. Each begins with an Opening; only then
is the Sender let loose.

`kick` sends what may be sent now: it is called after every append, acknowledgement and connect.
Under a rate limit a small task calls it whenever the next message's moment has come.
`tick` looks at all deadlines; when one has passed it makes `run` give the connection up, by
cancelling its wait. Whatever ends a connection ends here, with its reason in words in `reason`.
"""

import asyncio

from firmware.failures import Hopeless, Unreachable, in_words, is_closed_by_peer
from firmware.link import CLOSED, GREETING, UP
from firmware.log import in_seconds
from millpond.ledger import TOO_LARGE
from millpond.message import ProtocolError


class Uplink:
    """Keeps `link` connected and moves the ring's messages over it.

    `opening` is what each connection begins with. `obstacle()`, if given, says in words why there
    is no point in trying to connect yet, or gives None. A message too large for the link is set
    aside and logged.

    `losses` counts the connections that ended otherwise than by the end of `run`.
    """

    def __init__(
        self,
        link,
        sender,
        ring,
        clock,
        backoff,
        log,
        opening,
        clean_session=False,
        obstacle=lambda: None,
    ):
        self._link = link
        self._sender = sender
        self._view = memoryview(ring.buffer)
        self._clock = clock
        self._backoff = backoff
        self._log = log
        self._clean_session = clean_session
        self._obstacle = obstacle
        self.opening = opening
        self._paced = sender.pacer is not None
        self._pacer = None
        self._task = None
        self._beat = None
        self._oversized = set()
        self._given_up = None
        self.where = "{}:{}".format(link.server, link.port)
        self.reason = "not connected yet"
        self.attempts = self.connects = self.losses = 0
        self.since = 0
        self.waiting_ms = self.left_ms = 0
        link.on_acknowledged = self._acknowledged
        link.on_received = self._received
        link.on_completed = self._completed
        link.on_pong = self._ponged
        link.on_flushed = self._flushed

    # -- sending ---------------------------------------------------------------------------------

    def kick(self):
        """Send what may be sent now (S1, S9).

        An OSError of the link makes the connection be given up; it is raised only out of a call
        from within `run`, that is from the link's callback for inbound messages, which it ends.
        """
        try:
            self._send(self._clock.now())
        except OSError as error:
            if asyncio.current_task() is self._task:
                raise
            self.give_up(in_words(error, self.where))

    def _send(self, now):
        sender = self._sender
        while sender.next(now):
            if sender.release:
                self._link.release(sender.packet_id)
                continue
            payload = self._view[sender.at : sender.at + sender.length]
            left = self._link.send(sender.topic, payload, sender.flags, sender.packet_id)
            if left:
                sender.left(now)
            elif left is None:
                self._set_aside()
            else:
                return
        if self._paced and self._pacer is None and sender.wait_ms(now):
            self._pacer = asyncio.create_task(self._keep_pace())

    async def _keep_pace(self):
        """Send on each moment that the rate limit sets, until it holds nothing back (S9)."""
        while True:
            ms = self._sender.wait_ms(self._clock.now())
            if not ms:
                break
            await asyncio.sleep_ms(ms)
            self.kick()
        self._pacer = None

    def _set_aside(self):
        """Drop the message that the link cannot hold; the first of each topic is logged."""
        sender = self._sender
        if sender.topic not in self._oversized:
            self._oversized.add(sender.topic)
            self._log.error(
                "dropped: topic {} of {} bytes, payload of {}: the link takes {}".format(
                    sender.topic.decode(), len(sender.topic), sender.length, self._link.largest
                )
            )
        sender.set_aside(TOO_LARGE)

    def _acknowledged(self, packet_id):
        """A PUBACK came (S2). Runs within the link's `listen`, which hands on what it raises."""
        now = self._clock.now()
        if self._sender.acked(packet_id, now):
            self._backoff.reset()
            self._send(now)

    def _received(self, packet_id):
        """A PUBREC came (S6). A foreign one is answered too, as the standard demands."""
        now = self._clock.now()
        if self._sender.received(packet_id, now):
            self._send(now)
        else:
            self._link.release(packet_id)

    def _completed(self, packet_id):
        """A PUBCOMP came (S6). One that only cleared an id is no acknowledgement yet."""
        now = self._clock.now()
        if self._sender.cleared(packet_id):
            self._send(now)
        elif self._sender.completed(packet_id, now):
            self._backoff.reset()
            self._send(now)

    def _ponged(self):
        """A PINGRESP came."""
        self.opening.ponged()
        self._proceed()

    def _flushed(self):
        self._sender.left(self._clock.now())
        try:
            self._proceed()
        except OSError as error:
            self.give_up(in_words(error, self.where))

    def pace(self, rate_limit):
        """Send at most `rate_limit` messages a second from now on; 0: as fast as acknowledged."""
        self._sender.pace(rate_limit, self._clock.now())
        self._paced = rate_limit > 0
        self.kick()

    # -- connections -----------------------------------------------------------------------------

    async def run(self, beat):
        """Connect, serve, and connect again, for ever."""
        self._task = asyncio.current_task()
        self._beat = beat
        self._pacer = None  # after an interrupt it belongs to an event loop that is gone
        self.opening.forget()
        self._ended()
        while True:
            await self._wait_for_a_way()
            permanent = await self._connection()
            self.waiting_ms = self._backoff.next_ms(permanent)
            self._log.warning(
                "link down: {}; next try in {}".format(self.reason, in_seconds(self.waiting_ms))
            )
            await self._wait(self.waiting_ms)

    async def _wait_for_a_way(self):
        while True:
            self._beat()
            obstacle = self._obstacle()
            if not obstacle:
                break
            self.reason = obstacle
            await asyncio.sleep_ms(200)

    async def _wait(self, ms):
        while ms > 0:
            self._beat()
            self.left_ms = ms
            await asyncio.sleep_ms(min(ms, 1000))
            ms -= 1000
        self.left_ms = 0

    async def _connection(self):
        """One connection from beginning to end; True when its failure is permanent."""
        self._given_up = None
        self.attempts += 1
        connects = self.connects
        stopped = False
        try:
            await self._serve()
        except asyncio.CancelledError:
            if self._given_up is None:
                self.reason = "stopped"
                stopped = True
                raise
            self.reason = self._given_up
        except (Unreachable, ProtocolError, OSError) as error:
            self.reason = self._given_up or in_words(error, self.where)
            if self._given_up is None and is_closed_by_peer(error):
                self.reason += self.opening.closed_by_peer()
                self._judge()
            return isinstance(error, Hopeless)
        finally:
            if self._link.state == UP and not stopped:
                self.losses += 1
            if self._link.state >= GREETING and self.connects == connects:
                # The CONNACK that was not seen may have been that of a new session.
                self.opening.forget()
            self._ended()
        return False

    def _judge(self):
        """The peer has closed the connection: perhaps because of what was in flight (S7)."""
        sender = self._sender
        closings = sender.closed_by_peer(self._clock.now())
        if closings:
            self._log.error(
                "dropped as poison: topic {}, payload of {} bytes: the broker closed {} "
                "connections in a row on it".format(sender.topic.decode(), sender.length, closings)
            )

    async def _serve(self):
        present = await self._link.connect(self._clean_session)
        self.connects += 1
        self.since = self._clock.seconds
        self._log.info("link up: {}, session {}".format(self.where, "kept" if present else "new"))
        self.opening.begin(present)
        self._proceed()
        await self._link.listen()

    def _proceed(self):
        """Go on with the opening, and behind it with the ring."""
        now = self._clock.now()
        if self.opening.proceed():
            self._sender.connected(self.opening.session_present, now)
        self._send(now)

    def _ended(self):
        if self._link.state == UP:
            self.since = self._clock.seconds
        if self._pacer:
            self._pacer.cancel()
            self._pacer = None
        self.opening.end()
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
            if self._link.has_spoken(now):
                self._sender.progress(now)
        except OSError as error:
            reason = in_words(error, self.where)
        if not reason and self._sender.overdue(now):
            reason = "no acknowledgement within {} s".format(self._sender.ack_timeout_s)
        reason = reason or self.opening.overdue(now, self._sender.ack_timeout_s)
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
