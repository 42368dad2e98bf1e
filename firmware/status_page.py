"""The status page: what `report.gauges` collected, as text for a person at the console.

Pure: gauges in, lines out, each of at most 100 characters where the texts in them allow it. What
counts items (readings and messages) and what counts messages (a batch is one) says so.
"""

from micropython import const

from firmware.port_clock import date
from firmware.settings import printable

_BAR = const(20)
_WIDEST = const(75)
_ROW = "{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}"
_COLUMNS = ("held", "acked", "stolen", "expired", "refused", "dropped")
_LANES = ("low", "normal", "high", "critical")


def page(g):
    """The page for the gauges `g`; `g["stopped_s"]`, if there, says how long the program stands."""
    return "\n".join(["{:<11} {}".format(name, text).rstrip() for name, text in _lines(g)])


def _lines(g):
    yield g["device"], _since(g)
    yield from _health_lines(g)
    yield from _link_lines(g)
    yield "in flight", _flight(g["in_flight"])
    yield from _intake_lines(g["intake"])
    yield from _ring_lines(g["ring"])
    yield from _lane_lines(g["lanes"])
    yield from _item_lines(g["items"])
    yield from _command_lines(g["commands"])
    yield from _self_lines(g)


def _since(g):
    known = date(g["ts"]) if g["clock_known"] else "the time of day is not known yet"
    started = " by " + g["started_by"] if g["started_by"] else ""
    return "started {} ago{}; {}".format(span(g["uptime_s"]), started, known)


def _health_lines(g):
    if "stopped_s" in g:
        yield "program", "stopped for {}; resume() lets it go on".format(span(g["stopped_s"]))
    texts = g["troubles"] or ["good"]
    yield "health", texts[0]
    for text in texts[1:]:
        yield "", text


def _link_lines(g):
    link = g["link"]
    was = "when it was stopped: " if "stopped_s" in g else ""
    state = "up" if link["up"] else "DOWN"
    yield "link", "{}{} for {}, broker {}".format(was, state, span(link["for_s"]), link["broker"])
    if not link["up"]:
        yield "", "because " + link["reason"]
        if link["next_try_s"]:
            yield "", "next try in " + span(link["next_try_s"])
    elif link["losses"]:
        yield "", "last loss: " + link["reason"]
    text = "{} of {} succeeded, then {} lost; last round trip {} ms; {} sent again"
    connects = "connects: " + text.format(
        link["connects"],
        link["attempts"],
        link["losses"],
        link["round_trip_ms"],
        link["resent"],
    )
    yield "", connects
    if link["stray_acks"]:
        yield "", "{} acknowledgements of nothing in flight".format(link["stray_acks"])
    if link["skipped"]:
        yield "", "{} messages too large to be read were passed over".format(link["skipped"])
    yield "network", link["network"]


def _flight(flight):
    if not flight:
        return "nothing"
    again = ", again" if flight["dup"] else ""
    text = "packet {} to {}, {} bytes, QoS {}{}; awaits {}"
    return text.format(
        flight["packet_id"],
        flight["topic"],
        flight["bytes"],
        flight["qos"],
        again,
        flight["awaits"],
    )


def _intake_lines(intake):
    text = "{} of {} slots taken, {} at most; {} a second go out"
    yield (
        "intake",
        text.format(intake["size"], intake["capacity"], intake["high_water"], intake["throughput"]),
    )
    text = "time in it: {} ms on average, {} ms at most"
    yield "", text.format(intake["mean_wait_ms"], intake["max_wait_ms"])
    if intake["blocked"]:
        yield "", "held back: the ring is full of what is at least as urgent"


def _ring_lines(ring):
    full = ring["fill_percent"] * _BAR // 100
    bar = "#" * full + "." * (_BAR - full)
    text = "[{}] {} of {} pages taken, {} at most"
    in_use = ring["pages"] - ring["free"]
    yield "ring", text.format(bar, in_use, ring["pages"], ring["high_water"])
    text = "pages: {} free, {} work, {} used"
    yield "", text.format(ring["free"], ring["work"], ring["used"])
    if ring["messages"]:
        text = "{} messages wait, {} bytes, the oldest for {}"
        yield "", text.format(ring["messages"], ring["bytes"], span(ring["oldest_s"]))
    if ring["open_readings"]:
        yield "", "{} readings in batches not yet closed".format(ring["open_readings"])


def _lane_lines(lanes):
    yield "messages", _ROW.format(*_COLUMNS)
    for lane in reversed(range(len(_LANES))):
        row = _ROW.format(*[lanes[column][lane] for column in _COLUMNS])
        yield "", "{}  {}".format(row, _LANES[lane])


def _item_lines(account):
    dropped = account["dropped"]
    yield (
        "items",
        "{} produced = {} delivered + {} dropped + {} held".format(
            account["produced"], account["delivered"], sum(dropped.values()), account["held"]
        ),
    )
    reasons = ["{} {}".format(dropped[name], name) for name in sorted(dropped) if dropped[name]]
    yield "dropped", ", ".join(reasons) or "nothing"


def _command_lines(commands):
    if not commands:
        yield "commands", "not enabled"
        return
    text = "{} came: {} done, {} refused, {} repeated, {} ignored; {} not answered"
    names = ("received", "done", "refused", "repeated", "ignored", "unanswered")
    yield "commands", text.format(*[commands[name] for name in names])
    if commands["refused"]:
        text = printable(commands["last_refusal"])
        yield "", "refused: " + (text if len(text) <= _WIDEST else text[:_WIDEST] + "...")


def _self_lines(g):
    dog = g["watchdog"]
    text = "forced {} reconnects; all was well {} ago"
    yield "watchdog", text.format(dog["fired"], span(dog["since_well_ms"] // 1000))
    memory = g["memory"]
    text = "{} KB free, {} KB used; the loop was late by {} ms at worst"
    yield "memory", text.format(memory["free"] // 1024, memory["used"] // 1024, g["loop_lag_ms"])
    yield from _sensor_lines(g["sensors"], g["sampling"])
    restarts = ["{} restarted {} times".format(name, n) for name, n in sorted(g["tasks"].items())]
    yield "tasks", "; ".join(g["unwell"] + restarts) or "all well"
    yield "last error", g["last_error"] or "none"


def _sensor_lines(failures, sampling):
    failed = ["{} failed {} times".format(name, n) for name, n in sorted(failures.items()) if n]
    yield "sensors", "; ".join(failed) or "no failures: " + ", ".join(sorted(failures))
    slowest = ["{} {} ms".format(name, sampling[name]["slowest_ms"]) for name in sorted(sampling)]
    if slowest:
        yield "", "slowest read: " + ", ".join(slowest)
    for name in sorted(sampling):
        if sampling[name]["bad_values"]:
            text = "{} gave {} values that their tags cannot have"
            yield "", text.format(name, sampling[name]["bad_values"])


def span(seconds):
    """A number of seconds as a person says it: 42 s, 7 min 3 s, 3 h 12 min, 5 d 1 h."""
    for unit, small, size in (("d", "h", 86400), ("h", "min", 3600), ("min", "s", 60)):
        if seconds >= size:
            rest = seconds % size // {"h": 3600, "min": 60, "s": 1}[small]
            return "{} {} {} {}".format(seconds // size, unit, rest, small)
    return "{} s".format(seconds)
