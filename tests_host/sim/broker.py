"""Broker: MQTT 3.1.1 from the other side, sessions and all, and strict with its client.

It keeps what MQTT has a server keep for each session (subscriptions, packet ids of QoS 2 that were
received and not yet released), and what a subscriber with a session of its own would have received:
`arrivals`. What the standard forbids the client is a Failure. Of a message of QoS 2 it remembers
nothing but the packet id, as the standard allows: what comes under an id that is not released is
taken for the old message, and swallowed.

`lose_acks`, `repeat_acks`, `foreign_acks`: so many of the next acknowledgements vanish, go out
twice, or have one of another id before them. `cuts` ends connections at given packets: see CUTS.
"""

from tests_host.sim.verdict import must as check

CONNECT, PUBLISH, PUBREL, SUBSCRIBE, PINGREQ, DISCONNECT = 1, 3, 6, 8, 12, 14

# (packet, whether it is still handled): where the link is lost, by the number of the cut.
CUTS = (
    (PUBLISH, False),
    (PUBLISH, True),
    (PUBREL, False),
    (PUBREL, True),
    (CONNECT, True),
    (SUBSCRIBE, False),
    (SUBSCRIBE, True),
    (CONNECT, False),
)


class Session:
    """What is kept of a client between its connections."""

    def __init__(self):
        self.topics = set()
        self.received = set()  # ids of QoS 2 whose PUBREL has not come
        self.published = {}  # id -> what was published under it and not yet acknowledged to the end


class Peer:
    """One connection: bytes in, packets out of them."""

    def __init__(self, broker, conn):
        self._broker = broker
        self.conn = conn
        self.buffer = b""
        self.session = None
        self.open_id = 0  # of the PUBLISH that has no final answer on this connection
        self.heard_at = broker.loop.now
        self.keepalive_ms = 0

    def feed(self, data):
        """Take bytes; handle each whole packet."""
        self.heard_at = self._broker.loop.now
        self.buffer += data
        while True:
            size = packet_size(self.buffer)
            if not size or len(self.buffer) < size:
                break
            packet = self.buffer[:size]
            self.buffer = self.buffer[size:]
            self._broker.packet(self, packet)


def packet_size(data):
    """The size of the packet that begins, or 0 when that is not known yet."""
    length = 0
    for i in range(1, min(5, len(data))):
        length |= (data[i] & 127) << 7 * (i - 1)
        if not data[i] & 128:
            return 1 + i + length
    check(len(data) < 5, "a remaining length of more than 4 bytes")
    return 0


