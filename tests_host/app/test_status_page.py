"""The status page: every figure stands where a person looks for it."""

from firmware.port_clock import date
from firmware.status_page import page, span


def gauges(**changes):
    g = {
        "device": "pond",
        "ts": 1767225600,
        "clock_known": True,
        "uptime_s": 3700,
        "started_by": "power on",
        "running": True,
        "troubles": [],
        "items": {
            "produced": 1001,
            "delivered": 900,
            "dropped": {"stolen": 71, "refused": 0, "expired": 2},
            "held": 28,
        },
        "link": {
            "up": True,
            "broker": "192.0.2.10:1883",
            "for_s": 61,
            "reason": "the broker at 192.0.2.10:1883 closed the connection",
            "next_try_s": 0,
            "network": "wifi barn up, 192.0.2.7",
            "attempts": 17,
            "connects": 13,
            "losses": 12,
            "pings": 4,
            "skipped": 0,
            "round_trip_ms": 38,
            "resent": 6,
            "stray_acks": 0,
        },
        "in_flight": {
            "packet_id": 77,
            "topic": "m/pond/data",
            "bytes": 612,
            "qos": 1,
            "dup": True,
            "awaits": "PUBACK",
        },
        "intake": {
            "size": 3,
            "capacity": 64,
            "high_water": 40,
            "throughput": 21.5,
            "mean_wait_ms": 19,
            "max_wait_ms": 333,
            "blocked": False,
        },
        "ring": {
            "messages": 5,
            "open_readings": 14,
            "bytes": 2345,
            "fill_percent": 50,
            "free": 6,
            "work": 2,
            "used": 4,
            "pages": 12,
            "high_water": 9,
            "oldest_s": 75,
        },
        "lanes": {
            "held": [1, 2, 3, 4],
            "acked": [10, 20, 30, 40],
            "stolen": [5, 0, 0, 0],
            "expired": [8, 0, 0, 0],
            "refused": [6, 0, 0, 0],
            "dropped": [7, 0, 0, 0],
        },
        "watchdog": {"fired": 2, "since_well_ms": 64000},
        "commands": {
            "received": 12,
            "done": 7,
            "refused": 3,
            "repeated": 1,
            "ignored": 1,
            "unanswered": 2,
            "last_refusal": "batch.max_age_ms -1: a whole number from 0 to 3600000 expected",
        },
        "memory": {"free": 51200, "used": 204800},
        "loop_lag_ms": 12,
        "sensors": {"plant": 0, "level": 3},
        "sampling": {
            "plant": {"bad_values": 0, "slowest_ms": 12},
            "level": {"bad_values": 7, "slowest_ms": 250},
        },
        "tasks": {"link": 1},
        "unwell": [],
        "last_error": "sensor level failed, 2 in a row: OSError: 19",
    }
    g.update(changes)
    return g


def lines(**changes):
    return page(gauges(**changes)).split("\n")


def line(label, **changes):
    """The text behind a label, with the lines that go on below it."""
    found = lines(**changes)
    i = [text[:11].strip() for text in found].index(label)
    texts = [found[i][12:]]
    for text in found[i + 1 :]:
        if text[:11].strip():
            break
        texts.append(text[12:])
    return texts


def test_every_label_stands_there_once():
    labels = [text[:11].strip() for text in lines() if text[:11].strip()]
    assert labels == [
        "pond", "health", "link", "network", "in flight", "intake", "ring", "messages", "items",
        "dropped", "commands", "watchdog", "memory", "sensors", "tasks", "last error",
    ]  # fmt: skip


def test_no_line_is_wider_than_a_console():
    assert max(len(text) for text in lines()) <= 100


def test_the_head_says_since_when_by_what_and_the_time():
    assert line("pond") == ["started 1 h 1 min ago by power on; 2026-01-01 00:00:00 UTC"]
    assert "not known yet" in line("pond", clock_known=False)[0]


