"""Commands end to end: the whole application, a real broker, and whoever may publish to it."""

import itertools
import json

import pytest

from tests_host.link.scripted import CONNACK_NEW, Scripted
from tests_host.link.test_app import DATA, SECTIONS, AppRig
from tools.mqtt_packets import SUBSCRIBE
from tools.records import parse_tags, readings_of

CMD = "t/pond/cmd"
REPLY = "t/pond/cmd/reply"
QUIET = {
    **SECTIONS,
    "batch": {"max_age_ms": 3600000, "max_readings": 1000},
    "watchdog": {"delivery_timeout_s": 120, "hardware_timeout_s": 0},
    "health": {"period_s": 3600},
    "plant": {"period_ms": 200, "alert_every_s": 0},
}


class Commander:
    """Publishes commands and finds their replies."""

    def __init__(self, judge):
        self.judge = judge
        self._ids = itertools.count(1)

    def send(self, op, **fields):
        """The reply to a command."""
        ident = next(self._ids)
        self.judge.publish(CMD, json.dumps({"id": ident, "op": op, **fields}))
        return self.reply(ident)

    def reply(self, ident):
        self.judge.until(lambda: self.having(ident), f"a reply to {ident}")
        return self.having(ident)[-1]

    def having(self, ident):
        return [reply for reply in self.replies() if reply["id"] == ident]

    def replies(self):
        return [json.loads(payload) for payload in self.judge.payloads(REPLY)]


@pytest.fixture
def app(tmp_path, proxy, judge):
    """The application, connected, with batches that close by themselves only when full."""
    with AppRig(tmp_path, proxy.port, QUIET) as made:
        made.up()
        yield made


@pytest.fixture
def commander(app, judge):
    app.subscribed(CMD)
    return Commander(judge)


def settled(app, commander):
    """The figures once nothing is read any more and everything was delivered, which balance."""
    app.order("stop_sensors")
    assert commander.send("flush")["ok"]
    stats = app.until(lambda s: not s["items"]["held"], "an empty line")
    items = stats["items"]
    assert items["produced"] == items["delivered"] + sum(items["dropped"].values())
    return stats


def test_set_applies_at_once_and_is_answered(app, commander, judge, tmp_path):
    config = (tmp_path / "config.json").read_bytes()
    reply = commander.send("set", key="batch.max_age_ms", value=100)
    assert reply["ok"] and reply["result"] == {
        "key": "batch.max_age_ms",
        "value": 100,
        "saved": False,
    }
    judge.received(len(judge.payloads(DATA)) + 3, DATA)
    assert commander.send("set", key="plant.period_ms", value=3600000)["ok"]
    before = app.stats()["items"]["produced"]
    assert commander.send("set", key="plant.period_ms", value=20)["ok"]
    app.until(lambda s: s["items"]["produced"] > before + 10 * 21, "readings at the new pace")
    for key, value in {
        "send.rate_limit": 500,
        "ring.max_age_s": 1000,
        "batch.max_readings": 30,
        "watchdog.delivery_timeout_s": 60,
        "watchdog.check_period_s": 5,
        "health.period_s": 1,
        "plant.alert_every_s": 1,
        "board.period_ms": 100,
        "log.level": "debug",
    }.items():
        assert commander.send("set", key=key, value=value)["ok"], key
        assert app.order("config", key=key)["value"] == value
    assert judge.received(1, "t/pond/health") and judge.received(1, "t/pond/alert")
    assert (tmp_path / "config.json").read_bytes() == config
    assert app.stats()["link"]["connects"] == 1


def test_set_with_save_survives_a_restart(app, commander, tmp_path):
    assert commander.send("set", key="batch.max_readings", value=33, save=True)["result"]["saved"]
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved["batch"] == {"max_readings": 33, "max_age_ms": 3600000}
    assert saved["mqtt"]["host"] == "127.0.0.1" and saved["device"] == {"name": "pond"}


def test_what_may_not_be_set_is_refused_with_the_reason(app, commander):
    for key, value, reason in (
        ("mqtt.host", "elsewhere", "no command may change it"),
        ("wifi.password", "x", "no command may change it"),
        ("batch.max_readings", 0, "a whole number from 1 to 1000 expected"),
        ("batch.maxreadings", 5, "did you mean batch.max_readings?"),
    ):
        reply = commander.send("set", key=key, value=value)
        assert not reply["ok"] and reason in reply["error"]
    assert app.stats()["commands"]["refused"] == 4


