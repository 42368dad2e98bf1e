"""What the link tests work with: the rig from outside, and the judge of what arrived.

`Rig` holds a MicroPython process that runs rig.py (or another script that speaks the same lines).
`Judge` is a paho subscriber with a session of its own, connected past the proxy: what it has is
what the broker was given. Nothing here sleeps for a fixed time; everything waits for an event.
"""

import itertools
import json
import os
import re
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import paho.mqtt.client as mqtt

from tests_host.conftest import ROOT, micropython_command, micropython_env

HERE = Path(__file__).resolve().parent
WAIT_S = 30
UP_LINE = re.compile(r"link up: (\S+), session (new|kept)")
DOWN_LINE = re.compile(r"link down: (.*); next try in [0-9.]+ s$")


class Rig:
    """A rig in its own process, started by `with`; whatever happens, it is ended there.

    `ups` has for each connection whether the session was kept, `downs` the (reason, wait in ms) of
    each one's end or failure, in their order. `path` comes first among the places of modules.
    """

    script = HERE / "rig.py"
    may_talk = False  # whether lines that are no events belong to its log

    def __init__(self, port: int, path: Path | None = None, **options):
        self.options = {"port": port, **options}
        self._path = path
        self.events: list[dict] = []
        self.ups: list[bool] = []
        self.downs: list[tuple[str, int]] = []
        self._wait_ms = 0
        self._changed = threading.Condition()
        self._ordering = threading.Lock()
        self._answers: list[dict] = []
        self._killed = self._ended = False

    def __enter__(self) -> "Rig":
        env = micropython_env()
        if self._path:
            env["MICROPYPATH"] = f"{self._path}:{env['MICROPYPATH']}"
        self.process = subprocess.Popen(
            [micropython_command(), "-X", "heapsize=4M", str(self.script)],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.process.stdin.write(json.dumps(self.options) + "\n")
        return self

    def __exit__(self, kind, *_exc) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(WAIT_S)
        finally:
            self._reap()
        if kind is None:
            assert not self.strays(), self.strays()
            assert self._killed or self.process.returncode == 0, self.events[-20:]

    def kill(self) -> None:
        """End it without a word to anybody, as a power cut does."""
        self._killed = True
        self._reap()

    def _reap(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(WAIT_S)
        self.process.stdout.close()

    def strays(self) -> list:
        """Exceptions that escaped a task, and output that is none of the rig's lines."""
        return [e for e in self.events if "stray" in e or "noise" in e]

    def order(self, do: str, **arguments) -> dict:
        """Have the rig do something; its answer."""
        with self._ordering, self._changed:
            before = len(self._answers)
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._wait(lambda: len(self._answers) > before, f"the answer to {do!r}")
            return self._answers[-1]

    def stats(self) -> dict:
        """The rig's counters now."""
        return self.order("stats")

    def until(self, condition, what: str) -> dict:
        """Ask for `stats` until `condition(stats)` is true; those stats."""
        deadline = time.monotonic() + WAIT_S
        while True:
            stats = self.stats()
            if condition(stats):
                return stats
            assert time.monotonic() < deadline, f"{what}: not within {WAIT_S} s: {stats}"
            time.sleep(0.005)

    def delivered(self, n: int) -> dict:
        """Wait until the broker has acknowledged `n` messages in all."""
        return self.until(lambda s: s["delivered"] >= n, f"{n} deliveries")

    def up(self, n: int = 1) -> bool:
        """Wait for the `n`-th connection; whether the session was kept."""
        self.wait(lambda: len(self.ups) >= n, f"connection {n}")
        return self.ups[n - 1]

    def down(self, n: int = 1) -> str:
        """Wait for the `n`-th end or failure of a connection; its reason."""
        self.wait(lambda: len(self.downs) >= n, f"loss {n}")
        return self.downs[n - 1][0]

    def wait(self, condition, what: str) -> None:
        """Wait until something the rig says makes `condition()` true."""
        with self._changed:
            self._wait(condition, what)

    def subscribed(self, *topics: str) -> dict:
        """Wait until the broker has confirmed the subscriptions to these topics."""
        return self.until(lambda s: s["subscribed"] == sorted(topics), f"subscribed to {topics}")

    def lines(self, text: str) -> list[str]:
        """The lines of the log with `text` in them."""
        return [line for e in self.events if text in (line := e.get("log", ""))]

    def inbound(self) -> list[tuple[str, str, int]]:
        """(topic, first characters, size) of each message the rig has received."""
        return [(e["inbound"], e["text"], e["size"]) for e in self.events if "inbound" in e]

    def open_files(self) -> int:
        """How many files and sockets the process has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def _wait(self, condition, what: str) -> None:
        self._changed.wait_for(lambda: condition() or self._ended or self.strays(), WAIT_S)
        assert condition(), f"{what}: not within {WAIT_S} s; last: {self.events[-8:]}"

    def _read(self) -> None:
        for line in self.process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"log" if self.may_talk else "noise": line}
            with self._changed:
                self._note(event)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _note(self, event: dict) -> None:
        if "done" in event:
            self._answers.append(event)
            return
        if "wait_ms" in event:
            self._wait_ms = event["wait_ms"]
            return
        self.events.append(event)
        line = event.get("log", "")
        if match := UP_LINE.search(line):
            self.ups.append(match[2] == "kept")
        elif match := DOWN_LINE.search(line):
            self.downs.append((match[1], self._wait_ms))


class Judge:
    """Keeps (topic, payload, retained) of all that arrives at the broker below `topics`."""

    _numbers = itertools.count()

    def __init__(self, port: int, topics: str = "#"):
        self.got: list[tuple[str, bytes, bool]] = []
        self.connects = 0
        self._seen: set[tuple[int, bytes]] = set()
        self._port = port
        self._topics = topics
        self._changed = threading.Condition()
        self._client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=f"judge{next(self._numbers)}",
            clean_session=False,
        )
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message

    def __enter__(self) -> "Judge":
        self._client.connect_async("127.0.0.1", self._port)
        self._client.loop_start()
        self.listens()
        return self

    def __exit__(self, *_exc) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def listens(self, times: int = 1) -> None:
        """Wait until it has subscribed for the `times`-th time."""
        self.until(lambda: self.connects >= times, f"subscription {times}")

    def publish(self, topic: str, payload, qos: int = 1, retain: bool = False) -> None:
        """Publish, and wait until the broker has it."""
        self._client.publish(topic, payload, qos, retain).wait_for_publish(WAIT_S)

    def received(self, count: int, topic: str = "rig/data") -> list[bytes]:
        """Wait for `count` messages, repeats included, on a topic; all of its payloads so far."""
        self.until(lambda: len(self.payloads(topic)) >= count, f"{count} messages on {topic}")
        return self.payloads(topic)

    def payloads(self, topic: str = "rig/data") -> list[bytes]:
        """What has come on a topic."""
        return [payload for where, payload, _ in list(self.got) if where == topic]

    def numbers(self, last: int, topic: str = "rig/data") -> list[int]:
        """Wait for message number `last`; the numbers of all, after a check of their bytes."""
        self.until(
            lambda: any(p[:6] == b"%06d" % last for p in self.payloads(topic)), f"message {last}"
        )
        return [number_of(payload) for payload in self.payloads(topic)]

    def has_all(self, count: int, repeats: int = 0) -> Counter:
        """Assert that messages 0 to count - 1 arrived whole, in order, with at most `repeats`.

        A repeat must come right behind its original: one message is in flight. The repeats.
        """
        numbers = self.numbers(count - 1)
        assert [n for n, _ in itertools.groupby(numbers)] == list(range(count))
        again = Counter(numbers) - Counter(set(numbers))
        assert again.total() <= repeats, f"repeats: {again}"
        return again

    def until(self, condition, what: str) -> None:
        """Wait until what has come makes `condition()` true."""
        with self._changed:
            assert self._changed.wait_for(condition, WAIT_S), (
                f"{what}: not within {WAIT_S} s; {len(self.got)} came, last {self.got[-3:]}"
            )

    def _on_connect(self, client, _userdata, _flags, reason, _properties) -> None:
        if not reason.is_failure:
            client.subscribe(self._topics, 1)

    def _on_subscribe(self, *_) -> None:
        with self._changed:
            self.connects += 1
            self._changed.notify_all()

    def _on_message(self, _client, _userdata, message) -> None:
        seen = message.mid, message.payload
        if message.dup and seen in self._seen:
            return  # the broker's own repeat, for an acknowledgement of ours that it has not got
        with self._changed:
            self._seen.add(seen)
            self.got.append((message.topic, message.payload, bool(message.retain)))
            self._changed.notify_all()


def number_of(payload: bytes) -> int:
    """The number of a message; AssertionError when any byte of it is not as it was sent."""
    whole = (payload[:6] * (len(payload) // 6 + 1))[: len(payload)]
    assert payload == whole, f"damaged: {payload[:60]!r}"
    return int(payload[:6])
