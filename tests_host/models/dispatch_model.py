"""What a DispatchQueue must do, in three lists of items (seed 002, D1-D17).

It has the methods of a DispatchQueue and calls the same callbacks, so that the driver of the
traces plays with either. Its ids are 1, 2, 3 …
"""

from dataclasses import dataclass

from millpond.dispatch import CANCELLED, ERROR, OPTIONS, RETRYABLE_ERROR, TIMEOUT
from tests_host.core.dispatch_driver import DispatchDriver


@dataclass(eq=False)
class Item:
    id: int
    message: object
    on_complete: object
    context: object
    enqueued: int
    started: int = 0
    attempts: int = 0
    verdict: int | None = None


class DispatchModel:
    def __init__(self, on_process, clock, capacity, window, **options):
        self.on_process, self.clock = on_process, clock
        self.capacity, self.window, self.limits = capacity, window, options
        self.pending: list[Item] = []
        self.in_progress: list[Item] = []
        self.judged: list[Item] = []  # they have a verdict, and are still to be told it
        self.round: list[Item] = []  # what the running do_work has still to process
        self.made = self.strays = 0
        self.elapsed = self.last_reading = 0
        self.is_working = self.is_removing = self.is_closed = False

    def __len__(self):
        return len(self.pending) + len(self.in_progress) + len(self.judged)

    def is_empty(self):
        return not (self.pending or self.in_progress or self.judged)

    def read_clock(self):
        """Whether the clock could be read; a step back is no time (D12)."""
        try:
            reading = self.clock()
        except OSError:
            return False
        if reading is None:
            return False
        self.elapsed += max(0, reading - self.last_reading)
        self.last_reading = reading
        return True

    def add(self, message, on_complete=None, context=None):
        if message is None or (on_complete is not None and not callable(on_complete)):
            raise TypeError("no message, or nobody to tell")
        if self.is_closed or not self.read_clock() or len(self) == self.capacity:
            return 0
        self.made += 1
        self.pending.append(Item(self.made, message, on_complete, context, self.elapsed))
        return self.made

    def do_work(self):
        if self.is_working or self.is_closed:
            return
        self.is_working = True
        self.round = list(self.pending)
        try:
            self.time_out()
            while self.round and not (self.window and len(self.in_progress) >= self.window):
                self.attempt(self.round[0])
        finally:
            self.is_working = False

    def time_out(self):
        """What has waited or worked for too long, in one reading of the clock (D1, D2)."""
        if self.read_clock():
            waiting, working = self.limits[OPTIONS[0]], self.limits[OPTIONS[1]]
            for items in (self.pending, self.in_progress):
                late = [one for one in items if self.elapsed - one.enqueued >= waiting]
                self.judge(late if waiting else [], TIMEOUT)
            late = [one for one in self.in_progress if self.elapsed - one.started >= working]
            self.judge(late if working else [], TIMEOUT)
        self.tell_judged()

    def attempt(self, item):
        self.leave(item)
        if not self.read_clock():
            self.tell(item, ERROR)
            return
        self.in_progress.append(item)
        item.started = self.elapsed
        item.attempts += 1
        try:
            self.on_process(item.id, item.message, self.complete, item.context)
        except BaseException:
            self.complete(item.id, ERROR)
            raise

    def complete(self, item_id, result, reason=None):
        if not isinstance(item_id, int):
            raise TypeError("no id")
        if not 0 <= result <= CANCELLED:
            raise ValueError("no result")
        item = next((one for one in self.in_progress if one.id == item_id), None)
        if item is None:
            self.strays += 1
            return False
        self.leave(item)
        if result == RETRYABLE_ERROR and item.attempts <= self.limits[OPTIONS[2]]:
            self.pending.append(item)
            return True
        self.tell(item, ERROR if result == RETRYABLE_ERROR else result, reason)
        return True

    def move_all_back_to_pending(self):
        if not self.in_progress:
            return
        self.round = []
        for item in self.in_progress:
            item.attempts -= 1
        self.pending[:0] = self.in_progress
        self.in_progress.clear()

    def remove_all(self):
        if self.is_removing:
            return
        self.is_removing = True
        try:
            self.judge(self.in_progress + self.pending, CANCELLED)
            self.tell_judged()
        finally:
            self.is_removing = False

    def close(self):
        if not self.is_closed:
            self.is_closed = True
            self.is_removing = False
        self.remove_all()

    def set_option(self, name, value):
        if name not in OPTIONS or value < 0:
            raise ValueError("unknown option, or below 0")
        self.limits[name] = value

    def options(self):
        return self.limits

    def leave(self, item):
        """Out of its list, and out of the round."""
        for items in (self.pending, self.in_progress, self.round):
            if item in items:
                items.remove(item)

    def judge(self, items, verdict):
        for item in items:
            self.leave(item)
            item.verdict = verdict
            self.judged.append(item)

    def tell_judged(self):
        while self.judged:
            item = self.judged.pop(0)
            self.tell(item, item.verdict)

    def tell(self, item, result, reason=None):
        if item.on_complete:
            item.on_complete(item.message, result, reason, item.context)


class DispatchModelDriver(DispatchDriver):
    make = DispatchModel

    def check(self):
        """Every message taken is held, was told once, or left unheard."""
        held = self.queue.pending + self.queue.in_progress + self.queue.judged
        heard = sum(item.on_complete is not None for item in held)
        assert len(self.order) - self.unheard == sum(self.told_by_result) + heard