def test_status_is_the_health_message(app, commander):
    result = commander.send("status")["result"]
    assert result["link"]["up"] and result["device"] == "pond"
    assert result["items"]["produced"] >= 1 and result["commands"]["done"] == 0


def test_flush_sends_what_open_batches_hold(app, commander, judge):
    app.until(lambda s: s["ring"]["open_readings"] >= 42, "an open batch")
    before = len(judge.payloads(DATA))
    assert commander.send("flush")["ok"]
    judge.received(before + 1, DATA)
    tags = parse_tags(judge.received(1, "t/pond/tags")[0])
    assert len(readings_of(judge.payloads(DATA)[-1], tags)) >= 42


def test_reboot_delivers_what_is_held_first_and_is_done_once(app, commander, judge):
    app.until(lambda s: s["ring"]["open_readings"] >= 42, "an open batch")
    judge.publish(CMD, '{"id": "bye", "op": "reboot"}')
    assert commander.reply("bye")["result"]["held"] >= 42
    stats = app.until(lambda s: s["resets"] == 1, "the reset")
    assert stats["items"]["held"] == 0
    assert app.down() == "reset by a command"
    app.up(2)
    judge.publish(CMD, '{"id": "bye", "op": "reboot"}')
    judge.until(lambda: len(commander.having("bye")) == 2, "the second answer")
    assert commander.having("bye")[1]["repeated"] is True
    assert app.stats()["resets"] == 1
    assert json.loads(judge.received(2, "t/pond/status")[1]) == {"state": "offline"}


def test_a_retained_command_is_refused_at_each_connection(tmp_path, proxy, judge):
    judge.publish(CMD, '{"id": 5, "op": "reboot"}', retain=True)
    with AppRig(tmp_path, proxy.port, QUIET) as app:
        reply = Commander(judge).reply(5)
        assert not reply["ok"] and "retained" in reply["error"]
        assert app.stats()["resets"] == 0


HOSTILE = (
    b"",
    b"\xff\xfe\x00\x80binary",
    b"not json",
    b"[" * 1000,
    b'{"a":' * 150 + b"1" + b"}" * 150,
    b'{"id":1,"op":' + b"[" * 300,
    b'{"id":{"a":[1]},"op":"flush"}',
    b'{"id":1,"id":2,"op":"flush"}',
    b'{"id":"' + b"x" * 300 + b'","op":"flush"}',
    b'{"id":"' + b"x" * 10000 + b'","op":"flush"}',
    b'{"id":' + b"9" * 300 + b',"op":"flush"}',
    b'{"id":"h1","op":"statsu"}',
    b'{"id":"h2","op":null}',
    b'{"id":"h3","op":"set","key":{},"value":[]}',
    b'{"id":"h4","op":"set","key":"log.level","value":1e999}',
    b'{"id":"h5","op":"set","key":"send.rate_limit","value":99999999999999999999999999}',
    b'{"id":"h6","op":"set","key":"mqtt.password","value":"x"}',
    b'{"id":"h7","op":"reboot","now":true}',
    b'{"id":"h8"}',
)
ANSWERED = [f"h{n}" for n in range(1, 9)]


def turned_away(stats):
    return sum(stats["commands"][n] for n in ("refused", "ignored")) + stats["link"]["skipped"]


def test_hostile_input_is_refused_counted_and_harms_nothing(app, commander, judge):
    def offend():
        before = turned_away(app.stats())
        for n, payload in enumerate(HOSTILE):
            judge.publish(CMD, payload)
            stats = app.until(lambda s, n=n: turned_away(s) == before + n + 1, "the refusal")
        settled(app, commander)
        return stats, app.order("memory")["used"]

    _, used = offend()
    rounds = [offend() for _ in range(3)]
    stats = rounds[-1][0]
    assert stats["link"]["connects"] == 1 and stats["resets"] == 0 and stats["unwell"] == []
    assert stats["commands"]["done"] == 3 and stats["link"]["skipped"] == 4
    assert min(memory for _, memory in rounds) <= used + 2048
    answered = [reply["id"] for reply in commander.replies() if not reply["ok"]]
    assert sorted(answered) == sorted(4 * ANSWERED)
    assert commander.send("status")["ok"]


