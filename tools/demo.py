"""`python -m tools demo`: the main job from end to end, with the link cut twice on the way.

A real broker, a virtual board behind a faulting proxy, and a subscriber that sits beside the
broker and can't itself lose anything. The link is cut once by refusing every connection and once
by a silence that the board must find out about by itself. At the end the board's counters are
held against what the subscriber got, reading by reading (tools.audit).

Exit code 0: every item produced was delivered in order, or dropped and counted. 1: not so, or a
step failed. 2: wrong arguments.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tools import shown
from tools._core import PLANT_TAGS
from tools.audit import Audit, Verdict
from tools.backlog import sparkline
from tools.broker import Broker, BrokerError
from tools.build import PROJECT, BuildError
from tools.claim import Claim, Taken
from tools.demo_plan import MAX_SECONDS, MIN_SECONDS, PREFIX, SCAN, board_config, cut_lengths
from tools.demo_show import Drained, Show
from tools.demo_watch import StepFailed, Watch
from tools.mqtt_packets import PUBACK
from tools.program import RUNS, resume, stop
from tools.proxy import DOWN, Proxy
from tools.remote import BoardError, Remote
from tools.subscriber import Refused, Subscriber
from tools.vboard.board import VirtualBoard, VirtualBoardError
from tools.vboard.flash import make_flash

HOME = PROJECT / "build" / "demo"
_STEPS = 9
_WAIT_S = 15
_SPARK = 20
_STARTS = rf"{RUNS}|millpond (not started|failed):[^\n]*\n"
_FAILURES = (
    StepFailed,
    BrokerError,
    BuildError,
    VirtualBoardError,
    BoardError,
    Refused,
    OSError,
    ValueError,
)


@dataclass
class Result:
    """What the demonstration found out on its way."""

    outages: list[float] = field(default_factory=list)
    max_backlog: int = 0
    drained: Drained | None = None


class Demo:
    """The nine steps. `stack` takes what must be closed at the end, in the reverse order.

    `home` is the folder for the files of this run; what it held is removed.
    """

    def __init__(
        self, show: Show, stack: contextlib.ExitStack, seconds: float, broker: str, home: Path
    ):
        self.result = Result()
        self._show = show
        self._stack = stack
        self._seconds = seconds
        self._kind = broker
        self._home = home

    def run(self) -> Verdict:
        """All steps; StepFailed or another of _FAILURES where one does."""
        self._claim_home()
        self._start_broker()
        self._start_proxy()
        self._start_board()
        self._see_it_online()
        first, second = cut_lengths(self._seconds)
        self._cut("link cut, refusing", self._refuse, first)
        self._restore("link back")
        self._cut("link cut, silent", self._proxy.stall, second)
        self._restore("link back")
        return self._account()

    def _claim_home(self) -> None:
        try:
            self._stack.enter_context(Claim(self._home / "lock", f"pid {os.getpid()}"))
        except Taken as taken:
            raise StepFailed(
                f"another demonstration uses {self._home} ({taken}); see --home"
            ) from None
        for path in self._home.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()

    def _start_broker(self) -> None:
        with self._show.step("broker") as step:
            self._broker = self._stack.enter_context(Broker(self._home / "broker", self._kind))
            subscriber = Subscriber(
                self._broker.host,
                self._broker.port,
                [f"{PREFIX}/+/#"],
                user="demo",
                client_id="millpond-demo-audit",
            )
            self._stack.enter_context(subscriber)
            audit = Audit([tag[0] for tag in PLANT_TAGS])
            self._watch = Watch(subscriber, PREFIX, audit, self._home / "received.jsonl")
            self._watch.run_until(subscriber.subscribed.is_set, _WAIT_S, "the subscription")
            step.result(f"{self._broker.kind} on port {self._broker.port}, a subscriber beside it")

    def _start_proxy(self) -> None:
        with self._show.step("proxy") as step:
            self._proxy = self._stack.enter_context(Proxy(self._broker.port))
            step.result(f"port {self._proxy.port}, where the board looks for its broker")

    def _start_board(self) -> None:
        with self._show.step("virtual board") as step:
            flash = self._home / "flash"
            config = json.dumps(board_config(self._proxy.port), indent=2)
            make_flash(flash, config=config, built=self._home / "tree")
            self._board = self._stack.enter_context(VirtualBoard(flash))
            self._stack.callback(self._save_console)
            said = self._board.wait_for(_STARTS, _WAIT_S)[0]
            if said != RUNS:
                raise StepFailed(f"the board says: {said.strip()}")
            self._watch.attach(self._board)
            step.result(f"MicroPython, the board's own files, {self._board.port}")

    def _save_console(self) -> None:
        lines = self._board.output().replace("\r", "").split("\n")
        (self._home / "console.log").write_text("\n".join(map(shown.clean, lines)))

    def _see_it_online(self) -> None:
        watch = self._watch
        with self._show.step("device online, readings flow") as step:
            watch.run_until(lambda: "online" in watch.states, _WAIT_S, "the device's birth message")
            watch.run_until(lambda: watch.announced, _WAIT_S, "its announcement of tags")
            watch.run_until(lambda: watch.audit.delivered >= 3 * SCAN, _WAIT_S, "three scans")
            watch.run_until(lambda: watch.last, _WAIT_S, "a status line on its console")
            watch.run_for(0.12 * self._seconds, lambda: step.note(self._flowing()))
            step.result(self._flowing())

    def _flowing(self) -> str:
        return f"{self._watch.audit.delivered} items delivered"

    def _cut(self, title: str, cut, seconds: float) -> None:
        watch = self._watch
        with self._show.step(title) as step:
            began = time.monotonic()
            least = watch.last.held + SCAN
            cut()
            watch.run_for(seconds, lambda: step.note(self._growing(began)))
            step.result(self._growing(began))
            last = watch.last
            if last.link_up or watch.backlog.most(began) < least:
                raise StepFailed(
                    f"link {'up' if last.link_up else 'down'}, backlog {last.held}, says the board"
                    f" after {seconds:.1f} s; link down and at least {least} expected"
                )
            self.result.outages.append(time.monotonic() - began)

    def _refuse(self) -> None:
        """Take away the link between a delivery and its acknowledgement: it must come twice."""
        taken = self._proxy.swallowed[DOWN]
        self._proxy.swallow(DOWN, PUBACK)
        self._proxy.wait_for(lambda p: p.swallowed[DOWN] > taken, _WAIT_S, "an acknowledgement")
        self._proxy.refuse()

    def _growing(self, began: float) -> str:
        held = [sample.held for sample in self._watch.backlog.since(began)]
        now = held[-1] if held else 0
        return f"{time.monotonic() - began:.1f} s, backlog {now} {sparkline(held, _SPARK)}"

    def _restore(self, title: str) -> None:
        watch, result = self._watch, self.result
        with self._show.step(title) as step:
            held, repeated = watch.last.held, watch.audit.duplicates
            began, first = time.monotonic(), len(watch.data)
            self._proxy.restore()
            drained = lambda: len(watch.data) > first and watch.is_fresh()  # noqa: E731
            watch.run_until(drained, 2 * _WAIT_S, "the end of the backlog")
            came = watch.data[first:]
            took = came[-1][0] - came[0][0]
            items = sum(number for _, number in came) + watch.audit.duplicates - repeated
            drained = Drained(items, len(came), took, held)
            result.drained = max(filter(None, (result.drained, drained)), key=lambda d: d.items)
            watch.run_until(lambda: self._is_up(began), _WAIT_S, "a status line that says so")
            result.max_backlog = max(result.max_backlog, watch.backlog.most())
            step.result(f"in {came[0][0] - began:.1f} s; {drained.what()}")

    def _is_up(self, since: float) -> bool:
        after = self._watch.backlog.since(since)
        return bool(after) and after[-1].link_up and after[-1].held < 3 * SCAN

    def _account(self) -> Verdict:
        watch = self._watch
        with self._show.step("sensors stopped, items counted") as step:
            with Remote(self._board.port) as remote:
                stop(remote)
                remote.exec("app.stop_sensors()")
                resume(remote)
            began = time.monotonic()
            watch.run_until(lambda: self._is_empty(began), _WAIT_S, "an empty board")
            with Remote(self._board.port) as remote:
                stop(remote)
                counters = json.loads(remote.exec("import json; print(json.dumps(counters()))"))
            (self._home / "counters.json").write_text(json.dumps(counters, indent=2))
            with contextlib.suppress(StepFailed):
                all_in = lambda: watch.audit.delivered >= counters["delivered"]  # noqa: E731
                watch.run_until(all_in, _WAIT_S, "what the broker acknowledged")
            verdict = watch.audit.verdict(counters)
            step.result(f"{verdict.produced} produced, {verdict.delivered} delivered")
            return verdict

    def _is_empty(self, since: float) -> bool:
        after = self._watch.backlog.since(since)
        return bool(after) and after[-1].held == 0


def summary(verdict: Verdict, result: Result) -> dict:
    """The result as the one JSON object that --json prints."""
    account = asdict(verdict)
    keys = ("produced", "delivered", "duplicates", "lost", "in_order")
    return {
        **{key: account[key] for key in keys},
        "dropped": sum(verdict.dropped.values()),
        "outage_s": round(sum(result.outages), 1),
        "max_backlog": result.max_backlog,
    }


def command(
    seconds: Annotated[
        float, typer.Option(min=MIN_SECONDS, max=MAX_SECONDS, help="About how long it takes")
    ] = 45,
    broker: Annotated[
        str, typer.Option(help="mosquitto or amqtt; mosquitto where it is installed")
    ] = "",
    home: Annotated[Path, typer.Option(help="Folder for its files; emptied first")] = HOME,
    as_json: Annotated[
        bool, typer.Option("--json", help="The result as one JSON object, the last line")
    ] = False,
) -> None:
    """Run the whole line through two outages, and account for every item."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    show = Show(Console(stderr=as_json, highlight=False), _STEPS)
    stopped, failure, verdict = False, "", None
    with contextlib.ExitStack() as stack:
        demo = Demo(show, stack, seconds, broker, home)
        try:
            verdict = demo.run()
        except _FAILURES as error:
            failure = str(error)
        except KeyboardInterrupt:
            stopped = True
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what was started is still to be ended
    if stopped:
        show.stopped()
        raise typer.Exit(130)
    if verdict is None:
        show.failed(failure, _look_at(home))
        raise typer.Exit(1)
    _conclude(show, verdict, demo.result, home, as_json)
    raise typer.Exit(0 if verdict.passed else 1)


def _conclude(show: Show, verdict: Verdict, result: Result, home: Path, as_json: bool) -> None:
    """Show the account, and what is wrong with it."""
    show.table(verdict, result.outages, result.max_backlog, result.drained)
    if not verdict.passed:
        show.failed("; ".join(verdict.faults), _look_at(home))
    if as_json:
        typer.echo(json.dumps(summary(verdict, result)))


def _look_at(home: Path) -> list[str]:
    """The files that tell more, as short as they can be named from here."""
    files = ("console.log", "received.jsonl", "counters.json", "broker/broker.log")
    return [os.path.relpath(home / name) for name in files if (home / name).exists()]
