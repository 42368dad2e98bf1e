"""The stage of a chaos run: mosquitto, the faulting proxy, a virtual board, and a subscriber.

    board ── proxy ── mosquitto ── subscriber
             faults    faults      beside it: a persistent session, QoS 1, never through the proxy

The verdict is what the subscriber received against what the board counted (tools.audit). For that
the subscriber's own leg must lose nothing, so the broker is never ended while it owes anything.
mosquitto acknowledges a publication before its database is on disk, whatever `autosave_interval`
and `autosave_on_changes` say: it saves from its main loop, behind the packets it has handled. A
SIGKILL between the two would lose what the board rightly counts as delivered, and prove nothing
about the board. So `quiet` goes before every end of the broker:

1. The proxy lets nothing through, in the middle of whatever was on its way.
2. Two markers, one after the other, go straight to the broker and come to the subscriber. The
   first one comes behind all that the broker had taken by then; the second behind what it took in
   the same turn of its loop as the first, and behind the subscriber's acknowledgements of all that.
3. Where sessions are to survive, mosquitto saves its database on SIGUSR1, and on nothing else.

The board knows nothing of that: what it had in flight, and the acknowledgements on their way to it,
hang in the proxy and are lost with the connection. SIGSTOP loses nothing and needs no such care.
"""

import contextlib
import json
import re
import time
from pathlib import Path

import paho.mqtt.publish

from tests_host.chaos.plan import Fault
from tools._core import PLANT_TAGS
from tools.audit import Audit
from tools.broker import MOSQUITTO, Broker
from tools.demo_watch import StepFailed, Watch
from tools.loopback import free_port
from tools.mqtt_packets import PUBACK, PUBCOMP
from tools.program import RUNS, resume, stop
from tools.proxy import DOWN, Proxy
from tools.remote import Remote
from tools.subscriber import Subscriber
from tools.vboard import VirtualBoard, make_flash

PREFIX = "pond"
DEVICE = "chaos"
PATIENCE_S = 60
_HEAP = "768K"
_MARKER = f"{PREFIX}/marker/of"
_MARKER_S = 1
DATA, _ALERT, _HEALTH = (f"{PREFIX}/{DEVICE}/{last}" for last in ("data", "alert", "health"))
_LINK_DOWN = re.compile(r"WARNING link down: (.*); next try in")
_COMPLAINT = re.compile(r"\] ERROR |Traceback|Error:")
_PAGE = r"--- status\s+((?s:.*?))--- end"
_PAGE_REASON = re.compile(r"(?:because|last loss:) ([^\r\n]*)")


def board_config(port: int, qos: int) -> dict:
    """Much to tell, room for all that comes in a minute without a link, and the shortest deadlines
    there are, so that a minute holds many faults."""
    scan = len(PLANT_TAGS)
    return {
        "device": {"name": DEVICE, "type": 7, "serial": 1001},
        "mqtt": {
            "host": "127.0.0.1",
            "port": port,
            "prefix": PREFIX,
            "qos": qos,
            "keepalive_s": 4,
            "connect_timeout_s": 1,
            "ack_timeout_s": 1,
            "backoff_min_s": 1,
            "backoff_max_s": 1,
        },
        "ring": {"bytes": 262144, "page_bytes": 2048},
        "batch": {"max_readings": scan, "max_age_ms": 300},
        "plant": {"period_ms": 100, "alert_every_s": 1},
        # Two of its readings in one second may be the same, and would count as one that came twice.
        "board": {"enabled": False},
        # Not each second: it would wait whenever the status line looks.
        "health": {"period_s": 2},
        "log": {"status_s": 1},
    }


class Tap:
    """The subscription as Watch reads it, less the markers. `repeats` has the topics of messages
    that were the same as the one before, as the audit has it."""

    def __init__(self, subscriber: Subscriber):
        self.marker = 0
        self.repeats: list[str] = []
        self._subscriber = subscriber
        self._previous = ("", b"")

    def messages(self, timeout_s: float):
        for message in self._subscriber.messages(timeout_s):
            if message is None or message.topic not in (DATA, _ALERT, _HEALTH):
                if message is not None and message.topic == _MARKER:
                    self.marker = max(self.marker, int(message.payload))
                    message = None
            elif message[:2] == self._previous:
                self.repeats.append(message.topic)
            else:
                self._previous = message[:2]
            yield message