def test_MiniMQTT_82_a_retained_command_of_64_KB_is_passed_over_and_told(tmp_path, proxy, judge):
    judge.publish(CMD, b'{"id": 1, "op": "' + bytes(65536), retain=True)
    with AppRig(tmp_path, proxy.port, QUIET) as app:
        app.until(lambda s: s["link"]["skipped"] == 1, "the large message")
        assert Commander(judge).send("status")["result"]["link"]["skipped"] == 1
        assert app.stats()["link"]["connects"] == 1


def test_a_flood_of_1000_commands_costs_no_reading_and_every_item_is_accounted_for(
    app, commander, judge
):
    assert commander.send("set", key="plant.period_ms", value=50)["ok"]
    before = app.stats()
    for n in range(1000):
        judge._client.publish(CMD, json.dumps({"id": f"f{n}", "op": "flush"}), 1)
    stats = app.until(
        lambda s: s["commands"]["received"] >= before["commands"]["received"] + 1000, "the flood"
    )
    app.until(lambda s: s["items"]["produced"] > stats["items"]["produced"] + 210, "readings")
    stats = app.until(
        lambda s: (
            sum(s["commands"][n] for n in ("done", "refused", "repeated", "ignored"))
            == s["commands"]["received"]
        ),
        "the last of the flood",
    )
    stats = settled(app, commander)
    assert sum(stats["items"]["dropped"].values()) == 0
    assert stats["link"]["connects"] == 1 and stats["unwell"] == []
    counts = stats["commands"]
    answers = [reply for reply in commander.replies() if str(reply["id"]).startswith("f")]
    assert len(answers) == counts["done"] + counts["refused"] - 2  # those of set and settled
    assert counts["ignored"] and counts["done"] > 12
    scans = [
        reading["value"]
        for payload in judge.payloads(DATA)
        for reading in readings_of(payload, parse_tags(judge.received(1, "t/pond/tags")[0]))
        if reading["name"] == "scan"
    ]
    assert scans == list(range(1, len(scans) + 1))


def test_commands_that_are_not_enabled_are_not_subscribed_to(tmp_path, proxy, judge):
    sections = {**QUIET, "commands": {"enabled": False}, "batch": {"max_age_ms": 100}}
    with AppRig(tmp_path, proxy.port, sections) as app:
        app.up()
        judge.publish(CMD, '{"id": 1, "op": "flush"}')
        judge.received(len(judge.payloads(DATA)) + 2, DATA)
        assert judge.payloads(REPLY) == [] and app.stats()["commands"] is None


def test_a_subscription_that_the_broker_refuses_is_told(tmp_path):
    def refuses(end):
        end.packet()
        end.send(CONNACK_NEW)
        while True:
            packet = end.packet()
            if packet[0] >> 4 == SUBSCRIBE:
                end.send(b"\x90\x03" + packet[2:4] + b"\x80")
                end.serve()

    with Scripted(refuses) as server, AppRig(tmp_path, server.port, QUIET) as app:
        app.up()
        stats = app.until(lambda s: s["troubles"], "a trouble")
        assert stats["troubles"] == ["subscription to t/pond/cmd refused by the broker"]
        assert stats["link"]["up"] and stats["subscribed"] == []


def test_a_command_is_obeyed_once_the_link_is_back(app, commander, judge, proxy):
    proxy.refuse()
    app.down()
    judge.publish(CMD, '{"id": "later", "op": "flush"}')
    proxy.restore()
    app.up(2)
    assert commander.reply("later")["ok"]


def test_replies_do_not_wait_behind_the_backlog(app, commander, judge, proxy):
    assert commander.send("set", key="send.rate_limit", value=1)["ok"]
    proxy.refuse()
    app.down()
    app.order("fill_ring", percent=60)
    proxy.restore()
    app.up(2)
    assert commander.send("flush")["ok"]
    assert app.stats()["ring"]["messages"] > 0
    assert commander.send("set", key="send.rate_limit", value=0)["ok"]
    app.until(lambda s: s["ring"]["messages"] == 0, "the backlog gone")
