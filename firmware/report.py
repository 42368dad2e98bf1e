"""Report: every gauge and counter of the application, as plain values.

`gauges` is the one place that collects them; the health message is its JSON, the status page
(`status_page`) its text, so the two cannot disagree. `items` answers the promise: where every item
is. `troubles` is the verdict: all that is not as it should be, in words; empty while all is well.
"""

import json

from micropython import const

from millpond.health import gauges as queue_gauges
from millpond.sender import CLEARING, LEAVING, WAITING

_LONGEST = const(120)  # characters of a text in the health message
_REFUSAL = const(60)
_MOST = const(4)  # troubles in the health message
# What goes, in this order, from a health message that does not fit.
_SPARED = ("unwell", "in_flight", "sampling", "last_error", "troubles")
_SPARED += ("commands", "link", "tasks", "sensors")
# What there is only while the program runs.
_OF_A_RUN = ("troubles", "link", "in_flight", "tasks", "unwell")
_PLAIN_PORT = const(1883)
_TLS_PORT = const(8883)
_NOTABLE_S = const(5)  # a link down for less is no trouble


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
        "started_by": app.started_by,
        "running": app.running,
        "troubles": troubles(app, now),
        "items": items(app),
        "link": _link(app),
        "in_flight": _in_flight(app),
        "intake": _intake(app, now),
        "ring": _ring(app.ring, app.packer.open_readings()),
        "lanes": _lanes(app.ring),
        "watchdog": {
            "fired": app.delivery_watchdog.fired,
            "since_well_ms": app.delivery_watchdog.idle_ms(now),
        },
        "commands": app.commands.gauges() if app.commands else None,
        "memory": app.memory(),
        "loop_lag_ms": app.ticker.worst_lag_ms,
        "sensors": {sampler.name: sampler.failures for sampler in app.samplers},
        "sampling": {sampler.name: _sampling(sampler) for sampler in app.samplers},
        "tasks": {task.name: task.restarts for task in app.supervisor.tasks if task.restarts},
        "unwell": app.supervisor.unwell(now) if app.running else [],
        "last_error": app.log.last_error,
    }


def for_page(app):
    """The gauges for the status page; what ended with the program, as it was at its end."""
    g = gauges(app)
    if not app.running and app.snapshot:
        for name in _OF_A_RUN:
            g[name] = app.snapshot[name]
        g["stopped_s"] = g["uptime_s"] - app.snapshot["uptime_s"]
    return g


def troubles(app, now):
    """What is not as it should be, a line each, the gravest first."""
    found = []
    down_s = app.clock.seconds - app.uplink.since
    if app.running:
        found += app.supervisor.unwell(now)
        if not app.uplink.is_up() and down_s >= _NOTABLE_S:
            found.append("the link is down: {}".format(app.uplink.reason))
            if not app.uplink.connects:
                found += _doubts_of_port(app.config)
    if app.time_server.failing and not app.clock.known:
        found.append("the time of day is not known: {}".format(app.time_server.failing))
    for topic in sorted(app.opening.refused):
        found.append("subscription to {} refused by the broker".format(topic))
    for sampler in app.samplers:
        if sampler.failing:
            found.append("sensor {} fails: {}".format(sampler.name, sampler.failing))
        elif sampler.paused:
            found.append("sensor {} is not read: app.start_sensors()".format(sampler.name))
    return found + app.advisor.advice


def _doubts_of_port(config):
    """A question, where the port of a broker that was never reached is that of the other kind."""
    port, tls = config["mqtt.port"], config["mqtt.tls"]
    if port == _TLS_PORT and not tls:
        return ["mqtt.port {} is mostly for TLS: is mqtt.tls to be true?".format(port)]
    if port == _PLAIN_PORT and tls:
        return ["mqtt.port {} is mostly without TLS: with it, it is mostly 8883".format(port)]
    return []


def _link(app):
    uplink = app.uplink
    up = uplink.is_up()
    return {
        "up": up,
        "broker": uplink.where,
        "for_s": app.clock.seconds - uplink.since,
        "reason": uplink.reason,
        "next_try_s": 0 if up else (uplink.left_ms + 999) // 1000,
        "network": app.network.status,
        "attempts": uplink.attempts,
        "connects": uplink.connects,
        "losses": uplink.losses,
        "pings": app.link.pings,
        "skipped": app.link.skipped,
        "round_trip_ms": app.sender.round_trip_ms,
        "resent": app.sender.resent,
        "stray_acks": app.ring.stray_acks + app.sender.strays,
    }


def _in_flight(app):
    sender = app.sender
    if sender.state < CLEARING:
        return None
    return {
        "packet_id": sender.packet_id,
        "topic": sender.topic.decode(),
        "bytes": sender.length,
        "qos": sender.qos,
        "dup": sender.dup,
        "awaits": _awaits(sender),
    }


def _awaits(sender):
    """What the message in flight waits for."""
    if sender.state == LEAVING:
        return "the network"
    if sender.qos < 2:
        return "PUBACK"
    return "PUBREC" if sender.state == WAITING else "PUBCOMP"


def _intake(app, now):
    intake = queue_gauges(app.queue, now)
    intake["drop_rate"] = round(intake["drop_rate"], 4)
    intake["throughput"] = round(intake["throughput"], 1)
    intake["blocked"] = app.packer.blocked
    return intake


def _ring(ring, open_readings):
    return {
        "messages": ring.messages(),
        "open_readings": open_readings,
        "bytes": ring.bytes_held(),
        "fill_percent": ring.fill_percent(),
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
        "expired": ring.expired,
        "refused": ring.refused,
        "dropped": ring.dropped,
    }


def _sampling(sampler):
    return {"bad_values": sampler.bad_values, "slowest_ms": sampler.slowest_ms}


def health(app, limit):
    """The health message: the gauges as JSON of at most `limit` bytes.

    Texts are cut; what is said elsewhere too goes when it still does not fit, and in the end all
    but the items.
    """
    g = gauges(app)
    g["troubles"] = [text[:_LONGEST] for text in g["troubles"][:_MOST]]
    g["last_error"] = g["last_error"][:_LONGEST]
    if g["commands"]:
        g["commands"]["last_refusal"] = g["commands"]["last_refusal"][:_REFUSAL]
    message = _packed(g)
    for name in _SPARED:
        if len(message) <= limit:
            return message
        del g[name]
        message = _packed(g)
    return message if len(message) <= limit else _packed({"ts": g["ts"], "items": g["items"]})


def _packed(g):
    return json.dumps(g, separators=(",", ":")).encode()


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
