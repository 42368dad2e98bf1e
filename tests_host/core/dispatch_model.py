"""What a DispatchQueue must do, in plain lists: what its random walks are compared with."""

from millpond.dispatch import CANCELLED, ERROR, RETRYABLE_ERROR, TIMEOUT


class Item:
    def __init__(self, number, message, on_complete, context, added):
        self.number = number
        self.message = message
        self.on_complete = on_complete
        self.context = context
        self.added = added
        self.began = 0
        self.attempts = 0
        self.result = None


class Model:
    """What a DispatchQueue must do, in three lists. Its ids are 1, 2, 3 …"""

    def __init__(self, on_process, clock, capacity, window, **options):
        self.on_process = on_process
        self.clock = clock
        self.capacity = capacity
        self.window = window
        self.limits = dict(options)
        self.pending = []
        self.busy = []
        self.leaving = []
        self.made = 0
        self.strays = 0
        self.reading = self.age = 0
        self.working = self.removing = self.closed = False
        self.round = []

    def __len__(self):
        return len(self.pending) + len(self.busy) + len(self.leaving)

    def is_empty(self):
        return len(self) == 0

    def now(self):
        try:
            reading = self.clock()
        except OSError:
            return None
        if reading is not None:
            self.age += max(0, reading - self.reading)
            self.reading = reading
        return None if reading is None else self.age

    def tell(self, item, result, reason=None):
        if item.on_complete:
            item.on_complete(item.message, result, reason, item.context)

    def tell_leaving(self):
        while self.leaving:
            item = self.leaving.pop(0)
            self.tell(item, item.result)

    def judge(self, items, result, is_due):
        for item in [one for one in items if is_due(one)]:
            items.remove(item)
            item.result = result
            self.leaving.append(item)

    def add(self, message, on_complete=None, context=None):
        if self.closed:
            return 0
        now = self.now()
        if now is None or len(self) == self.capacity:
            return 0
        self.made += 1
        self.pending.append(Item(self.made, message, on_complete, context, now))
        return self.made

    def do_work(self):
        if self.working or self.closed:
            return
        self.working = True
        try:
            self.work()
        finally:
            self.working = False

    def work(self):
        self.round = list(self.pending)
        now = self.now()
        enqueued = self.limits["max_enqueued_time_s"]
        processing = self.limits["max_processing_time_s"]
        if now is not None:
            if enqueued:
                self.judge(self.pending, TIMEOUT, lambda one: now - one.added >= enqueued)
                self.judge(self.busy, TIMEOUT, lambda one: now - one.added >= enqueued)
            if processing:
                self.judge(self.busy, TIMEOUT, lambda one: now - one.began >= processing)
        self.tell_leaving()
        while self.pending and self.pending[0] in self.round:
            if self.window and len(self.busy) >= self.window:
                break
            self.process()

    def process(self):
        now = self.now()
        item = self.pending.pop(0)
        self.round.remove(item)
        if now is None:
            self.tell(item, ERROR)
            return
        self.busy.append(item)
        item.began = now
        item.attempts += 1
        try:
            self.on_process(item.number, item.message, self.complete, item.context)
        except KeyError:
            self.complete(item.number, ERROR)
            raise

    def complete(self, number, result, reason=None):
        found = [item for item in self.busy if item.number == number]
        if not found:
            self.strays += 1
            return False
        item = found[0]
        self.busy.remove(item)
        if result == RETRYABLE_ERROR and item.attempts <= self.limits["max_retry_count"]:
            self.pending.append(item)
        else:
            self.tell(item, ERROR if result == RETRYABLE_ERROR else result, reason)
        return True

    def move_all_back_to_pending(self):
        if self.busy:
            self.round = []
        for item in self.busy:
            item.attempts -= 1
        self.pending = self.busy + self.pending
        self.busy = []

    def remove_all(self):
        if self.removing:
            return
        self.removing = True
        try:
            self.cancel()
        finally:
            self.removing = False

    def cancel(self):
        self.judge(self.busy, CANCELLED, lambda one: True)
        self.judge(self.pending, CANCELLED, lambda one: True)
        self.tell_leaving()

    def close(self):
        if self.closed:
            self.remove_all()
            return
        self.closed = True
        self.removing = True
        try:
            self.cancel()
        finally:
            self.removing = False

    def set_option(self, name, value):
        self.limits[name] = value

    def options(self):
        return dict(self.limits)
