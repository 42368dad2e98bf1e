"""Watch: what the firmware claims in one of its lives, each claim looked at when it is made.

It stands between the Sender and the Link, the Receipts and the Backoff, and sees what is handed
over to be sent, what is taken for delivered, what is dropped, and how long is waited.

`attempt` is the message that was handed over last and is neither delivered nor dropped. `known`
says that a broker with a kept session may know it by its id, `fresh` that nothing has been sent on
this connection yet.
"""

from tests_host.sim.arrivals import GREETINGS, numbered, readings
from tests_host.sim.verdict import must

from millpond.page_lists import NONE  # isort: skip

_SLACK_MS = 3000
_CATCH_UP_MS = 60


class Watch:
    """Looks at `app`; `arrivals` and `broker` are the world's."""

    def __init__(self, app, loop, net, broker, arrivals):
        self._app = app
        self._loop = loop
        self._net = net
        self._broker = broker
        self._arrivals = arrivals
        self.attempt = None
        self._id = self._at = 0
        self._known = self._fresh = self._received = False
        self._paced = self._first_at = 0
        self._claimed = {}
        self.delivered_items = self.dropped_items = 0
        self.dropped_numbers = set()
        self._well = loop.now
        self._progress = None
        self._stand_between()

    def _stand_between(self):
        from firmware.link import UP  # what it imports must be simulated by then

        app = self._app
        self._up = UP
        sender = app.sender
        backoff = app.uplink._backoff
        self._backoff = backoff
        self._least_ms = self._ceiling_ms = backoff.ceiling_ms
        self._real_send, app.link.send = app.link.send, self._send
        self._real_connected, sender.connected = sender.connected, self._connected
        self._real_received, sender.received = sender.received, self._pubrec
        self._real_next_ms, backoff.next_ms = backoff.next_ms, self._next_ms
        sender._on_delivered = self._delivered
        app.ring._on_drop = self._dropped

    # -- what is sent ----------------------------------------------------------------------------

    def _connected(self, present, now):
        app = self._app
        must(app.link.state == self._up, "the Sender is let loose on a link that is not up")
        self._known = self._known and app.link._connack[0]
        self._fresh = True
        self._paced = 0
        self._real_connected(present, now)

    def _pubrec(self, packet_id, now):
        taken = self._real_received(packet_id, now)
        self._received = self._received or taken
        return taken

    def _send(self, topic, payload, flags, packet_id):
        must(self._app.link.state == self._up, "sent on a link that is not up")
        message = (bytes(topic), bytes(payload))
        if message[0] in GREETINGS:
            return self._real_send(topic, payload, flags, packet_id)
        qos = flags >> 1 & 3
        dup = flags & 8 > 0
        must(not qos or 1 <= packet_id <= 65535, "packet id {}", packet_id)
        if self.attempt is None:
            must(not dup, "DUP on the first send of {}", packet_id)
        else:
            self._judge_repetition(message, qos, dup, packet_id)
        self._judge_pace()
        self.attempt = message
        self._id = packet_id
        self._at = self._app.sender.at
        self._fresh = False
        self._known = qos > 0
        self._received = False
        left = self._real_send(topic, payload, flags, packet_id)
        if left is None:
            self.attempt = None
        return left

    def _judge_repetition(self, message, qos, dup, packet_id):
        must(message == self.attempt, "{} sent before {}, the last", message, self.attempt)
        must(self._fresh, "{} sent again on a live connection", packet_id)
        must(dup == self._known, "{} sent again, DUP {}, session {}", self._id, dup, self._known)
        must(not dup or packet_id == self._id, "{} sent again as {}", self._id, packet_id)
        must(not dup or not self._received, "{} published again after its PUBREC", packet_id)

    def _judge_pace(self):
        """Since the first on this connection, no more than the rate limit allows may have left."""
        rate = self._app.config["send.rate_limit"]
        if not rate:
            return
        if not self._paced:
            self._first_at = self._loop.now
        due_ms = 1000 * self._paced // rate - _CATCH_UP_MS
        passed_ms = self._loop.now - self._first_at
        must(passed_ms >= due_ms, "message {} of a connection, {} ms", self._paced, passed_ms)
        self._paced += 1

    # -- what becomes of it ----------------------------------------------------------------------

    def _message(self, at, length, tag):
        return self._app.topics.encoded(tag & 0xFF), bytes(self._app.ring.buffer[at : at + length])

    def _delivered(self, at, length, tag):
        message = self._message(at, length, tag)
        qos = tag >> 8 & 3
        must(message == self.attempt, "{} delivered, {} was sent last", message, self.attempt)
        if qos:
            claimed = self._claimed[message] = self._claimed.get(message, 0) + 1
            came = self._arrivals.times.get(message, 0)
            must(claimed <= came, "{} counts as delivered, and never came", message)
            self._ceiling_ms = self._least_ms
        if qos == 2:
            for session in self._broker.sessions.values():
                must(self._id not in session.received, "{} delivered, not released", self._id)
        self.attempt = None
        self._known = False
        self.delivered_items += items_in(message)
        self._app.receipts.delivered(at, length, tag)

    def _dropped(self, at, length, tag, lane, reason):
        message = self._message(at, length, tag)
        if self.attempt and at == self._at:
            self.attempt = None
            self._known = False
        self.dropped_items += items_in(message)
        self.dropped_numbers.update([number for _, number in numbered(*message)])
        self._app.receipts.lost(at, length, tag, lane, reason)

    def _next_ms(self, permanent=False):
        must(
            self._backoff.ceiling_ms == self._ceiling_ms,
            "back-off up to {} ms, {} are due",
            self._backoff.ceiling_ms,
            self._ceiling_ms,
        )
        ms = self._real_next_ms(permanent)
        cap_ms = 1000 * self._app.config["mqtt.backoff_max_s"]
        must(0 <= ms <= (cap_ms if permanent else self._ceiling_ms), "a back-off of {} ms", ms)
        self._ceiling_ms = cap_ms if permanent else min(2 * self._ceiling_ms, cap_ms)
        return ms

    # -- what is asked at any idle moment --------------------------------------------------------

    def look(self):
        """A link that does nothing must have been given up in time; few figures, many looks."""
        app = self._app
        progress = (app.sender.delivered, app.uplink.connects)
        if not app.uplink.is_up() or not app.ring.messages() or progress != self._progress:
            self._progress = progress
            self._well = self._loop.now
        idle_ms = self._loop.now - self._well
        limit_ms = 1000 * (app.delivery_watchdog._timeout_ms // 1000 + 1) + _SLACK_MS
        must(idle_ms <= limit_ms, "nothing delivered for {} ms, and the link is kept", idle_ms)
        conn = self._net.conn
        half_ms = 500 * app.config["mqtt.keepalive_s"]
        if half_ms and conn and conn.deaf_since is not None and app.uplink.is_up():
            deaf_ms = self._loop.now - conn.deaf_since
            limit_ms = half_ms + max(half_ms, 1000) + _SLACK_MS
            must(deaf_ms <= limit_ms, "a link that was dead for {} ms is kept", deaf_ms)

    def check(self):
        """Ring, intake and account agree with each other, and with what was seen of them."""
        app = self._app
        app.ring.check()
        app.queue.check()
        items = app.counters()
        dropped = sum(items["dropped"].values())
        told = items["delivered"]
        must(told == self.delivered_items, "{} delivered, told {}", self.delivered_items, told)
        must(self.dropped_items <= dropped, "{} dropped, told {}", self.dropped_items, dropped)
        held = len(app.queue) + app.packer.open_readings() + stored(app.ring, app.ledger)
        must(held == items["held"], "{} held, told {}", held, items)
        must(items["produced"] == told + dropped + held, "the account does not balance: {}", items)
        must(len(self._net.open) <= 1, "{} sockets open", len(self._net.open))

    def check_empty(self):
        """With nothing held, nothing is kept of what was (memory as at the start)."""
        app = self._app
        ring = app.ring
        must(ring.pages_free() + ring.pages_work() == ring.pages, "pages in use, and empty")
        must(ring.bytes_held() == 0 and ring.in_flight == 0, "bytes held, and nothing stored")
        must(not app.receipts._items and not app.receipts._noted, "receipts of what is gone")
        must(app.receipts._queue.is_empty(), "receipts that are not told")
        must(self.attempt is None, "{} is neither delivered nor dropped", self.attempt)


def items_in(message):
    """How many items a message is, counted one by one."""
    batch = readings(*message)
    return 1 if batch is None else len(batch)


def stored(ring, ledger):
    """How many items lie in a ring's pages, by a walk through them."""
    items = 0
    for lane in range(ring.lanes):
        at, _, _, page = ring._work[lane][:4]
        if page != NONE:
            items += _items_between(ring, ledger, page * ring.page_size, at - 8)
        for page in ring.lists.used(lane):
            start = page * ring.page_size
            end = start + ring._write[page]
            items += _items_between(ring, ledger, start + ring._read[page], end)
    return items


def _items_between(ring, ledger, at, end):
    items = 0
    buffer = ring.buffer
    while at < end:
        size = buffer[at + 6] << 8 | buffer[at + 7]
        items += ledger.items_in(at + 8, size, buffer[at + 2] << 8 | buffer[at + 3])
        at += 8 + size
    return items
