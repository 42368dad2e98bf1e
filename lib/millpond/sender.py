"""Sender: decides what is sent next, one message in flight (seed 004).

Pure logic: it is told of connections, departures, acknowledgements and the time, and answers
which message of the ring is to be sent. It does no I/O.

    OFFLINE --connected--> IDLE --next--> LEAVING --left--> WAITING --acked--> IDLE
       ^                    |               |                  |
       |                    | QoS 2,        | QoS 0: left      | QoS 2: received
       |                    | id in doubt   v                  v
       +-- disconnected,    |              IDLE             RELEASE --next--> RELEASING
           from any         v                                                    |
                         CLEARING --cleared--> IDLE          IDLE <--completed---+

A message that can never leave goes from LEAVING to IDLE by `set_aside`. Of QoS 2, `received` is
PUBREC, what `next` then gives is PUBREL, and `completed` is PUBCOMP (S6).

The one way a message is ever sent again is a new connection; on a live one nothing is re-sent
(S5). What was in flight when a link was lost goes out first on the next one: under the same
packet id and with DUP when the broker still has the session, else as a new publication (S3). Where
PUBREC had come, the exchange goes on with PUBREL; but when the session is gone the message is
published anew, since nobody can tell whether the broker passed it on before it forgot: twice is
within the promise, never is not.

A message on which the peer closes the connection `max_retries` times in a row is poison (S7): it
is dropped with the reason `POISON`, and the next one has its turn. A closing counts against the
message in flight if it comes within _PROMPT_MS of its leaving: a broker that chokes on a message
closes at once, while one that is restarted, or is told to serve another client of our name, closes
whenever that happens. An acknowledgement, also PUBREC, clears the suspicion. Where dropping one
did not help, and the broker closes on the next as well, that needs twice as many closings, and so
on: perhaps it is the broker that is ill, and then the backlog must not be its victim.

An id of QoS 2 that the broker may hold is cleared, by a PUBREL, before it is used (PacketIds). A
rate limit sets a moment for each message (Pacer, S9).

Whoever owns the link calls `next` after every append, acknowledgement and connect and when
`wait_ms` is over (S1, S9), and `overdue` now and then.
"""

from micropython import const

from millpond.clock import diff
from millpond.limits import within
from millpond.message import (
    TAG_QOS_MASK,
    TAG_QOS_SHIFT,
    TAG_RETAINED,
    TAG_TOPIC_MASK,
    TAG_UNSTAMPED,
)
from millpond.pacer import Pacer
from millpond.packet_ids import PacketIds

OFFLINE = const(0)
IDLE = const(1)
CLEARING = const(2)
LEAVING = const(3)
WAITING = const(4)
RELEASE = const(5)
RELEASING = const(6)

POISON = "poison"

_MAX_TIMEOUT_S = const(86400)
_MAX_RETRIES = const(100)
_PROMPT_MS = const(5000)


