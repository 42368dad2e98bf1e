"""The whole application against a real broker: both watchdogs, and tasks that fail."""

import json

import pytest

from tests_host.link.harness import HERE, Judge, Rig
from tools.records import parse_tags, readings_of

SECTIONS = {
    "device": {"name": "pond"},
    "mqtt": {
        "host": "127.0.0.1",
        "prefix": "t",
        "ack_timeout_s": 600,
        "backoff_min_s": 1,
        "backoff_max_s": 1,
    },
    "batch": {"max_age_ms": 100},
    "watchdog": {"delivery_timeout_s": 1, "check_period_s": 1, "hardware_timeout_s": 30},
    "health": {"period_s": 1},
    "plant": {"period_ms": 100, "alert_every_s": 1},
    "board": {"enabled": False},
    "network": {"ntp": ""},
}
DATA = "t/pond/data"


class AppRig(Rig):
    """The application in its own process, with SECTIONS as its configuration."""

    script = HERE / "app_rig.py"
    may_talk = True

    def __init__(self, tmp_path, port, sections=SECTIONS, **options):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**sections, "mqtt": {**sections["mqtt"], "port": port}}))
        super().__init__(port, config=str(path), **options)

    def says(self, text, times=1):
        """Wait until the log has had `text` that often."""
        self.wait(lambda: len(self.lines(text)) >= times, f"{text!r} in the log")


@pytest.fixture
def app(tmp_path, proxy, judge):
    """The application, connected and delivering."""
    with AppRig(tmp_path, proxy.port) as made:
        judge.received(1, DATA)
        yield made


def test_seed_004_the_delivery_watchdog_makes_a_silent_connection_anew(broker, app, judge):
    """Report: project_aura#125."""
    app.up()
    broker.freeze()
    reason = app.down()
    assert reason == "nothing delivered for 1 s"
    stats = app.stats()
    assert stats["watchdog"]["fired"] == 1
    broker.thaw()
    app.up(2)
    before = len(judge.payloads(DATA))
    judge.received(before + 5, DATA)
    assert app.stats()["watchdog"]["fired"] == 1


def test_promise_every_item_is_delivered_or_counted_or_held(app, judge, proxy):
    app.up()
    proxy.refuse()
    app.down()
    app.until(lambda s: s["ring"]["messages"] >= 5, "a backlog")
    proxy.restore()
    app.up(2)
    app.order("stop_sensors")
    items = app.until(lambda s: not s["items"]["held"], "an empty line")["items"]
    assert items["produced"] == items["delivered"] + sum(items["dropped"].values())
    tags = parse_tags(judge.received(1, "t/pond/tags")[0])
    scans = [
        reading["value"]
        for payload in judge.payloads(DATA)
        for reading in readings_of(payload, tags)
        if reading["name"] == "scan"
    ]
    assert sorted(set(scans)) == list(range(1, max(scans) + 1))
    assert scans == sorted(scans)
    assert items["delivered"] >= 21 * max(scans)
    assert judge.received(1, "t/pond/alert") and judge.received(1, "t/pond/health")


def test_birth_will_and_status_of_the_application(app, judge, broker):
    assert json.loads(judge.received(1, "t/pond/status")[0])["state"] == "online"
    app.kill()
    assert json.loads(judge.received(2, "t/pond/status")[1]) == {"state": "offline"}
    with Judge(broker.port, "t/pond/status") as later:
        later.received(1, "t/pond/status")
        assert later.got[0][2] is True


def test_SPEC_7_the_hardware_watchdog_is_fed_while_all_is_well_and_not_while_a_task_hangs(app):
    stats = app.until(lambda s: s["feeds"] >= 3, "feeding")
    assert (stats["timeouts"], stats["unwell"]) == ([30000], [])
    app.order("sick", mode="hang")
    app.says("sick is hung, silent for", 1)
    stats = app.stats()
    feeds, since = stats["feeds"], stats["uptime_s"]
    stats = app.until(lambda s: s["uptime_s"] >= since + 3, "three seconds more")
    assert stats["feeds"] == feeds
    assert len(stats["unwell"]) == 1 and "sick is hung" in stats["unwell"][0]
    app.order("sick", mode="well")
    app.until(lambda s: s["feeds"] > feeds, "feeding again")


