"""Report: every gauge is the object's own, and the health message always fits."""

import json

from firmware import report
from millpond.clock import Clock
from millpond.ledger import Ledger
from millpond.message_queue import MessageQueue
from millpond.paged_ring import PagedRing
from millpond.sender import CLEARING, LEAVING, RELEASE, RELEASING, WAITING
from millpond.watchdog import DeliveryWatchdog


class Thing:
    """An object with the attributes it is given."""

    def __init__(self, **attributes):
        for name in attributes:
            setattr(self, name, attributes[name])


def app(up=True, length=10):
    """An application as far as report looks at it, with texts of some length."""
    text = '"' * length
    clock = Clock(lambda: 4000)
    clock.seconds = 100
    uplink = Thing(
        is_up=lambda: up,
        where=text,
        since=40,
        reason=text,
        attempts=7,
        connects=5,
        losses=4,
        left_ms=4200,
    )
    sender = Thing(
        state=3,
        packet_id=9,
        topic=text.encode(),
        length=77,
        qos=1,
        dup=False,
        round_trip_ms=12,
        resent=2,
        strays=0,
    )
    queue = MessageQueue(8)
    for _ in range(9):
        queue.enqueue("t", b"x")
    queue.peek(0)
    queue.pop(0)
    ring = PagedRing(640, 64, 4)
    ring.append(bytes(40), 2)
    ledger = Ledger()
    ledger.items_taken = 1
    ledger.lose(0, "stolen", 0)
    return Thing(
        clock=clock,
        name=text,
        started_by="power on",
        running=True,
        uplink=uplink,
        opening=Thing(refused=set()),
        config={"mqtt.port": 1883, "mqtt.tls": False},
        time_server=Thing(failing=""),
        sender=sender,
        queue=queue,
        ring=ring,
        ledger=ledger,
        link=Thing(pings=3, skipped=1),
        network=Thing(status=text),
        packer=Thing(open_readings=lambda: 14, blocked=True),
        delivery_watchdog=DeliveryWatchdog(120),
        samplers=[
            Thing(name="plant", failures=2, failing="", paused=False, bad_values=8, slowest_ms=31)
        ],
        supervisor=Thing(tasks=[Thing(name="link", restarts=3)], unwell=lambda now: []),
        advisor=Thing(advice=[]),
        commands=Thing(gauges=lambda: {"done": 5, "last_refusal": text}),
        memory=lambda: {"free": 5, "used": 7},
        ticker=Thing(worst_lag_ms=6),
        log=Thing(last_error=text),
    )


def test_what_the_message_in_flight_awaits():
    one = app()
    for state, qos, awaits in (
        (CLEARING, 2, "PUBCOMP"),
        (LEAVING, 1, "the network"),
        (WAITING, 1, "PUBACK"),
        (WAITING, 2, "PUBREC"),
        (RELEASE, 2, "PUBCOMP"),
        (RELEASING, 2, "PUBCOMP"),
    ):
        one.sender.state, one.sender.qos = state, qos
        assert report.gauges(one)["in_flight"]["awaits"] == awaits


def test_gauges_are_what_the_objects_say():
    g = report.gauges(app())
    assert g["uptime_s"] == 100 and g["ts"] == 100 and g["clock_known"] is False
    assert g["link"]["for_s"] == 60 and g["link"]["connects"] == 5 and g["link"]["resent"] == 2
    assert g["in_flight"]["packet_id"] == 9 and g["in_flight"]["bytes"] == 77
    assert g["intake"]["size"] == 7 and g["intake"]["refused"] == 1 and g["intake"]["blocked"]
    assert g["intake"]["dequeued"] == 1 and g["intake"]["high_water"] == 8
    assert (
        g["ring"]["messages"] == 1 and g["ring"]["free"] == 9 and g["ring"]["open_readings"] == 14
    )
    assert g["lanes"]["held"] == [0, 0, 1, 0]
    assert g["sensors"] == {"plant": 2} and g["tasks"] == {"link": 3}
    assert g["sampling"] == {"plant": {"bad_values": 8, "slowest_ms": 31}}
    assert g["loop_lag_ms"] == 6 and g["memory"] == {"free": 5, "used": 7}


