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

from tests_host.host.payloads import NOW, announcement, one_of_each, payload
from tests_host.link.tls_kit import Paper, good
from tools import shown
from tools._core import ROOT
from tools.broker import MOSQUITTO, Broker
from tools.listen_rate import Rate
from tools.listen_view import View
from tools.loopback import free_port, wait_until
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
    wait_until(client.is_connected, WAIT_S, "a publisher connected")
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
            wait_until(client.is_connected, WAIT_S, "a publisher connected")
            client.publish("pond/mill/data", one_of_each(), qos=1).wait_for_publish(WAIT_S)
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
    assert re.search(r"5 readings, …/s", last)
    assert text.rstrip().endswith("5 readings from 1 device, 0 malformed, …/s")


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


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker that speaks TLS on `port`, and its certificates."""
    paper = Paper(tmp_path_factory.mktemp("paper"))
    with good(paper, free_port()) as made:
        yield made, paper


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ca", "ca.pem"], "connected to 127.0.0.1"),
        (["--insecure"], "connected to 127.0.0.1"),
        (["--ca", "other_ca.pem"], "TLS fails with the broker at 127.0.0.1"),
        (["--tls"], "TLS fails with the broker at 127.0.0.1"),
        ([], "closed by the broker: does it want TLS (--ca)?; trying again"),
        (["--ca", "none.pem"], "none.pem: No such file"),
        (["--ca", "client.key"], "client.key: no certificates (PEM)"),
    ],
)
def test_a_broker_with_tls_is_listened_to_or_it_is_said_why_not(secured, options, said):
    broker, paper = secured
    words = [paper.path(word) if "." in word else word for word in options]
    with Listener(broker.port, *words) as listener:
        listener.wait(said)


# -- the view ------------------------------------------------------------------------------------


def view_of(*messages):
    decoder = Decoder("pond")
    view = View(decoder.tags)
    for what, data, received in messages:
        for record in decoder.feed(f"pond/mill/{what}", data, received):
            view.add(record)
    return view


def drawn(view, now, height=40, width=100):
    console = Console(width=width, file=io.StringIO())
    console.print(view.table(now, height))
    return console.file.getvalue()


def test_view_of_nothing_says_why():
    view = view_of()
    view.news = "no broker at here:1"
    assert "nothing received yet: no broker at here:1" in drawn(view, NOW)


def test_view_shows_age_count_and_rate():
    messages = [("tags", announcement(), NOW)]
    messages += [("data", one_of_each(), NOW + n) for n in range(1, 21)]
    text = drawn(view_of(*messages), NOW + 20)
    assert re.search(r"2\s+level\s+-120.5\s+mm\s+20 s\s+20\b", text)
    assert re.search(r"1\s+temp0\s+status 9\s+degC\s+20 s\s+40\b", text)
    assert "mill  ?  100 readings, 5.0/s" in text
    assert text.splitlines()[-1] == "100 readings from 1 device, 0 malformed, 5.0/s"


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
    assert f"{shown.clock(NOW)} mill ALERT pump: dry" in text
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
    assert "\x1b" not in view.line(
        {"type": "status", "device": "d\x1b", "received": 0, "data": {"\x1b": 1}}
    )


def test_numbers_have_the_decimals_of_their_scale_and_no_unit_1():
    rows = [
        [1, "t", "float32", "degC", 0.1],
        [2, "p", "float32", "bar", 0.01],
        [3, "f", "float32", "1", 1],
        [4, "n", "uint16", "1", 0.5],
        [5, "huge", "float32", "1", 0.1],
    ]
    values = [(1, "float32", 21, 0), (2, "float32", 0.98765, 0), (3, "float32", 2.6, 0)]
    values += [(4, "uint16", 4, 0), (5, "float32", 1e30, 0)]
    view = view_of(("tags", announcement(rows), NOW), ("data", payload(values), NOW))
    lines = [line.split() for line in drawn(view, NOW).splitlines()]
    assert [line[1:-3] for line in lines if line[0] in "12345" and len(line) < 8] == [
        ["t", "21.0", "degC"],
        ["p", "0.99", "bar"],
        ["f", "3"],
        ["n", "2.0"],
        ["huge", "1e+30"],
    ]


def test_alert_has_one_time_that_of_the_alert_where_it_is_known():
    view = view_of()
    alert = {"type": "alert", "device": "mill", "name": "temp0", "text": "hot"}
    told = view.line({**alert, "ts": NOW, "received": NOW + 60})
    assert told == f"{shown.clock(NOW)} mill ALERT temp0: hot"
    later = view.line({**alert, "ts": NOW, "received": NOW + 200000})
    assert re.fullmatch(r"2024-03-0[123] [\d:]{8} mill ALERT temp0: hot", later)
    unknown = view.line({**alert, "ts": 7, "received": NOW + 60})
    assert unknown == f"{shown.clock(NOW + 60)} mill ALERT temp0: hot"


def crowd(devices, tags, alerts=2):
    """A view with so many devices of so many tags each."""
    decoder = Decoder("pond")
    view = View(decoder.tags)
    data = payload([(n, "uint8", n % 200, 0) for n in range(1, tags + 1)])
    for n in range(devices):
        for record in decoder.feed(f"pond/mill{n:02}/data", data, NOW):
            view.add(record)
    for _ in range(alerts):
        for record in decoder.feed("pond/mill00/alert", b'{"ts":5,"name":"a","text":"b"}', NOW):
            view.add(record)
    return view


@pytest.mark.parametrize("height", [8, 11, 23, 29, 60])
@pytest.mark.parametrize(("devices", "tags"), [(1, 3), (1, 21), (2, 24), (3, 100), (12, 5)])
def test_table_fits_the_screen_and_ends_with_the_totals(devices, tags, height):
    text = drawn(crowd(devices, tags), NOW, height, width=80)
    lines = text.splitlines()
    assert len(lines) <= height
    assert lines[-1].startswith(f"{devices * tags} readings from {devices} device")
    cut = [int(line.split()[1]) for line in lines if re.fullmatch(r"  … \d+ more", line.rstrip())]
    rows = sum(bool(re.match(r" *\d+  tag", line)) for line in lines)
    heads = [line for line in lines if re.match(r"mill\d\d  \?", line)]
    if len(heads) == devices and rows:
        assert rows + sum(cut) == devices * tags
    assert len(heads) == devices or f"{devices - len(heads)} more devices" in lines[-1]
    if height == 60:
        assert sum("ALERT" in line for line in lines) == 2


def test_rows_are_cut_only_where_they_do_not_fit():
    # 1 name + 1 head + 21 rows + 2 alerts + 1 totals
    assert "more" not in drawn(crowd(1, 21), NOW, 26)
    assert "… 2 more" in drawn(crowd(1, 21), NOW, 25)


def test_health_shows_held_and_dropped_by_device():
    items = {"produced": 90, "delivered": 80, "dropped": {"stolen": 3, "refused": 0}, "held": 7}
    health = json.dumps({"items": items}).encode()
    view = view_of(("status", b'{"state":"online"}', NOW), ("health", health, NOW))
    assert f"held 7, dropped 3 (stolen 3) at {shown.clock(NOW)}" in drawn(view, NOW)
    (record,) = Decoder("pond").feed("pond/mill/health", health, NOW)
    assert view.line(record) == f"{shown.clock(NOW)} mill health: held 7, dropped 3 (stolen 3)"


@pytest.mark.parametrize("items", [None, 5, [], {"dropped": 5}, {"held": "\x1b", "dropped": {}}])
def test_health_of_another_shape_is_survived(items):
    view = view_of(("health", json.dumps({"items": items}).encode(), NOW))
    text = drawn(view, NOW)
    assert "held" in text
    assert "\x1b" not in text


def test_rate_is_a_mean_over_whole_batches():
    rate = Rate()
    assert rate.per_second(NOW) == 0.0
    for n in range(8):
        for _ in range(50):
            rate.add(NOW + 5 * n)
        told = {rate.per_second(NOW + 5 * n + later) for later in (0, 1, 4.9)}
        assert told == ({None} if n == 0 else {10.0})
    rate.add(NOW + 35.1)
    assert rate.text(NOW + 36) == "10.0/s"


def test_rate_falls_when_nothing_comes_any_more():
    rate = Rate()
    for n in range(10):
        rate.add(NOW + n)
    rates = [rate.per_second(NOW + 9 + later) for later in (1, 6, 11, 60)]
    assert rates[0] == 1.0
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--host", ""), "host ''"),
        (("--host", "a b"), "host 'a b'"),
        (("--host", "a..b"), "host 'a..b'"),
        (("--host", "mqtt://pond"), "without ...://"),
        (("--host", "192.0.2.1:1884"), "--port 1884"),
        (("--prefix", ""), "prefix ''"),
        (("--prefix", "a/#"), "prefix 'a/#'"),
    ],
)
def test_wrong_address_or_prefix_is_one_line(options, named):
    done = subprocess.run([*LISTEN, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    (told,) = done.stderr.splitlines()
    assert told.startswith("listen: ")
    assert named in told


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_wrong_port_is_named(port):
    done = subprocess.run([*LISTEN, "--port", port], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "pond", "pond.example", "my_pond.local"])
def test_hosts_that_can_be_asked_for(host):
    assert Subscriber(host, 1883, ["t"]).where == f"{host}:1883"