def test_link_up_and_down():
    texts = line("link")
    assert texts[0] == "up for 1 min 1 s, broker 192.0.2.10:1883"
    assert texts[1] == "last loss: the broker at 192.0.2.10:1883 closed the connection"
    assert texts[2] == (
        "connects: 13 of 17 succeeded, then 12 lost; last round trip 38 ms; 6 sent again"
    )
    down = dict(gauges()["link"], up=False, stray_acks=9)
    texts = line("link", link=down)
    assert texts[0].startswith("DOWN for")
    assert texts[1].startswith("because the broker at")
    assert texts[3] == "9 acknowledgements of nothing in flight"
    assert line("link", link=dict(down, next_try_s=63))[2] == "next try in 1 min 3 s"


def test_in_flight():
    assert line("in flight") == ["packet 77 to m/pond/data, 612 bytes, QoS 1, again; awaits PUBACK"]
    assert line("in flight", in_flight=None) == ["nothing"]


def test_intake():
    texts = line("intake")
    assert texts[0] == "3 of 64 slots taken, 40 at most; 21.5 a second go out"
    assert texts[1] == "time in it: 19 ms on average, 333 ms at most"
    blocked = dict(gauges()["intake"], blocked=True)
    assert line("intake", intake=blocked)[2].startswith("held back: the ring is full")


def test_ring_and_pages():
    texts = line("ring")
    assert texts[0] == "[##########..........] 6 of 12 pages taken, 9 at most"
    assert texts[1] == "pages: 6 free, 2 work, 4 used"
    assert texts[2] == "5 messages wait, 2345 bytes, the oldest for 1 min 15 s"
    assert texts[3] == "14 readings in batches not yet closed"


def test_lanes_the_highest_first():
    texts = line("messages")
    assert texts[0].split() == ["held", "acked", "stolen", "expired", "refused", "dropped"]
    assert texts[1].split() == ["4", "40", "0", "0", "0", "0", "critical"]
    assert texts[4].split() == ["1", "10", "5", "8", "6", "7", "low"]


def test_items_and_drops_by_reason():
    assert line("items") == ["1001 produced = 900 delivered + 73 dropped + 28 held"]
    assert line("dropped") == ["2 expired, 71 stolen"]
    nothing = dict(gauges()["items"], dropped={"stolen": 0})
    assert line("dropped", items=nothing) == ["nothing"]


def test_commands_and_why_the_last_was_refused():
    assert line("commands") == [
        "12 came: 7 done, 3 refused, 1 repeated, 1 ignored; 2 not answered",
        "refused: batch.max_age_ms -1: a whole number from 0 to 3600000 expected",
    ]
    assert line("commands", commands=None) == ["not enabled"]
    rude = dict(gauges()["commands"], last_refusal="x\x1b[2J\n" + 200 * "y")
    text = line("commands", commands=rude)[1]
    assert "?[2J?yy" in text and len(text) < 90 and text.endswith("...")


def test_what_was_too_large_to_be_read_is_told():
    link = dict(gauges()["link"], skipped=2)
    assert "2 messages too large to be read were passed over" in line("link", link=link)


def test_the_rest():
    assert line("watchdog") == ["forced 2 reconnects; all was well 1 min 4 s ago"]
    assert line("memory") == ["50 KB free, 200 KB used; the loop was late by 12 ms at worst"]
    assert line("sensors") == [
        "level failed 3 times",
        "slowest read: level 250 ms, plant 12 ms",
        "level gave 7 values that their tags cannot have",
    ]
    assert line("tasks") == ["link restarted 1 times"]
    assert line("tasks", unwell=["packer is hung"])[0].startswith("packer is hung")
    assert line("last error") == ["sensor level failed, 2 in a row: OSError: 19"]


def test_health_is_good_or_says_what_is_not():
    assert line("health") == ["good"]
    assert line("health", troubles=["one", "two"]) == ["one", "two"]


def test_a_stopped_program_says_so_and_shows_the_link_as_it_was():
    assert line("program", stopped_s=61) == ["stopped for 1 min 1 s; resume() lets it go on"]
    assert line("link", stopped_s=61)[0].startswith("when it was stopped: up for")


def test_spans_and_dates():
    assert [span(n) for n in (0, 59, 60, 3599, 3600, 90000, 200000)] == [
        "0 s", "59 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "1 d 1 h", "2 d 7 h",
    ]  # fmt: skip
    assert date(1709337600) == "2024-03-02 00:00:00 UTC"
