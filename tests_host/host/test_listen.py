"""`python -m tools listen` against real brokers: what it shows, writes and survives."""

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import paho.mqtt.client as mqtt
import pytest
from rich.console import Console

from tests_host.host.payloads import NOW, announcement, one_of_each
from tools._core import ROOT
from tools.broker import MOSQUITTO, Broker
from tools.listen_view import View, line
from tools.loopback import free_port
from tools.proxy import Proxy
from tools.records import Decoder
from tools.subscriber import Subscriber

LISTEN = [sys.executable, "-m", "tools", "listen"]
WAIT_S = 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("broker")) as made:
        yield made


@pytest.fixture
def publisher(broker):
    """publish(topic, payload, retain=False): returns once the broker has it. Clears retained."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.connect(broker.host, broker.port)
    client.loop_start()
    retained = []

    def publish(topic, payload, retain=False):
        if retain:
            retained.append(topic)
        client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(WAIT_S)

    yield publish
    for topic in set(retained):
        publish(topic, b"", retain=True)
    client.disconnect()
    client.loop_stop()


class Listener:
    """A listen process with its output collected line by line."""

    def __init__(self, port, *options):
        self.process = subprocess.Popen(
            [*LISTEN, "--port", str(port), *map(str, options)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines = []
        self._more = threading.Condition()
        self._threads = [
            threading.Thread(target=self._collect, args=(stream,))
            for stream in (self.process.stdout, self.process.stderr)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        if self.process.poll() is None:
            self.process.kill()
        self.end()

    def _collect(self, stream):
        with stream:
            for text in stream:
                with self._more:
                    self.lines.append(text.rstrip("\n"))
                    self._more.notify_all()

    def wait(self, wanted, count=1):
        """Wait until `count` lines contain `wanted`; the last of them."""
        with self._more:
            found = self._more.wait_for(lambda: len(self.having(wanted)) >= count, WAIT_S)
        assert found, f"no {wanted!r} in {self.lines}"
        return self.having(wanted)[-1]

    def having(self, wanted):
        return [text for text in self.lines if wanted in text]

    def end(self):
        """Wait for its end; the exit code."""
        code = self.process.wait(WAIT_S)
        for thread in self._threads:
            thread.join(WAIT_S)
        return code


def records_in(path):
    return [json.loads(text) for text in path.read_text().splitlines()]


def test_decodes_both_encodings_into_lines_and_json_lines(broker, publisher, tmp_path):
    path = tmp_path / "out.jsonl"
    publisher("pond/mill/tags", announcement(), retain=True)
    options = ("--prefix", "pond", "--jsonl", path, "--count", 10)
    with Listener(broker.port, *options) as listener:
        listener.wait("connected to 127.0.0.1")
        listener.wait("mill announces 4 tags")
        publisher("pond/mill/status", b'{"state":"online"}')
        publisher("pond/mill/alert", b'{"ts":1709337600,"name":"temp0","text":"hot"}')
        publisher("pond/mill/health", b'{"held":0}')
        publisher("pond/mill/data", one_of_each("f7"))
        publisher("pond/mill/data", one_of_each("json"))
        assert listener.end() == 0
        assert len(listener.having("2024-03-02T00:00:00Z level -120.5 mm")) == 2
        assert listener.having("temp0 status 9")
        assert listener.having("ALERT temp0: hot")
        assert listener.having("mill status state=online")
        assert listener.having("10 readings from 1 device, 0 malformed")
    records = records_in(path)
    typed = [record["type"] for record in records if "type" in record]
    assert typed == ["tags", "status", "alert", "health"]
    readings = [record for record in records if "type" not in record]
    received = [reading.pop("received") for reading in readings]
    assert all(abs(time.time() - moment) < 60 for moment in received)
    assert readings[:5] == readings[5:]
    assert readings[1] == {
        "device": "mill", "id": 2, "name": "level", "value": -120.5, "unit": "mm", "ts": NOW,
    }  # fmt: skip


def test_json_lines_on_stdout_are_nothing_but_json(broker, publisher):
    publisher("pond/mill/tags", announcement(), retain=True)
    options = ["--port", str(broker.port), "--prefix", "pond", "--jsonl", "-", "--count", "5"]
    with repeated(lambda: publisher("pond/mill/data", one_of_each())):
        done = subprocess.run(
            [*LISTEN, *options], cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S
        )
    records = [json.loads(text) for text in done.stdout.splitlines()]
    assert [record.get("name") for record in records[-5:]] == [
        "temp0", "level", "run", "phase", "temp0",
    ]  # fmt: skip


@contextlib.contextmanager
def repeated(action, every_s=0.2):
    """Do `action` again and again while the block runs."""
    ended = threading.Event()

    def loop():
        while not ended.wait(every_s):
            action()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(WAIT_S)


def test_malformed_is_shown_with_its_reason_and_it_goes_on(broker, publisher, tmp_path):
    path = tmp_path / "out.jsonl"
    options = ("--prefix", "pond", "--jsonl", path, "--count", 5)
    with Listener(broker.port, *options) as listener:
        listener.wait("connected")
        publisher("pond/mill/data", one_of_each()[:-1])
        publisher("pond/mill/data", b"")
        publisher("pond/mill/tags", b"\xff\xff")
        publisher("pond/mill/alert", b"[]")
        publisher("pond/mill/data", one_of_each())
        assert listener.end() == 0
        assert len(listener.having("MALFORMED on pond/mill/data: ")) == 2
        assert listener.having("the batch ends at")
        assert listener.having("5 readings from 1 device, 4 malformed")
    kinds = [record["type"] for record in records_in(path) if "type" in record]
    assert kinds == ["malformed"] * 4


def test_a_broker_that_is_not_there_is_said_once_and_tried_again(tmp_path):
    port = free_port()
    with Listener(port, "--prefix", "pond", "--count", 5) as listener:
        listener.wait(f"no broker at 127.0.0.1:{port} (Connection refused); trying again")
        with Broker(tmp_path, port=port) as late:
            listener.wait(f"connected to 127.0.0.1:{port}")
            client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
            client.connect(late.host, late.port)
            client.loop_start()
            client.publish("pond/mill/data", one_of_each(), qos=1)
            assert listener.end() == 0
            client.disconnect()
            client.loop_stop()
        assert len(listener.having("no broker at")) == 1


def test_no_broker_within_seconds_is_a_failure():
    with Listener(free_port(), "--seconds", 1) as listener:
        assert listener.end() == 1
        assert re.search(r"listen: no connection to 127.0.0.1:\d+ in 1 s", listener.lines[-1])


def test_seconds_end_it_and_a_count_not_reached_is_a_failure(broker):
    for options, code in (((), 0), (("--count", 3), 1)):
        with Listener(broker.port, "--seconds", 2, "--prefix", "nobody", *options) as listener:
            assert listener.end() == code
            assert bool(listener.having("listen: 0 readings in 2 s, 3 expected")) == bool(code)


def test_reconnects_by_itself_and_says_so(broker, publisher):
    with Proxy(broker.port) as proxy, Listener(proxy.port, "--prefix", "pond") as listener:
        listener.wait("connected")
        proxy.refuse()
        listener.wait("lost")
        listener.wait("(Connection refused); trying again")
        proxy.restore()
        listener.wait("connected", count=2)
        publisher("pond/mill/data", one_of_each())
        listener.wait("tag 1 status 9")
        listener.process.send_signal(signal.SIGINT)
        assert listener.end() == 0
        assert listener.having("5 readings from 1 device")


def test_a_refused_login_ends_it_with_the_reason(tmp_path):
    with Broker(tmp_path, kind=MOSQUITTO, users={"pond": "carp"}) as guarded:
        options = ("--user", "pond", "--password", "pike")
        with Listener(guarded.port, *options) as listener:
            assert listener.end() == 1
            assert listener.having("refuses: Not authorized")
        with Listener(guarded.port, "--user", "pond", "--password", "carp") as listener:
            listener.wait("connected")


def test_a_file_that_cannot_be_written_ends_it(broker, tmp_path):
    with Listener(broker.port, "--jsonl", tmp_path / "none" / "x") as listener:
        assert listener.end() == 1
        assert listener.having("No such file or directory")


def test_a_terminal_gets_a_live_table(broker, publisher):
    publisher("pond/mill/tags", announcement(), retain=True)
    publisher("pond/mill/status", b'{"state":"online"}', retain=True)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [*LISTEN, "--port", str(broker.port), "--prefix", "pond", "--count", "5"]
    env = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    screen = b""
    with repeated(lambda: publisher("pond/mill/data", one_of_each()), every_s=1):
        with contextlib.suppress(OSError):
            while data := os.read(ours, 65536):
                screen += data
        assert process.wait(WAIT_S) == 0
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.decode())
    assert "nothing received yet" in text or "mill  online" in text
    last = text[text.rindex("mill  online") :]
    assert re.search(r"2\s+level\s+-120.5\s+mm", last)
    assert re.search(r"5 readings, 0.5/s", last)


def test_a_persistent_subscriber_gets_what_came_while_it_was_away(tmp_path):
    with Broker(tmp_path, kind=MOSQUITTO) as broker, Proxy(broker.port) as proxy:
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.connect(broker.host, broker.port)
        client.loop_start()
        with Subscriber(proxy.host, proxy.port, ["t/#"], client_id="keeper") as subscriber:
            assert subscriber.subscribed.wait(WAIT_S)
            proxy.refuse()
            for n in range(50):
                client.publish("t/x", b"%d" % n, qos=1).wait_for_publish(WAIT_S)
            proxy.restore()
            got = []
            for message in subscriber.messages(WAIT_S):
                assert message, f"only {len(got)} messages"
                got.append(int(message.payload))
                if len(got) == 50:
                    break
        assert got == list(range(50))
        client.disconnect()
        client.loop_stop()


# -- the view ------------------------------------------------------------------------------------


def view_of(*messages):
    decoder, view = Decoder("pond"), View()
    for what, data, received in messages:
        for record in decoder.feed(f"pond/mill/{what}", data, received):
            view.add(record)
    return view


def drawn(view, now):
    console = Console(width=100, file=io.StringIO())
    console.print(view.table(now))
    return console.file.getvalue()


def test_view_shows_age_count_and_rate():
    messages = [("tags", announcement(), NOW)]
    messages += [("data", one_of_each(), NOW + n) for n in range(1, 21)]
    text = drawn(view_of(*messages), NOW + 20)
    assert re.search(r"2\s+level\s+-120.5\s+mm\s+20 s\s+20\b", text)
    assert re.search(r"1\s+temp0\s+status 9\s+degC\s+20 s\s+40\b", text)
    assert "100 readings, 5.5/s" in text


def test_view_counts_age_from_arrival_where_the_clock_was_unknown():
    text = drawn(view_of(("data", one_of_each(unix=None), NOW)), NOW + 300)
    assert re.search(r"3\s+tag 3\s+raw 01\s+5 min\s+1\b", text)


def test_view_shows_state_alerts_and_malformed():
    view = view_of(
        ("status", b'{"state":"offline"}', NOW),
        ("alert", b'{"ts":5,"name":"pump","text":"dry"}', NOW),
        ("data", b"nonsense", NOW),
    )
    text = drawn(view, NOW)
    assert "mill  offline" in text
    assert "start+5s ALERT pump: dry" in text
    assert "1 malformed" in text
    assert "not JSON" in text


def test_what_a_device_sends_cannot_reach_into_the_terminal():
    evil = json.dumps([[1, "a\x1b[2J[red]b", "int8", "\x07", 1]])
    view = view_of(
        ("tags", b'{"tags":%s}' % evil.encode(), NOW),
        ("status", b'{"state":"\\u001b]0;x"}', NOW),
        ("data", one_of_each("json"), NOW),
    )
    text = drawn(view, NOW)
    assert "a?[2J[red]b" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\x1b" not in line(
        {"type": "status", "device": "d\x1b", "received": 0, "data": {"\x1b": 1}}
    )
