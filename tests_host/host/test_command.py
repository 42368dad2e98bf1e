"""`python -m tools command` against a real broker and a device played by the test."""

import contextlib
import json
import subprocess
import sys
import threading

import paho.mqtt.client as mqtt
import pytest

from tools import command
from tools._core import ROOT
from tools.broker import MOSQUITTO, Broker
from tools.loopback import free_port

COMMAND = [sys.executable, "-m", "tools", "command"]
WAIT_S = 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("broker"), kind=MOSQUITTO) as made:
        yield made


@contextlib.contextmanager
def device(broker, name, answer, state="online"):
    """A device that is in `state` and answers each command with `answer(fields)`; its commands."""
    commands = []
    ready = threading.Event()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)

    def on_message(_client, _userdata, message):
        commands.append(json.loads(message.payload))
        for reply in answer(commands[-1]):
            client.publish(f"pond/{name}/cmd/reply", reply, qos=1)

    client.on_connect = lambda *_: client.subscribe(f"pond/{name}/cmd", 1)
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = on_message
    client.connect(broker.host, broker.port)
    client.loop_start()
    assert ready.wait(WAIT_S)
    client.publish(
        f"pond/{name}/status", json.dumps({"state": state}), qos=1, retain=True
    ).wait_for_publish(WAIT_S)
    try:
        yield commands
    finally:
        client.disconnect()
        client.loop_stop()


def run(broker_port, *arguments, seconds=WAIT_S):
    words = [*COMMAND, *arguments, "--port", str(broker_port), "--prefix", "pond"]
    words += ["--seconds", str(seconds)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=2 * WAIT_S)


def done(result):
    return lambda fields: [json.dumps({"id": fields["id"], "ok": True, "result": result})]


def test_a_negative_value_is_left_to_the_board(broker):
    with device(broker, "mill", done({})) as commands:
        out = run(broker.port, "mill", "set", "batch.max_age_ms", "-5")
    assert out.returncode == 0, out.stderr
    assert commands[0]["value"] == -5


def test_set_is_sent_and_its_reply_printed(broker):
    with device(broker, "mill", done({"key": "k", "value": 1000})) as commands:
        out = run(broker.port, "mill", "set", "batch.max_age_ms", "1000", "--save")
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == {"key": "k", "value": 1000}
    assert out.stderr == ""
    (sent,) = commands
    assert len(sent.pop("id")) == 12
    assert sent == {"op": "set", "key": "batch.max_age_ms", "value": 1000, "save": True}


def test_only_the_reply_with_its_id_counts(broker):
    def answer(fields):
        yield b"\xff no JSON"
        yield b"[" * 100000
        yield "[1]"
        yield json.dumps({"id": 7, "ok": True, "result": "another's"})
        yield from done("ours")(fields)

    with device(broker, "mill", answer):
        out = run(broker.port, "mill", "flush")
    assert out.returncode == 0 and json.loads(out.stdout) == "ours"


def test_what_is_in_a_result_does_nothing_to_the_terminal(broker):
    with device(broker, "mill", done("21 \u00b0C \x1b[2J \x9b2J \ud800 \u202e")):
        out = run(broker.port, "mill", "status")
    assert out.returncode == 0, out.stderr
    assert out.stdout == '"21 \u00b0C \\u001b[2J ?2J ? ?"\n'


def test_a_refusal_is_printed_with_its_reason_and_nothing_for_the_terminal(broker):
    def answer(fields):
        yield json.dumps({"id": fields["id"], "ok": False, "error": "busy\x1b[2J; later"})

    with device(broker, "mill", answer):
        out = run(broker.port, "mill", "flush")
    assert out.returncode == 1
    assert out.stderr == "command: mill refuses: busy?[2J; later\n"


@pytest.mark.parametrize(
    ("name", "state", "reason"),
    [
        ("sleeper", "online", "it is online; are commands.enabled there"),
        ("gone", "offline", "it is offline; it gets the command when it is back"),
    ],
)
def test_no_reply_is_told_with_what_is_known(broker, name, state, reason):
    with device(broker, name, lambda _fields: [], state):
        out = run(broker.port, name, "status", seconds=2)
    assert out.returncode == 1
    assert f"no reply from {name} in 2 s: {reason}" in out.stderr


def test_a_device_that_was_never_there(broker):
    out = run(broker.port, "nobody", "status", seconds=2)
    assert out.returncode == 1 and "no status of it here" in out.stderr


def test_no_broker_is_told():
    out = run(free_port(), "mill", "status", seconds=2)
    assert out.returncode == 1
    assert "no broker at" in out.stderr and "command: no connection to" in out.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("mill", "set", "log.level"), "a key and a value expected"),
        (("mill", "flush", "x"), "only set takes a key"),
        (("mill", "status", "--save"), "only set takes a key"),
        (("mi/ll", "status"), "device 'mi/ll'"),
        (("#", "status"), "device '#'"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, reason):
    out = run(1883, *arguments)
    assert out.returncode == 1 and len(out.stderr.splitlines()) == 1
    assert out.stderr.startswith("command: ") and reason in out.stderr


def test_values_are_numbers_and_truths_where_they_are_some():
    values = ["5", "-1", "0.5", "true", "debug", '"5"', "1e999", "NaN", "null", "[1]"]
    sent = [command.fields_of("set", "k", value, False)["value"] for value in values]
    assert sent == [5, -1, 0.5, True, "debug", "5", "1e999", "NaN", "null", "[1]"]
