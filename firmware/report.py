"""Report: every gauge and counter of the application, for the health message and the console.

`gauges` is the one place that collects them; the health message is its JSON, the status page
(`page`) its text, so the two cannot disagree. `items` answers the promise: where every item is.
"""

import gc
import json
import time

from micropython import const

from millpond.clock import unix_seconds
from millpond.sender import LEAVING

_BAR = const(20)
_LONGEST = const(120)  # characters of a text in the health message
_MOST_ADVICE = const(4)
_ROW = "{:>9}{:>9}{:>9}{:>9}{:>9}"
LANES = ("low", "normal", "high", "critical")


def items(app):
    """Where every item is (a reading or a message): produced = delivered + dropped + held."""
    stats = app.queue.stats
    ledger = app.ledger
    dropped = {
        "refused": stats.refused,
        "displaced": stats.displaced,
        "expired": stats.expired,
        "cleared": stats.cleared,
    }
    for reason in ledger.items_lost:
        dropped[reason] = dropped.get(reason, 0) + ledger.lost_for(reason)
    return {
        # What did not come through the intake was put straight into the ring.
        "produced": stats.offered + ledger.items_taken - stats.dequeued,
        "delivered": ledger.items_delivered,
        "dropped": dropped,
        "held": len(app.queue) + ledger.held(),
    }


def gauges(app):
    """Every gauge and counter, as nested dicts of plain values."""
    clock = app.clock
    now = clock.now()
    return {
        "device": app.name,
        "ts": clock.unix(),
        "clock_known": clock.known,
        "uptime_s": clock.seconds,
        "running": app.running,
        "link": _link(app),
        "in_flight": _in_flight(app),
        "intake": _intake(app, now),
        "ring": _ring(app.ring, app.packer.open_readings()),
        "lanes": _lanes(app.ring),
        "items": items(app),
        "watchdog": {
            "fired": app.delivery_watchdog.fired,
            "since_well_ms": app.delivery_watchdog.idle_ms(now),
        },
        "memory": {"free": gc.mem_free(), "used": gc.mem_alloc()},
        "loop_lag_ms": app.worst_lag_ms,
        "tasks": {task.name: task.restarts for task in app.supervisor.tasks if task.restarts},
        "unwell": app.supervisor.unwell(now) if app.running else [],
        "last_error": app.log.last_error,
        "advice": app.advice,
    }


def ring_totals(ring):
    """Messages offered to the ring, lost by it and delivered from it, and no waiting times."""
    lost = sum(ring.stolen) + sum(ring.dropped) + sum(ring.refused)
    acked = sum(ring.acked)
    return acked + lost + ring.messages(), lost, acked, 0


def _link(app):
    uplink = app.uplink
    up = uplink.is_up()
    return {
        "up": up,
        "broker": uplink.where,
        "for_s": app.clock.seconds - uplink.since,
        "reason": "" if up else uplink.reason,
        "last_reason": uplink.reason,
        "network": app.network.status,
        "attempts": uplink.attempts,
        "connects": uplink.connects,
        "losses": uplink.losses,
        "pings": app.link.pings,
        "skipped": app.link.skipped,
        "round_trip_ms": app.sender.round_trip_ms,
        "resent": app.sender.resent,
        "stray_acks": app.ring.stray_acks,
    }


def _in_flight(app):
    sender = app.sender
    if sender.state < LEAVING:
        return None
    return {
        "packet_id": sender.packet_id,
        "topic": sender.topic.decode(),
        "bytes": sender.length,
        "qos": sender.qos,
        "dup": sender.dup,
    }


def _intake(app, now):
    queue = app.queue
    stats = queue.stats
    return {
        "held": len(queue),
        "slots": queue.capacity,
        "high_water": stats.high_water,
        "per_s": round(stats.throughput, 1),
        "wait_ms": stats.mean_wait_ms,
        "max_wait_ms": stats.max_wait_ms,
        "oldest_ms": queue.oldest_ms(now),
        "blocked": app.packer.blocked,
    }


def _ring(ring, open_readings):
    return {
        "open_readings": open_readings,
        "messages": ring.messages(),
        "bytes": ring.bytes_held(),
        "fill": ring.fill_percent(),
        "free": ring.pages_free(),
        "work": ring.pages_work(),
        "used": ring.pages_used(),
        "pages": ring.pages,
        "high_water": ring.high_water(),
        "oldest_s": ring.oldest_age(),
    }


def _lanes(ring):
    """Counters of messages, each a list with the lowest lane first."""
    return {
        "held": [ring.held(lane) for lane in range(ring.lanes)],
        "acked": ring.acked,
        "stolen": ring.stolen,
        "refused": ring.refused,
        "dropped": ring.dropped,
    }


def health(app, limit):
    """The health message: the gauges as JSON of at most `limit` bytes.

    What is text, and may be long, goes first when it does not fit.
    """
    g = gauges(app)
    g["advice"] = [text[:_LONGEST] for text in g["advice"][:_MOST_ADVICE]]
    g["last_error"] = g["last_error"][:_LONGEST]
    message = json.dumps(g).encode()
    for name in ("advice", "unwell", "last_error", "tasks"):
        if len(message) > limit:
            del g[name]
            message = json.dumps(g).encode()
    return message