class Broker:
    """One broker, through its restarts."""

    def __init__(self, loop, arrivals):
        self.loop = loop
        self.peers = []
        self.sessions = {}
        self.arrivals = arrivals
        self.life = 0  # counts the sessions that were lost
        self.mute = False
        self.connects = 0
        self.heal()

    def heal(self):
        """No faults, from now on."""
        self.lose_acks = self.repeat_acks = self.foreign_acks = self.ack_delay = 0
        self.refusal = 0
        self.cuts = []

    # -- what the network calls ------------------------------------------------------------------

    def accept(self, conn):
        peer = Peer(self, conn)
        conn.broker_side = peer
        self.peers.append(peer)

    def feed(self, conn, data):
        if conn.broker_side in self.peers:
            conn.broker_side.feed(data)

    def ended(self, conn):
        if conn.broker_side in self.peers:
            self.peers.remove(conn.broker_side)

    # -- faults ----------------------------------------------------------------------------------

    def restart(self, keep):
        """All connections end; the sessions are kept or lost."""
        for peer in list(self.peers):
            peer.conn.reset()
        if not keep:
            self.lose_sessions()

    def lose_sessions(self):
        """Forget every session."""
        if self.sessions:
            self.life += 1
        self.sessions = {}

    def close_all(self):
        """End each connection in an orderly way, as when another client takes the name."""
        for peer in list(self.peers):
            self.drop(peer)

    def say(self, data):
        """Send bytes that nobody asked for, on the newest connection, once it has its CONNACK."""
        if self.peers and self.peers[-1].session and not self.mute:
            self.peers[-1].conn.send(data)

    def look(self, _=None):
        """Throw out who has been silent for 1.5 times its keepalive."""
        for peer in list(self.peers):
            if peer.keepalive_ms and self.loop.now - peer.heard_at > 1.5 * peer.keepalive_ms:
                check(not peer.conn.is_free(peer.heard_at), "silent for 1.5 times its keepalive")
                self.drop(peer)

    def drop(self, peer):
        """End one connection; what the client still sends is not heard."""
        if peer in self.peers:
            self.peers.remove(peer)
            peer.conn.send(b"")

    # -- packets ---------------------------------------------------------------------------------

    def packet(self, peer, packet):
        """What a server does with a packet."""
        kind = packet[0] >> 4
        check((kind == CONNECT) == (peer.session is None), "CONNECT must come first, and once")
        if self.mute:
            peer.session = peer.session or Session()
            return
        body = packet[2:] if packet[1] < 128 else packet[3:] if packet[2] < 128 else packet[4:]
        cut = self._cut(kind, packet)
        if cut is None:
            self._handle(peer, kind, packet, body)
            return
        if CUTS[cut][1]:
            self._handle(peer, kind, packet, body)
        peer.conn.reset()

    def _cut(self, kind, packet):
        """The number of the cut that is to be made at this packet, or None."""
        for cut in self.cuts:
            if CUTS[cut][0] == kind and (kind != PUBLISH or packet[0] & 6):
                self.cuts.remove(cut)
                return cut
        return None

    def _handle(self, peer, kind, packet, body):
        if kind == CONNECT:
            self._connect(peer, body)
        elif kind == PUBLISH:
            self._publish(peer, packet[0], body)
        elif kind == PUBREL:
            self._pubrel(peer, packet, body)
        elif kind == SUBSCRIBE:
            self._subscribe(peer, packet, body)
        elif kind == PINGREQ:
            check(packet == b"\xc0\x00", "a PINGREQ of another form")
            peer.conn.send(b"\xd0\x00")
        elif kind == DISCONNECT:
            check(packet == b"\xe0\x00", "a DISCONNECT of another form")
            self.drop(peer)
        else:
            check(kind == 4, "packet of kind {}", kind)

    def _connect(self, peer, body):
        check(body[:7] == b"\x00\x04MQTT\x04", "CONNECT begins otherwise")
        if self.refusal:
            peer.conn.send(bytes((0x20, 2, 0, self.refusal)))
            self.drop(peer)
            return
        clean = body[7] & 2
        peer.keepalive_ms = 1000 * (body[8] << 8 | body[9])
        name = bytes(body[12 : 12 + (body[10] << 8 | body[11])])
        for other in list(self.peers):
            if other is not peer and other.session is not None:
                self.drop(other)
        if clean and name in self.sessions:
            self.lose_sessions()
        present = name in self.sessions
        peer.session = self.sessions.setdefault(name, Session())
        self.connects += 1
        peer.conn.send(bytes((0x20, 2, present, 0)))

    def _publish(self, peer, first, body):
        qos = first >> 1 & 3
        dup = first & 8
        size = body[0] << 8 | body[1]
        topic = bytes(body[2 : 2 + size])
        check(size and qos < 3 and not (dup and not qos), "PUBLISH 0x{:02x}", first)
        if not qos:
            self._received(topic, bytes(body[2 + size :]), 0)
            return
        packet_id = body[2 + size] << 8 | body[3 + size]
        payload = bytes(body[4 + size :])
        check(packet_id, "packet id 0")
        check(not peer.open_id, "{} sent with {} in flight", packet_id, peer.open_id)
        session = peer.session
        known = session.published.get(packet_id)
        if dup:
            check(known in (None, (topic, payload)), "DUP of another message")
        elif known == (topic, payload):
            check(False, "sent again without DUP: {}", packet_id)
        session.published[packet_id] = (topic, payload)
        peer.open_id = packet_id
        if qos == 1:
            self._received(topic, payload, qos)
            session.published.pop(packet_id)
            if not self._answer(peer, 0x40, packet_id):
                session.published[packet_id] = (topic, payload)
            return
        if packet_id not in session.received:
            session.received.add(packet_id)
            self._received(topic, payload, qos)
        self._answer(peer, 0x50, packet_id)

    def _pubrel(self, peer, packet, body):
        packet_id = body[0] << 8 | body[1]
        check(packet[:2] == b"\x62\x02" and packet_id, "PUBREL of another form")
        peer.session.received.discard(packet_id)
        if peer.session.published.pop(packet_id, None):
            peer.open_id = packet_id
        self._answer(peer, 0x70, packet_id)

    def _answer(self, peer, first, packet_id):
        """Send an acknowledgement; False when it is lost on purpose."""
        if self.foreign_acks:
            self.foreign_acks -= 1
            foreign = (packet_id + 1000) % 65000 + 1
            peer.conn.send(bytes((first, 2, foreign >> 8, foreign & 255)))
        if self.lose_acks:
            self.lose_acks -= 1
            return False
        data = bytes((first, 2, packet_id >> 8, packet_id & 255))
        if self.repeat_acks:
            self.repeat_acks -= 1
            data += data
        if self.ack_delay:
            self.loop.at(self.ack_delay, self._acknowledge, (peer, first, data))
        else:
            self._acknowledge((peer, first, data))
        return True

    @staticmethod
    def _acknowledge(acknowledgement):
        peer, first, data = acknowledgement
        if first != 0x50:
            peer.open_id = 0
        peer.conn.send(data)

    def _subscribe(self, peer, packet, body):
        check(packet[0] == 0x82 and body[0] | body[1], "SUBSCRIBE of another form, or with id 0")
        peer.session.topics.add(bytes(body[4 : 4 + (body[2] << 8 | body[3])]))
        peer.conn.send(bytes((0x90, 3, body[0], body[1], body[-1])))

    def _received(self, topic, payload, qos):
        self.arrivals.take(topic, payload, qos, self.life)
