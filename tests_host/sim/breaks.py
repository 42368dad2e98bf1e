"""Breaks: ways to damage the firmware, each of which the simulation must find.

A simulation that finds nothing is worth as much as what it would have found.
"""

_DUP = 8


def any_ack(app):
    """Whatever is acknowledged counts for what is in flight."""
    ack = app.ring.ack
    app.ring.ack = lambda packet_id: ack(app.ring.in_flight)


def no_dup(app):
    """What is sent again is not marked."""
    following = app.sender.next

    def broken(now):
        answer = following(now)
        app.sender.flags &= ~_DUP
        return answer

    app.sender.next = broken


def fresh_id(app):
    """What is sent again has another id than before."""
    connected = app.sender.connected

    def broken(present, now):
        connected(present, now)
        app.sender._session_id = 0

    app.sender.connected = broken


def taken_for_kept(app):
    """A new session is taken for the one before."""
    connected = app.sender.connected
    app.sender.connected = lambda present, now: connected(True, now)


def forgotten(app):
    """What was in flight when the link was lost counts as delivered."""
    lost = app.sender.disconnected

    def broken():
        if app.ring.in_flight:
            app.ring.ack(app.ring.in_flight)
        lost()

    app.sender.disconnected = broken


def two_in_flight(app):
    """The next message leaves before the last one is acknowledged."""
    left = app.sender.left

    def broken(now):
        left(now)
        if app.sender.qos == 1 and app.ring.in_flight:
            app.sender.acked(app.ring.in_flight, now)

    app.sender.left = broken


def id_zero(app):
    """The packet id is always 0."""
    following = app.sender.next

    def broken(now):
        answer = following(now)
        app.sender.packet_id = 0
        return answer

    app.sender.next = broken


def id_wraps_to_zero(app):
    """Packet ids run on past 65,535."""
    following = app.sender.next

    def broken(now):
        answer = following(now)
        if answer and app.sender.packet_id == 1:
            app.sender.packet_id = 0
        return answer

    app.sender.next = broken


def forgotten_pubrec(app):
    """A message that has had its PUBREC is published again over a new connection."""
    lost = app.sender.disconnected

    def broken():
        lost()
        app.sender._received = False

    app.sender.disconnected = broken


def pubrel_skipped(app):
    """What had its PUBREC when the link was lost counts as delivered on the next one."""
    connected = app.sender.connected

    def broken(present, now):
        connected(present, now)
        sender = app.sender
        if present and sender._received and app.ring.head():
            app.ring.sent(sender._session_id)
            sender._advance(sender._session_id, now)
            app.uplink._backoff.reset()

    app.sender.connected = broken


def pubrec_is_enough(app):
    """A message of QoS 2 counts as delivered before its PUBCOMP."""
    received = app.sender.received

    def broken(packet_id, now):
        answer = received(packet_id, now)
        if answer:
            app.receipts.delivered(app.sender.at, app.sender.length, app.ring.head_tag)
        return answer

    app.sender.received = broken


def uncleared(app):
    """An id that the broker may hold from a life before is used as if it were free."""
    connected = app.sender.connected

    def broken(present, now):
        connected(present, now)
        app.sender._ids.trust()

    app.sender.connected = broken


def cleared_unheard(app):
    """Such an id is released, and used before the PUBCOMP has come."""
    release = app.link.release

    def broken(packet_id):
        answer = release(packet_id)
        app.sender.cleared(packet_id)
        return answer

    app.link.release = broken


def no_deadlines(app):
    """A link that says nothing is waited for, for ever."""
    app.link.overdue = lambda now: None
    app.sender.overdue = lambda now: False
    app.delivery_watchdog.check = lambda *_: False


def watchdog_asleep(app):
    """Nothing is done about a link that is up and delivers nothing."""
    app.delivery_watchdog.check = lambda *_: False


def no_pings(app):
    """A quiet link is neither kept alive nor looked at."""
    assert app.link._silence._half_ms is not None
    app.link._silence._half_ms = 0


def old_opening(app):
    """The greetings of a lost connection are gone on with on the next one."""
    opening = app.uplink.opening
    end = opening.end

    def broken():
        steps = opening._steps
        end()
        opening._steps = steps

    opening.end = broken


class _Lasting(set):
    """A set that does not forget."""

    def clear(self):
        pass


def subscribed_for_ever(app):
    """A subscription is not renewed when the broker has lost the session."""
    app.uplink.opening.subscribed = _Lasting()


def early_reset(app):
    """The back-off begins anew with each connection, not with each delivery."""
    connected = app.sender.connected

    def broken(present, now):
        app.uplink._backoff.reset()
        connected(present, now)

    app.sender.connected = broken


def no_cap(app):
    """The wait between two tries is ever the same and long."""
    app.uplink._backoff.next_ms = lambda permanent=False: 200000


def left_open(app):
    """The socket of a lost connection stays open."""
    close = app.link.close

    def broken():
        app.link.sock = None
        close()

    app.link.close = broken


def uncounted(app):
    """What the ring steals is not told to the ledger."""
    app.ledger.lose = lambda *_: None


def expired_uncounted(app):
    """What the ring drops because of its age is not counted."""
    _uncounted_for(app, "expired")


def poison_uncounted(app):
    """What is dropped as poison is not counted."""
    _uncounted_for(app, "poison")


def _uncounted_for(app, unheard):
    told = app.ledger.lost

    def broken(at, length, tag, lane, reason):
        if reason != unheard:
            told(at, length, tag, lane, reason)

    app.ledger.lost = broken


def receipts_lost(app):
    """Nobody is told what became of a message."""
    app.receipts._note = lambda *_: None


def pace_ignored(app):
    """Messages leave as fast as they are acknowledged, whatever the rate limit."""
    following = app.sender.next

    def broken(now):
        if app.sender.pacer:
            app.sender.pacer.begin(now)
        return following(now)

    app.sender.next = broken


def last_first(app):
    """A message overtakes others of its priority."""
    enqueue = app.queue.enqueue
    kept = []

    def broken(*arguments):
        if len(kept) == 0 and arguments[0] == "sim/1":
            kept.append(arguments)
            return 0
        if kept and arguments[0] == "sim/1":
            answer = enqueue(*arguments)
            enqueue(*kept.pop())
            return answer
        return enqueue(*arguments)

    app.queue.enqueue = broken


_ALL = (
    any_ack,
    no_dup,
    fresh_id,
    taken_for_kept,
    forgotten,
    two_in_flight,
    id_zero,
    id_wraps_to_zero,
    forgotten_pubrec,
    pubrel_skipped,
    pubrec_is_enough,
    uncleared,
    cleared_unheard,
    no_deadlines,
    watchdog_asleep,
    no_pings,
    old_opening,
    subscribed_for_ever,
    early_reset,
    no_cap,
    left_open,
    uncounted,
    expired_uncounted,
    poison_uncounted,
    receipts_lost,
    pace_ignored,
    last_first,
)
BREAKS = {broken.__name__: broken for broken in _ALL}