def test_the_page_of_a_stopped_program_has_the_link_as_it_was():
    one = app()
    one.snapshot = None
    assert "stopped_s" not in report.for_page(one)
    one.snapshot = report.gauges(one)
    one.uplink.is_up = lambda: False
    one.clock.seconds += 7
    assert not report.for_page(one)["link"]["up"]
    one.running = False
    g = report.for_page(one)
    assert g["link"]["up"] and g["stopped_s"] == 7 and g["uptime_s"] == 107


def test_promise_items_balance():
    items = report.items(app())
    assert items["produced"] == 9 and items["dropped"]["refused"] == 1 and items["held"] == 8
    assert items["produced"] == items["delivered"] + sum(items["dropped"].values()) + items["held"]


def test_troubles_name_everything_that_is_wrong():
    well = app()
    assert report.troubles(well, 0) == []
    ill = app(up=False)
    ill.supervisor.unwell = lambda now: ["packer is hung"]
    ill.samplers.append(Thing(name="level", failures=1, failing="OSError: 19", paused=False))
    ill.samplers.append(Thing(name="depth", failures=0, failing="", paused=True))
    ill.advisor.advice = ["the ring is 90 % full: …"]
    found = report.troubles(ill, 0)
    assert found[0] == "packer is hung"
    assert found[1].startswith("the link is down: ")
    assert found[2:4] == [
        "sensor level fails: OSError: 19",
        "sensor depth is not read: app.start_sensors()",
    ]
    assert found[4].startswith("the ring is 90 % full")
    ill.time_server.failing = "time server a.test does not answer (ETIMEDOUT)"
    assert "the time of day is not known: time server a.test does not" in str(
        report.troubles(ill, 0)
    )
    ill.clock.known = True
    assert "time server" not in str(report.troubles(ill, 0))
    ill.opening.refused = {"m/pond/cmd"}
    assert "subscription to m/pond/cmd refused by the broker" in report.troubles(ill, 0)
    ill.uplink.since = ill.clock.seconds - 2
    assert not any("the link is down" in text for text in report.troubles(ill, 0))


def test_health_has_every_gauge():
    whole = app()
    message = json.loads(report.health(whole, 2040))
    g = report.gauges(whole)
    assert set(message) == set(g)
    for name in g:
        if isinstance(g[name], dict):
            assert set(message[name]) == set(g[name]), name
    assert message["items"] == g["items"] and message["lanes"] == g["lanes"]


def test_health_fits_whatever_the_texts_are():
    for length in (10, 100, 253, 2000):
        whole = app(length=length)
        whole.advisor.advice = ["x" * 500] * 30
        for limit in (2040, 1500, 700):
            message = report.health(whole, limit)
            assert len(message) <= limit, (length, limit, len(message))
            assert json.loads(message)["items"]["produced"] == 9


def test_the_line_for_the_log():
    assert report.line(app()) == ("link up, intake 7/8, ring 10 %, held 8, delivered 0, dropped 1")


def test_when_the_link_is_tried_again_is_told():
    assert report.gauges(app(up=False))["link"]["next_try_s"] == 5
    assert report.gauges(app())["link"]["next_try_s"] == 0


def test_a_port_that_is_mostly_for_the_other_kind_of_connection_is_asked_about():
    for port, tls, asked in (
        (8883, False, "mqtt.tls"),
        (1883, True, "mostly 8883"),
        (8883, True, None),
        (1883, False, None),
        (2883, True, None),
    ):
        ill = app(up=False)
        ill.uplink.connects = 0
        ill.config["mqtt.port"], ill.config["mqtt.tls"] = port, tls
        found = [text for text in report.troubles(ill, 0) if "mqtt.port" in text]
        assert len(found) == bool(asked) and (not asked or asked in found[0])
    ill.config["mqtt.tls"] = False
    ill.config["mqtt.port"] = 8883
    ill.uplink.connects = 1
    assert not [text for text in report.troubles(ill, 0) if "mqtt.port" in text]
