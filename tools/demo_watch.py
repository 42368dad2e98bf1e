"""What the demonstration sees of the device from outside: the broker's side and the console.

One thread does all: `run_until` takes in what the subscription and the board's console bring and
asks its condition after each, so that every wait of the demonstration ends with the event it
waits for.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from tools.audit import Audit
from tools.backlog import Backlog, Sample
from tools.records import Decoder
from tools.subscriber import Subscriber

_TICK_S = 0.05
_FRESH_S = 2  # timestamps are whole seconds: a live reading's lies less than this back


class StepFailed(Exception):
    """An expectation of the demonstration that did not come true."""


class Watch:
    """Everything that came from one device, and what it amounts to.

    `data` is the arrival time and the number of items of each message that brought any. `boots`
    is how often the board may have started; more of it is a failure wherever it shows.
    """

    def __init__(self, subscriber: Subscriber, prefix: str, audit: Audit, received: Path):
        self.audit = audit
        self.backlog = Backlog()
        self.states: list[str] = []
        self.data: list[tuple[float, int]] = []
        self.latest_ts = 0
        self._decoder = Decoder(prefix)
        self._messages = subscriber.messages(_TICK_S)
        self._file = received
        self._board = None
        self._mark = 0

    def attach(self, board) -> None:
        """Follow this VirtualBoard's console from now on."""
        self._board = board

    @property
    def announced(self) -> bool:
        """Whether the device's tags are known."""
        return any(self._decoder.tags.values())

    @property
    def last(self) -> Sample | None:
        """The newest status line."""
        return self.backlog.samples[-1] if self.backlog.samples else None

    def is_fresh(self) -> bool:
        """Whether the newest reading received was taken just now: the backlog is drained."""
        return self.latest_ts > time.time() - _FRESH_S

    def run_until(
        self,
        condition: Callable[[], object],
        timeout_s: float,
        what: str,
        note: Callable[[], None] = lambda: None,
    ) -> None:
        """Follow the device until `condition()`; StepFailed naming `what` after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise StepFailed(f"{what}: not within {timeout_s:g} s")
            self._take_one()
            note()

    def run_for(self, seconds: float, note: Callable[[], None] = lambda: None) -> None:
        """Follow the device for so long."""
        ends = time.monotonic() + seconds
        self.run_until(lambda: time.monotonic() >= ends, seconds + 1, "the time", note)

    def _take_one(self) -> None:
        message = next(self._messages)
        if message is not None:
            self._take(message)
        if self._board is not None:
            self._follow_console()

    def _take(self, message) -> None:
        records = self._decoder.feed(message.topic, message.payload, message.received)
        before = self.audit.delivered
        self.audit.take(message.topic, message.payload, records)
        if self.audit.delivered > before:
            self.data.append((time.monotonic(), self.audit.delivered - before))
        for record in records:
            if "type" not in record:
                self.latest_ts = max(self.latest_ts, record["ts"])
            elif record["type"] == "status":
                self.states.append(record["data"].get("state", ""))
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    def _follow_console(self) -> None:
        mark = self._board.mark()
        if mark != self._mark:
            self.backlog.feed(self._board.output(self._mark), time.monotonic())
            self._mark = mark
        if not self._board.alive:
            raise StepFailed("the virtual board went off")
        if self._board.boots > 1:
            raise StepFailed("the board was reset, and with it what it held")