class Stage:
    """Everything that takes part; `stack` closes it. `home` is a folder of its own.

    `reasons` has why the board gave up its connections, in its own words, one after the other;
    `complaints` the lines of its console that no fault from outside may bring about.
    """

    def __init__(self, stack: contextlib.ExitStack, home: Path, qos: int):
        self.qos = qos
        self.acknowledgement = PUBACK if qos == 1 else PUBCOMP
        self.reasons: list[str] = []
        self.complaints: list[str] = []
        self._began = time.monotonic()
        self._console_at = 0
        self._unfinished = ""
        self._markers = 0
        self.broker = stack.enter_context(
            Broker(home / "broker", MOSQUITTO, free_port(), True, extra=["autosave_interval 0"])
        )
        where = self.broker.host, self.broker.port
        subscriber = Subscriber(*where, [f"{PREFIX}/#"], client_id="chaos-audit")
        self.tap = Tap(stack.enter_context(subscriber))
        self.audit = Audit([tag[0] for tag in PLANT_TAGS])
        self.watch = Watch(self.tap, PREFIX, self.audit, home / "received.jsonl")
        self.watch.run_until(subscriber.subscribed.is_set, PATIENCE_S, "the subscription")
        self.proxy = stack.enter_context(Proxy(self.broker.port))
        config = json.dumps(board_config(self.proxy.port, qos))
        make_flash(home / "flash", config=config, built=home / "tree")
        self.board = stack.enter_context(VirtualBoard(home / "flash", heap=_HEAP))
        self.watch.attach(self.board)
        self.board.wait_for(RUNS, PATIENCE_S)
        self.runs_since = self.seconds()
        self.watch.run_until(lambda: self.watch.announced, PATIENCE_S, "the board's tags")

    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def follow(self) -> list[str]:
        """Take in what the board's console has said; why it gave up connections meanwhile."""
        mark = self.board.mark()
        said = self._unfinished + self.board.output(self._console_at, mark)
        self._console_at = mark
        *lines, self._unfinished = said.split("\n")
        new = _LINK_DOWN.findall("\n".join(lines))
        self.reasons += new
        self.complaints += [line for line in lines if _COMPLAINT.search(line)]
        return new

    def wait_for_delivery(self, messages: int = 1) -> None:
        """Until so many acknowledgements more have passed the proxy on their way to the board."""
        passed = self.proxy.packets[DOWN]
        enough = passed[self.acknowledgement] + messages
        self.watch.run_until(
            lambda: passed[self.acknowledgement] >= enough, PATIENCE_S, "a delivery"
        )

    def quiet(self, fault: Fault) -> None:
        """Hold or reset what is on its way; the subscriber then has all that the broker had."""
        if fault.count == 1:
            self.proxy.refuse()
        else:
            self.proxy.stall()
        self.catch_up()

    def catch_up(self) -> None:
        """Until the subscriber has, and has acknowledged, all that the broker has now."""
        for _ in range(2):
            self._markers += 1
            ends = time.monotonic() + PATIENCE_S
            while self.tap.marker < self._markers:
                # It vanishes where the session is lost and the subscriber not back yet.
                self._publish_marker()
                with contextlib.suppress(StepFailed):
                    self.watch.run_until(self._marked, _MARKER_S, "the marker")
                if time.monotonic() > ends:
                    raise StepFailed(f"the subscriber gets nothing for {PATIENCE_S} s")

    def _marked(self) -> bool:
        return self.tap.marker >= self._markers

    def _publish_marker(self) -> None:
        paho.mqtt.publish.single(
            _MARKER, str(self._markers), qos=1, hostname=self.broker.host, port=self.broker.port
        )

    def reason_on_page(self) -> str:
        """What the running board's status page gives as the reason of its last loss."""
        mark = self.board.mark()
        self.board.type("s")
        page = self.board.wait_for(_PAGE, PATIENCE_S, mark)[1]
        found = _PAGE_REASON.search(page)
        return found[1].strip() if found else ""

    def free_bytes(self) -> int:
        """The board's free heap after a collection. Costs it its connection."""
        with Remote(self.board.port) as remote:
            stop(remote)
            free = int(remote.exec("import gc; gc.collect(); gc.collect(); print(gc.mem_free())"))
            resume(remote)
        return free

    def drain(self) -> None:
        """Read no sensor any more, and wait until the board holds nothing."""
        with Remote(self.board.port) as remote:
            stop(remote)
            remote.exec("app.stop_sensors()")
            resume(remote)
        self.wait_until_held(0)

    def wait_until_held(self, most: int) -> None:
        """Until the board says that it holds no more items than that."""
        began = time.monotonic()
        self.watch.run_until(
            lambda: any(sample.held <= most for sample in self.watch.backlog.since(began)),
            PATIENCE_S,
            f"{most} items held at most",
        )

    def account(self) -> tuple[dict, dict]:
        """The board's counters, and its gauges as they were when it was stopped for this."""
        with Remote(self.board.port) as remote:
            stop(remote)
            remote.exec("import json")
            counters = json.loads(remote.exec("print(json.dumps(counters()))"))
            gauges = json.loads(remote.exec("print(json.dumps(app.snapshot))"))
        self.catch_up()
        return counters, gauges