class Sender:
    """One message in flight from `ring` (a PagedRing) to the broker.

    `topics` is the TopicTable that tags refer to. `ack_timeout_s` is how long an acknowledgement
    may take (S5). `rate_limit` is in messages a second, up to 1000, 0 for as fast as they are
    acknowledged (S9). `max_retries`, up to 100, is how often in a row the peer closes the
    connection on one message before that is dropped as poison (S7). `on_delivered(at, length, tag)`
    is called for each message the broker has, while its payload still stands in the ring's buffer.
    `prepare(at, length, tag)` is called before a message tagged unstamped leaves for the first
    time, and gives its tag anew.

    After `next` has returned True these describe what to send: `topic` (bytes), `at` and
    `length` (payload in the ring's buffer), `qos`, `retained`, `dup` and `packet_id`; `flags` has
    the three as MQTT does, DUP << 3 | QoS << 1 | RETAIN. But when `release` is true, what is to be
    sent is the PUBREL of `packet_id`.

    `delivered` counts the messages that the broker has, `resent` how often one was sent once more
    over a new connection, whether as a DUP or as a new publication, and `strays` the
    acknowledgements that came out of turn; those of another id the ring counts. `pacer` is the
    Pacer, or None without a rate limit.
    """

    def __init__(
        self,
        ring,
        topics,
        ack_timeout_s=20,
        rate_limit=0,
        on_delivered=None,
        prepare=None,
        max_retries=5,
    ):
        within("ack_timeout_s", ack_timeout_s, _MAX_TIMEOUT_S, 1)
        within("max_retries", max_retries, _MAX_RETRIES, 1)
        self._ring = ring
        self._topics = topics
        self.ack_timeout_s = ack_timeout_s
        self.max_retries = max_retries
        self._closings = 0
        self._enough = max_retries
        self.pacer = None
        self.pace(rate_limit, 0)
        self._on_delivered = on_delivered
        self._prepare = prepare
        self.state = OFFLINE
        self._since = 0
        self._session_id = 0
        self._ids = PacketIds()

        self._tag = -1
        self._flags = self.flags = 0
        self.topic = b""
        self.at = self.length = self.qos = self.packet_id = 0
        self.retained = self.dup = self.release = False
        self._received = False

        self.delivered = 0
        self.resent = 0
        self.strays = 0
        self.round_trip_ms = 0

    def pace(self, rate_limit, now):
        """Set the rate limit (S9). A moment that is set for the next message already stands."""
        if not rate_limit:
            self.pacer = None
        elif self.pacer is None:
            self.pacer = Pacer(rate_limit, now)
        else:
            self.pacer.set(rate_limit)

    def next_packet_id(self):
        """A fresh packet id: 1 to 65,535, then 1 again, never 0 nor the one in flight (S4)."""
        packet_id = self._ids.take(False)
        return packet_id if packet_id != self._session_id else self._ids.take(False)

    def connected(self, session_present, now):
        """The broker has accepted the connection, with or without an earlier session (S3)."""
        self.state = IDLE
        if self.pacer is not None:
            self.pacer.begin(now)
        if not session_present:
            self._session_id = 0
            self._ids.trust()

    def disconnected(self):
        """The link is gone; what was in flight stays the head of the ring (S3)."""
        self.state = OFFLINE
        self._ring.rewind()

    def closed_by_peer(self, now):
        """The peer has closed the connection: to be told before `disconnected` (S7).

        When what was in flight is poison it has been dropped: how often the peer closed on it,
        else 0.
        """
        if self.state < LEAVING or diff(now, self._since) > _PROMPT_MS:
            return 0
        self._closings += 1
        closings = self._closings
        if closings < self._enough:
            return 0
        self._enough = min(2 * self._enough, _MAX_RETRIES)
        self._forget(IDLE)
        self._ring.drop(POISON)
        return closings

    def suspects(self):
        """Whether the peer closed its last connection on the message that goes next (S7)."""
        return self._closings > 0

    def _forget(self, state):
        """Nothing is in flight any more."""
        if self.qos == 2 and self.state != RELEASING:
            self._ids.doubt()
        self.state = state
        self._session_id = self._closings = 0
        self._received = False

    def next(self, now):
        """Take up the next message; True when there is one to send now (S1)."""
        ring = self._ring
        if self.state != IDLE:
            return self.state == RELEASE and self._release(now)
        if not ring.head():
            if self.pacer is not None:
                self.pacer.rested = True
            return False
        if self._received and ring.head_packet_id == self._session_id:
            return self._release(now)
        if self.pacer is not None and self.pacer.wait_ms(now):
            return False
        tag = ring.head_tag
        if tag & TAG_UNSTAMPED and self._prepare and not ring.head_packet_id:
            tag = self._prepare(ring.head_at, ring.head_length, tag)
            ring.retag(tag)
        if tag != self._tag:
            self._describe(tag)
        self.at = ring.head_at
        self.length = ring.head_length
        self._since = now
        packet_id = ring.head_packet_id
        if packet_id and packet_id == self._session_id:
            self.dup = self.qos > 0
            self.flags = self._flags | self.dup << 3
        else:
            self.dup = self._received = False
            self.flags = self._flags
            packet_id = self._ids.take(self.qos == 2)
            if not packet_id:
                return self._clear()
            self._session_id = packet_id
        self.resent += ring.head_packet_id > 0
        ring.sent(packet_id)
        self.packet_id = packet_id
        self.release = False
        self.state = LEAVING
        if self.pacer is not None:
            self.pacer.went(now)
        return True

    def _clear(self):
        """PUBREL is to be sent for an id that the broker may hold, before it is used."""
        self.packet_id = self._ids.coming
        self.release = True
        self.state = CLEARING
        return True

    def _release(self, now):
        """PUBREL is to be sent: for the first time, or once more over a new connection (S6)."""
        self.packet_id = self._session_id
        if not self._ring.in_flight:
            self._ring.sent(self.packet_id)
        self.release = True
        self.state = RELEASING
        self._since = now
        return True

    def wait_ms(self, now):
        """Milliseconds until the rate limit allows the next message (S9).

        0 when it allows it now, when there is no limit, and while offline.
        """
        if self.pacer is None or self.state == OFFLINE:
            return 0
        return self.pacer.wait_ms(now)

    def _describe(self, tag):
        """Keep what a tag says, which is mostly what the last one said."""
        self._tag = tag
        self.qos = (tag & TAG_QOS_MASK) >> TAG_QOS_SHIFT
        self.retained = tag & TAG_RETAINED != 0
        self._flags = self.qos << 1 | self.retained
        self.topic = self._topics.encoded(tag & TAG_TOPIC_MASK)

    def set_aside(self, reason):
        """What `next` gave can never leave: drop it for `reason`, a word, which the ring counts.

        ValueError unless it is about to leave.
        """
        if self.state != LEAVING:
            raise ValueError("set aside: no message is leaving (state {})".format(self.state))
        self._forget(IDLE)
        self._ring.drop(reason)

    def left(self, now):
        """All bytes of the message were handed to the network; QoS 0 is complete (S6)."""
        if self.state != LEAVING:
            return
        self.state = WAITING
        self._since = now
        if self.qos == 0:
            self.acked(self.packet_id, now)

    def progress(self, now):
        """Some bytes of the message have left: a slow link is no dead one, so S5 begins anew."""
        if self.state == LEAVING:
            self._since = now

    def acked(self, packet_id, now):
        """PUBACK: the broker has `packet_id`. False when that is not what is in flight (S2).

        What comes before all bytes have left is foreign, as is a PUBACK for QoS 2.
        """
        if self.state != WAITING or self.qos == 2:
            self.strays += 1
            return False
        return self._advance(packet_id, now)

    def received(self, packet_id, now):
        """PUBREC: the broker has `packet_id` of QoS 2, and waits for its PUBREL (S6).

        True when that is in flight and `next` then gives the PUBREL. It may come before the message
        has gone out again on a new connection. False when it is foreign or comes again; the
        standard has it answered with PUBREL none the less.
        """
        is_ours = self.qos == 2 and packet_id == self._session_id
        if not is_ours or self._received or self.state == LEAVING:
            self.strays += 1
            return False
        if self.state == WAITING:
            self.state = RELEASE
        self._received = True
        self._closings = 0
        self._enough = self.max_retries
        self._since = now
        return True

    def cleared(self, packet_id):
        """PUBCOMP: the broker no longer holds `packet_id`. False when that was not asked."""
        if self.state != CLEARING or packet_id != self.packet_id:
            return False
        self._ids.cleared(packet_id)
        self.state = IDLE
        return True

    def completed(self, packet_id, now):
        """PUBCOMP: the exchange of QoS 2 is over. False when that is not what is in flight."""
        if self.state != RELEASING:
            self.strays += 1
            return False
        return self._advance(packet_id, now)

    def _advance(self, packet_id, now):
        ring = self._ring
        if not ring.ack(packet_id):
            return False
        self._forget(IDLE)
        self._enough = self.max_retries
        self.delivered += 1
        self.round_trip_ms = diff(now, self._since)
        if self._on_delivered:
            self._on_delivered(self.at, self.length, ring.head_tag)
        return True

    def overdue(self, now):
        """True when what is in flight has waited `ack_timeout_s`: the link must be dropped (S5).

        To be called every few seconds, which also keeps up the pace of S9.
        """
        if self.state < CLEARING:
            if self.pacer is not None:
                self.pacer.keep_up(now)
            return False
        return diff(now, self._since) >= 1000 * self.ack_timeout_s
