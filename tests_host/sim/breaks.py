"""Breaks: ways to damage the firmware, each of which the simulation must find.

A simulation that finds nothing is worth as much as what it would have found.
"""


def any_ack(app):
    """Whatever is acknowledged counts for what is in flight."""
    ack = app.ring.ack
    app.ring.ack = lambda packet_id: ack(app.ring.in_flight)


def no_dup(app):
    """What is sent again is not marked."""
    following = app.sender.next

    def broken(now):
        answer = following(now)
        app.sender.flags &= ~8
        return answer

    app.sender.next = broken


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
    """Packet ids begin with 0."""
    following = app.sender.next

    def broken(now):
        answer = following(now)
        app.sender.packet_id -= 1
        return answer

    app.sender.next = broken


def no_deadlines(app):
    """A link that says nothing is waited for, for ever."""
    app.link.overdue = lambda now: None
    app.sender.overdue = lambda now: False
    app.delivery_watchdog.check = lambda *_: False


def uncounted(app):
    """What the ring steals is not told to the ledger."""
    app.ledger.lose = lambda *_: None


def last_first(app):
    """A message overtakes others of its priority."""
    enqueue = app.queue.enqueue
    kept = []

    def broken(*arguments):
        if len(kept) == 0 and arguments[0] == "sim/1":
            kept.append(arguments)
            return 1
        if kept and arguments[0] == "sim/1":
            answer = enqueue(*arguments)
            enqueue(*kept.pop())
            return answer
        return enqueue(*arguments)

    app.queue.enqueue = broken


BREAKS = {
    "any_ack": any_ack,
    "no_dup": no_dup,
    "forgotten": forgotten,
    "two_in_flight": two_in_flight,
    "id_zero": id_zero,
    "no_deadlines": no_deadlines,
    "uncounted": uncounted,
    "last_first": last_first,
}