@pytest.mark.parametrize(
    ("mode", "error"), [("raise", "ValueError: sick by order"), ("end", "RuntimeError: ended")]
)
def test_a_task_that_fails_is_logged_with_its_traceback_started_again_and_shown(app, mode, error):
    app.order("sick", mode=mode)
    app.says(f"ERROR task sick failed, again in 0.5 s: {error}")
    if mode == "raise":
        app.says("app_rig.py")  # a line of the traceback
    app.says("task sick failed, again in 1 s")
    stats = app.until(lambda s: s["unwell"], "a word of it in the status")
    assert stats["unwell"] == [f"sick is down ({error})"]
    assert stats["tasks"]["sick"] == 1 and error in stats["last_error"]
    app.order("sick", mode="well")
    app.until(lambda s: s["tasks"]["sick"] == 2 and not s["unwell"], "the task well again")


def test_a_sensor_that_raises_gives_a_status_is_read_again_and_resets_nobody(app, judge):
    app.order("break_sensor")
    app.says("ERROR sensor plant failed, 1 in a row: RuntimeError: wire broken")
    app.says("app_rig.py")  # a line of the traceback
    app.says("ERROR sensor plant failed, 8 in a row: RuntimeError: wire broken")
    assert not app.lines("plant failed, 7 in a row")
    tags = parse_tags(judge.received(1, "t/pond/tags")[0])

    def failed():
        return {
            reading["name"]
            for payload in judge.payloads(DATA)
            for reading in readings_of(payload, tags)
            if reading.get("status") == 255
        }

    judge.until(lambda: len(failed()) == len(tags), "a status for each tag")
    before = len(judge.payloads("t/pond/health"))
    judge.received(before + 2, "t/pond/health")
    stats = app.stats()
    assert stats["link"]["up"] and stats["unwell"] == []
    assert "sensor plant fails: RuntimeError: wire broken" in stats["troubles"]
    feeds = stats["feeds"]
    app.until(lambda s: s["feeds"] >= feeds + 3, "the hardware watchdog still fed")
    app.order("mend_sensor")
    app.says("sensor plant is well again")
    app.until(lambda s: not s["troubles"], "no troubles")


def test_Q7_a_message_expires_while_the_link_is_down_and_the_oldest_page_ages(app, proxy):
    app.up()
    proxy.refuse()
    app.down()
    app.order("enqueue_low", ttl_ms=300)
    app.until(lambda s: s["items"]["dropped"]["expired"] == 1, "an expired message")
    app.until(lambda s: s["ring"]["oldest_s"] >= 2, "an old page")


def test_Q10_a_ring_that_fills_is_told_with_advice(app, proxy):
    app.up()
    proxy.refuse()
    app.down()
    app.order("fill_ring", percent=85)
    app.until(lambda s: any("the ring is" in text for text in s["troubles"]), "advice")
    app.until(lambda s: s["troubles"][0].startswith("the link is down: connection refused"), "it")


def test_health_message_has_every_gauge_and_counter(app, judge):
    health = json.loads(judge.received(1, "t/pond/health")[0])
    stats = app.stats()
    for name in set(stats) - {"feeds", "timeouts", "resets", "subscribed", "done"}:
        assert name in health, name
        # Nothing may have been in flight at one of the two moments.
        if isinstance(stats[name], dict) and name != "in_flight":
            assert set(health[name]) == set(stats[name]), name
    assert health["items"]["produced"] >= 21 and health["link"]["up"] is True


def test_the_time_of_day_may_become_known_later(tmp_path, proxy, judge):
    """Report: homie-esp8266#620."""
    with AppRig(tmp_path, proxy.port, clock="unknown") as app:
        app.up()
        proxy.stall()
        app.until(lambda s: s["ring"]["messages"] >= 3, "batches without the time of day")
        assert not app.stats()["clock_known"]
        app.order("know_time", unix=1767225600)
        app.until(lambda s: s["clock_known"], "the time")
        proxy.restore()
        app.order("stop_sensors")
        app.until(lambda s: not s["items"]["held"], "an empty line")
    tags = parse_tags(judge.received(1, "t/pond/tags")[0])
    stamps = [r["ts"] for p in judge.payloads(DATA) for r in readings_of(p, tags)]
    assert stamps[-1] > 1767225000
    unknown = [ts for ts in stamps if ts < 1000000000]
    # Only what had left before the time was known went without it.
    assert stamps[: len(unknown)] == unknown and len(unknown) < len(stamps) // 2