def line(app):
    """The state in one line, for the console's log."""
    account = items(app)
    return "link {}, intake {}/{}, ring {} %, held {}, delivered {}, dropped {}".format(
        "up" if app.uplink.is_up() else "down",
        len(app.queue),
        app.queue.capacity,
        app.ring.fill_percent(),
        account["held"],
        account["delivered"],
        sum(account["dropped"].values()),
    )


def page(g):
    """The status page: what `gauges` gave, as text that a person can read."""
    return "\n".join(["{:<12}{}".format(name, text) for name, text in _lines(g)])


def _lines(g):
    yield g["device"], _since(g)
    yield from _link_lines(g["link"])
    yield "in flight", _flight_line(g["in_flight"])
    intake = g["intake"]
    yield (
        "intake",
        "{} of {} slots{}; most {}; {} a second; waits {} ms, at most {} ms".format(
            intake["held"],
            intake["slots"],
            ", held back by the ring" if intake["blocked"] else "",
            intake["high_water"],
            intake["per_s"],
            intake["wait_ms"],
            intake["max_wait_ms"],
        ),
    )
    yield from _ring_lines(g["ring"])
    lanes = g["lanes"]
    columns = ("held", "acked", "stolen", "refused", "dropped")
    yield "lanes", _ROW.format(*columns)
    for lane in reversed(range(len(LANES))):
        row = _ROW.format(*[lanes[column][lane] for column in columns])
        yield "", "{}  {}".format(row, LANES[lane])
    yield from _account_lines(g["items"])
    dog = g["watchdog"]
    yield (
        "watchdog",
        "fired {} times; {} s since a delivery or nothing to deliver".format(
            dog["fired"], dog["since_well_ms"] // 1000
        ),
    )
    yield (
        "memory",
        "{} KB free, {} KB used".format(g["memory"]["free"] // 1024, g["memory"]["used"] // 1024),
    )
    yield "loop", "late by {} ms at worst".format(g["loop_lag_ms"])
    yield "tasks", _tasks_line(g)
    yield "last error", g["last_error"] or "none"
    yield "health", g["advice"][0] if g["advice"] else "good"
    for text in g["advice"][1:]:
        yield "", text


def _since(g):
    if g["clock_known"]:
        return "up {}; {}".format(_span(g["uptime_s"]), _date(g["ts"]))
    return "up {}; the time of day is not known yet".format(_span(g["uptime_s"]))


def _link_lines(link):
    state = "UP" if link["up"] else "DOWN"
    yield "link", "{} for {}, broker {}".format(state, _span(link["for_s"]), link["broker"])
    if link["reason"]:
        yield "", link["reason"]
    elif link["losses"]:
        yield "", "last time down: " + link["last_reason"]
    yield (
        "",
        "{} attempts, {} connects, {} losses; round trip {} ms; resent {}, stray acks {}".format(
            link["attempts"],
            link["connects"],
            link["losses"],
            link["round_trip_ms"],
            link["resent"],
            link["stray_acks"],
        ),
    )
    yield "network", link["network"]


def _flight_line(flight):
    if not flight:
        return "nothing"
    return "packet {} to {}, {} bytes, QoS {}{}".format(
        flight["packet_id"],
        flight["topic"],
        flight["bytes"],
        flight["qos"],
        ", again" if flight["dup"] else "",
    )


def _ring_lines(ring):
    full = ring["fill"] * _BAR // 100
    bar = "#" * full + "." * (_BAR - full)
    yield (
        "ring",
        "[{}] {} %, {} messages, {} bytes, oldest {}".format(
            bar, ring["fill"], ring["messages"], ring["bytes"], _span(ring["oldest_s"])
        ),
    )
    yield (
        "pages",
        "{} free, {} work, {} used of {}; most in use {}".format(
            ring["free"], ring["work"], ring["used"], ring["pages"], ring["high_water"]
        ),
    )


def _account_lines(account):
    dropped = account["dropped"]
    lost = sum(dropped.values())
    yield (
        "items",
        "{} produced = {} delivered + {} dropped + {} held".format(
            account["produced"], account["delivered"], lost, account["held"]
        ),
    )
    reasons = ["{} {}".format(reason, dropped[reason]) for reason in sorted(dropped)]
    yield "dropped", ", ".join(reasons)


def _tasks_line(g):
    if not g["running"]:
        return "stopped at the REPL; resume() goes on"
    restarts = ["{} restarted {} times".format(name, g["tasks"][name]) for name in g["tasks"]]
    return "; ".join(g["unwell"] + restarts) or "all well"


def _date(unix):
    """A Unix time as 2026-11-30 20:05:12 UTC."""
    since_epoch = unix - unix_seconds(0, time.gmtime(0)[0])
    return "{}-{:02d}-{:02d} {:02d}:{:02d}:{:02d} UTC".format(*time.gmtime(since_epoch)[:6])


def _span(seconds):
    """A number of seconds as a person says it: 42 s, 7 min 3 s, 3 h 12 min, 5 d 1 h."""
    for unit, small, size in (("d", "h", 86400), ("h", "min", 3600), ("min", "s", 60)):
        if seconds >= size:
            rest = seconds % size // {"h": 3600, "min": 60, "s": 1}[small]
            return "{} {} {} {}".format(seconds // size, unit, rest, small)
    return "{} s".format(seconds)
