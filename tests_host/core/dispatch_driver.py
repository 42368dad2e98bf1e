"""A driver of DispatchQueue for recorded traces: see replay_kit.

What its callbacks do is part of the configuration. A *plan* is `(at process, at told, is heard)`:
two tuples of operations, done from within on_process and on_complete of each message added by the
plan, and whether it has an on_complete. Operations within callbacks are the same as outside, and
callbacks within callbacks do their own, down to a depth of DEPTH.
"""

from millpond.dispatch import OPTIONS, DispatchQueue
from tests_host.core import dispatch_kit
from tests_host.core.replay_kit import Driver

DEPTH = 3


class DispatchDriver(Driver):
    """Does to a DispatchQueue what a trace says; the result of a step is all that happened in it.

    Messages are numbered as they are offered; items are known by their message's number. `taken`
    and `refused` count what `add` did, `told …` the completions by result, and `unheard` are the
    messages taken without an on_complete.
    """

    make = DispatchQueue

    FIELDS = (
        "held",
        "is_empty",
        "strays",
        "taken",
        "refused",
        "told SUCCESS",
        "told ERROR",
        "told RETRYABLE_ERROR",
        "told TIMEOUT",
        "told CANCELLED",
        "unheard",
    )

    def __init__(self, capacity, window, limits, plans):
        self.time = 0
        self.failure = 0  # 1: the clock gives None, 2: it raises
        self.plans = plans
        self.depth = 0
        self.diary = []
        self.offered = self.refused = self.unheard = 0
        self.told_by_result = [0] * 5
        self.ids = {}  # of messages taken
        self.order = []  # messages taken
        options = {}
        for name, limit in zip(OPTIONS, limits):
            options[name] = limit
        self.queue = self.make(self.process, self.clock, capacity, window, **options)

    def clock(self):
        if self.failure == 2:
            raise OSError(5)
        return None if self.failure else self.time

    def step(self, operation):
        self.diary = []
        try:
            self.act(operation)
        except KeyError:
            self.note("raised")
        return tuple(self.diary)

    def act(self, operation):
        try:
            getattr(self, operation[0])(*operation[1:])
        except self.ERRORS as error:
            self.note(type(error).__name__)

    def note(self, *event):
        self.diary.append(event)

    def state(self):
        queue = self.queue
        head = (len(queue), int(queue.is_empty()), queue.strays, len(self.order), self.refused)
        return head + tuple(self.told_by_result) + (self.unheard,)

    def check(self):
        dispatch_kit.check(self.queue)

    # -- callbacks -------------------------------------------------------------------------------

    def process(self, item, message, complete, context):
        assert self.ids[message] == item and complete == self.queue.complete
        self.note("process", message)
        self.call_back(self.plans[context][0], message)

    def told(self, message, result, reason, context):
        self.told_by_result[result] += 1
        self.note("told", message, result, reason)
        self.call_back(self.plans[context][1], message)

    def call_back(self, operations, message):
        self.check()
        if self.depth == DEPTH:
            return
        self.depth += 1
        try:
            for operation in operations:
                if operation[0] == "own":
                    self.note("own", int(self.queue.complete(self.ids[message], operation[1])))
                elif operation[0] == "fail":
                    raise KeyError(message)
                else:
                    self.act(operation)
        finally:
            self.depth -= 1

    # -- operations ------------------------------------------------------------------------------

    def add(self, plan):
        plan %= len(self.plans)
        self.offered += 1
        is_heard = self.plans[plan][2]
        item = self.queue.add(self.offered, self.told if is_heard else None, plan)
        self.note("add", self.offered if item else 0)
        if not item:
            self.refused += 1
            return
        assert item not in self.ids.values()
        self.ids[self.offered] = item
        self.order.append(self.offered)
        if not is_heard:
            self.unheard += 1

    def add_nothing(self):
        self.queue.add(None, self.told)

    def add_with_no_callable(self):
        self.queue.add(1, "told")

    def do_work(self):
        self.queue.do_work()

    def complete(self, back, result):
        """Complete the message that was taken `back` messages before the last."""
        if back < len(self.order):
            message = self.order[-1 - back]
            self.note("complete", int(self.queue.complete(self.ids[message], result, message)))

    def complete_id(self, item, result):
        self.note("complete", int(self.queue.complete(item, result)))

    def move_all_back_to_pending(self):
        self.queue.move_all_back_to_pending()

    def remove_all(self):
        self.queue.remove_all()

    def close(self):
        self.queue.close()

    def set_option(self, which, value):
        self.queue.set_option(OPTIONS[which] if which < len(OPTIONS) else "other", value)
        options = self.queue.options()
        self.note("options", tuple([options[name] for name in OPTIONS]))

    def wait(self, seconds):
        self.time += seconds

    def set_failure(self, failure):
        self.failure = failure
