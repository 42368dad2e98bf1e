"""Opening: what a connection begins with, before the Sender is let loose on it.

    begin -> greetings -> subscriptions -> a ping, while a message is suspected -> open

One packet follows the other as the socket takes them: `proceed` goes on from where it stands, and
is called again whenever what waited has left. A subscription counts as made when its SUBACK has
come in this run, and until the broker loses the session; each opening asks for those that are not.

A broker that closes on a greeting, for instance as larger than it allows, closes a moment after the
message behind it has left as well, which would take the blame (S7). So while that one is suspected
a ping goes between them: where the broker closes before it has answered, the greetings are at
fault, and the message has not left at all.
"""

from micropython import const

from millpond.clock import diff

_SUBSCRIPTION_REFUSED = const(0x80)
_PATTERN = const(3)


class Opening:
    """The opening of each of `link`'s connections.

    `greetings()` gives the (topic, payload) pairs that are published, retained, on each connect;
    one too large for the link is left out and logged. `subscriptions` are (topic, qos) pairs (L7).

    `subscribed` has the topics that the broker has confirmed in this run, `refused` those that it
    refused last; they are asked for again on the next connection.
    """

    def __init__(self, link, sender, clock, log, greetings=lambda: (), subscriptions=()):
        self._link = link
        self._sender = sender
        self._clock = clock
        self._log = log
        self._greetings = greetings
        self._subscriptions = subscriptions
        self.subscribed = set()
        self.refused = set()
        self._steps = None
        self._asked = {}
        self._awaits_pong = False
        self._asked_at = 0
        self._closed_on_greetings = 0
        link.on_subscribed = self._answered

    def begin(self, session_present):
        """The broker has accepted the connection, with or without an earlier session."""
        if not session_present:
            self.subscribed.clear()
        self._steps = self._packets()

    def proceed(self):
        """Send what the socket takes; True once, when the opening is over. OSError of the link."""
        if self._steps is None:
            return False
        for left in self._steps:
            if not left:
                return False
        self._steps = None
        return True

    def ponged(self):
        """A PINGRESP has come."""
        if self._awaits_pong:
            self._awaits_pong = False
            self._closed_on_greetings = 0

    def end(self):
        """The connection has ended, and with it what was under way on it."""
        self._steps = None
        self._asked.clear()
        self._awaits_pong = False

    def closed_by_peer(self):
        """The peer has closed the connection, to be told before `end`: words to add to that."""
        if not self._awaits_pong:
            return ""
        self._closed_on_greetings += 1
        if self._closed_on_greetings < _PATTERN:
            return ""
        return ", {} times in a row on the greetings: does it allow status and tags?".format(
            self._closed_on_greetings
        )

    def overdue(self, now, limit_s):
        """Why to give up when the broker has owed an answer for `limit_s` (L3), else None."""
        if not self._asked and not self._awaits_pong or diff(now, self._asked_at) < 1000 * limit_s:
            return None
        if not self._asked:
            return "no answer to a ping within {} s".format(limit_s)
        topics = ", ".join(sorted(self._asked.values()))
        return "no answer to the subscription to {} within {} s".format(topics, limit_s)

    def _packets(self):
        """Send a packet a step; each yields whether it has left entirely."""
        for topic, payload in self._greetings():
            try:
                yield self._link.publish(topic, payload, True)
            except ValueError as error:
                self._log.error("greeting on {} left out: {}".format(topic, error))
        for topic, qos in self._subscriptions:
            if topic not in self.subscribed:
                packet_id = self._sender.next_packet_id()
                self._asked[packet_id] = topic
                self._asked_at = self._clock.now()
                yield self._link.subscribe(topic, qos, packet_id)
        if self._sender.suspects():
            self._awaits_pong = True
            self._asked_at = self._clock.now()
            self._link.ping()
            while self._awaits_pong:
                yield False

    def _answered(self, packet_id, code):
        """A SUBACK came: the subscription is made, or refused until the next connection (L7)."""
        topic = self._asked.pop(packet_id, None)
        if topic is None:
            return
        if code == _SUBSCRIPTION_REFUSED:
            self.refused.add(topic)
            self._log.error("subscription to {} refused".format(topic))
        else:
            self.refused.discard(topic)
            self.subscribed.add(topic)
