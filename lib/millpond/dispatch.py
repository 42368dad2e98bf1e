"""DispatchQueue: messages pending, in progress, completed (seed 002, D1-D17).

An item is a message in a slot. All slots are made once, and each is in exactly one of four lists:

    event                          PENDING               IN PROGRESS            LEAVING
    do_work finds a limit reached  LEAVING, TIMEOUT      LEAVING, TIMEOUT       -
    do_work takes it up            IN PROGRESS           -                      -
      ... and the clock fails      FREE, told ERROR      -                      -
      ... and on_process raises    -                     FREE, told ERROR       -
    complete with RETRYABLE_ERROR
      ... attempts <= retries      a stray               PENDING, at the tail   a stray
      ... attempts > retries       a stray               FREE, told ERROR       a stray
    complete with another result   a stray               FREE, told the result  a stray
    move_all_back_to_pending       stays                 PENDING, at the head   stays
    remove_all, close              LEAVING, CANCELLED    LEAVING, CANCELLED     stays

`add` takes a slot from FREE to PENDING. LEAVING holds what was judged and is still to be told:
nothing else can happen to it. The call that put it there tells it; after a callback that raised,
the next do_work, remove_all or close does. To be told is to have one's on_complete called. By then
the slot is FREE, and whoever called goes on by the lists as it finds them, not by what it knew
before. So any method may be called from any callback, and each item is told once (D14). From within
themselves do_work and remove_all do nothing: the one that is running does the work. The lists are
circular and doubly linked; a list's number, being negative, is the index of its two ends.

Time is what the clock advances from one reading to the next. What it takes back counts as none,
so that no item waits longer for it (D12). Not for use from two threads.
"""

from array import array

from micropython import const

from millpond.limits import within

SUCCESS = const(0)
ERROR = const(1)
RETRYABLE_ERROR = const(2)
TIMEOUT = const(3)
CANCELLED = const(4)
RESULTS = ("SUCCESS", "ERROR", "RETRYABLE_ERROR", "TIMEOUT", "CANCELLED")
OPTIONS = ("max_enqueued_time_s", "max_processing_time_s", "max_retry_count")

NO_LIMIT = const(0x3FFFFFFF)  # the most that an option can be

_PENDING = const(-1)
_BUSY = const(-2)
_LEAVING = const(-3)
_FREE = const(-4)


class DispatchQueue:
    """A queue of up to `capacity` (1 to 32,767) messages, each processed by `on_process`.

    `on_process(item, message, complete, context)` is called at each attempt; then or later,
    `complete(item, result, reason)`, as below, must be called. An exception of on_process goes to
    the caller of do_work, and is a completion with ERROR.

    `clock()` gives elapsed seconds, as `elapsed_s` of a `millpond.clock.Clock`; a wall clock, when
    set forward, times out everything. It fails with None or OSError. It may not call the queue.

    `options` are limits by name, 0 for none: max_enqueued_time_s since `add`, max_processing_time_s
    since the attempt began, and max_retry_count attempts after the first. They can be read as
    attributes; set_option sets them. `window` bounds the items in progress, 0 for no bound (D17).
    `strays` counts the completions of what was not in progress (D7).
    """

    max_enqueued_time_s = max_processing_time_s = max_retry_count = 0

    def __init__(self, on_process, clock, capacity=16, window=0, **options):
        for call in (on_process, clock):
            if not callable(call):
                raise TypeError("{!r}: a callable expected".format(call))
        _number("capacity", capacity, 1, 32767)
        _number("window", window)
        self._judged = -1  # the moment of the last look for time-outs
        for name in options:
            self.set_option(name, options[name])
        self._on_process = on_process
        self._complete = self.complete
        self._clock = clock
        self._reading = self._time = 0  # the clock's last, and what it has advanced in all
        self.strays = self._item = 0  # `_item` is the one that on_process is called for
        self._last = _PENDING  # the last that the running do_work takes up
        self._working = self._removing = False
        self.window = window
        self.capacity = capacity
        self._make_slots(capacity)

    def _make_slots(self, n):
        self._next = array("h", list(range(1, n)) + [_FREE, 0, _LEAVING, _BUSY, _PENDING])
        self._prev = array("h", [_FREE] + list(range(n)) + [_LEAVING, _BUSY, _PENDING])
        self._where = array("b", [_FREE] * n)
        self._sizes = [n, 0, 0, 0]
        self._ids = list(range(1 - n, 1))
        self._messages = [None] * n
        self._on_complete = [None] * n
        self._contexts = [None] * n
        self._added = [0] * n  # moment of `add`
        self._began = [0] * n  # moment of the attempt; once that is over, the result
        self._attempts = [0] * n

    def __len__(self):
        return self.capacity - self._sizes[_FREE]

    def is_empty(self):
        """True when no item is pending, in progress or still to be told (SRS_09_031)."""
        return self._sizes[_FREE] == self.capacity

    def add(self, message, on_complete=None, context=None):
        """Append a message; return its id (1 or more), or 0: full, closed or the clock failed.

        `on_complete(message, result, reason, context)` is called once, after the item has left.
        Its id comes again only after 2**30 / capacity uses of its slot.
        """
        if message is None:
            raise TypeError("message None: any other object expected")
        if on_complete is not None and not callable(on_complete):
            raise TypeError("{!r}: a callable expected".format(on_complete))
        if self._clock is None or self._clock_fails() or not self._sizes[_FREE]:
            return 0
        slot = self._next[_FREE]
        item = self._ids[slot]
        item = item + self.capacity if item <= NO_LIMIT - self.capacity else slot + 1
        self._ids[slot] = item
        self._messages[slot] = message
        self._on_complete[slot] = on_complete
        self._contexts[slot] = context
        self._added[slot] = self._time
        self._attempts[slot] = 0
        self._move(slot, _PENDING, _PENDING)
        return item

    def do_work(self):
        """Time out what waits too long, then process what was pending at the start (D1, D13)."""
        if self._working or self._clock is None:
            return
        self._working = True
        self._item = 0
        try:
            self._round()
        finally:
            self._settle()

    def _settle(self):
        """End do_work, and the item whose on_process raised."""
        try:
            if self._item:
                self.complete(self._item, ERROR)
        finally:
            self._working = False

    def _round(self):
        self._last = self._prev[_PENDING]
        if not self._clock_fails() and self._time != self._judged:
            self._judged = self._time
            limit = self.max_enqueued_time_s
            if limit:
                self._judge(_PENDING, self._added, limit)
                self._judge(_BUSY, self._added, limit)
            limit = self.max_processing_time_s
            if limit:
                self._judge(_BUSY, self._began, limit)
        while self._sizes[_LEAVING]:
            self._finish(self._next[_LEAVING])
        while self._last != _PENDING and (not self.window or self._sizes[_BUSY] < self.window):
            slot = self._next[_PENDING]
            if self._clock_fails():
                self._began[slot] = ERROR
                self._finish(slot)
                continue
            self._move(slot, _BUSY, _BUSY)
            self._began[slot] = self._time
            self._attempts[slot] += 1
            self._item = self._ids[slot]
            self._on_process(self._item, self._messages[slot], self._complete, self._contexts[slot])
            self._item = 0

    def complete(self, item, result, reason=None):
        """Report how an attempt ended; False, and a stray, when it is not in progress (D7).

        RETRYABLE_ERROR brings the item back to pending, under its id, while its attempts are no
        more than max_retry_count, else it becomes ERROR (SRS_09_047, 048). Whichever attempt a
        report is of, it is taken for the one in progress.
        """
        if type(item) is not int:
            raise TypeError("item {!r}: an id expected".format(item))
        _number("result", result, 0, CANCELLED)
        slot = (item - 1) % self.capacity
        if self._ids[slot] != item or self._where[slot] != _BUSY:
            self.strays += 1
            return False
        if result == RETRYABLE_ERROR:
            if self._attempts[slot] <= self.max_retry_count:
                self._move(slot, _PENDING, _PENDING)
                return True
            result = ERROR
        self._began[slot] = result
        self._finish(slot, reason)
        return True

    def move_all_back_to_pending(self):
        """Link lost: what is in progress goes first again, the attempt not counted (D16).

        Called from a callback, it ends the processing of the do_work that is running.
        """
        slot = self._prev[_BUSY]
        while slot != _BUSY:
            self._last = _PENDING
            self._attempts[slot] -= 1
            self._move(slot, _PENDING, self._next[_PENDING])
            slot = self._prev[_BUSY]

    def remove_all(self):
        """Cancel every item there is, those in progress first (SRS_09_027, 028, D9, D15)."""
        if self._removing:
            return
        self._removing = True
        try:
            self._judge(_BUSY, self._added)
            self._judge(_PENDING, self._added)
            while self._sizes[_LEAVING]:
                self._finish(self._next[_LEAVING])
        finally:
            self._removing = False

    def close(self):
        """Cancel every item and refuse any further one (SRS_09_014); let go of the callbacks."""
        if self._clock is not None:
            self._clock = self._on_process = None
            self._removing = False  # what a running remove_all's callbacks have added goes too
        self.remove_all()

    def set_option(self, name, value):
        """Set the option `name`, one of OPTIONS, to 0 … 2**30-1; it holds at once (D11)."""
        if name not in OPTIONS:
            raise ValueError("option {!r}: one of {} expected".format(name, OPTIONS))
        _number(name, value)
        setattr(self, name, value)
        self._judged = -1  # look again, though the time be the same

    def options(self):
        """The options by name, in a new dict (SRS_09_065)."""
        options = {}
        for name in OPTIONS:
            options[name] = getattr(self, name)
        return options

    def _clock_fails(self):
        """Bring `_time` up to date; True when the clock has failed."""
        try:
            reading = self._clock()
        except OSError:
            reading = None
        if reading is None:
            return True
        if reading > self._reading:
            self._time += reading - self._reading
        self._reading = reading
        return False

    def _judge(self, where, since, limit=0):
        """Put in LEAVING what has been in a list for `limit` seconds, or all of it when 0."""
        slot = self._next[where]
        while slot != where:
            after = self._next[slot]
            if self._time - since[slot] >= limit:
                self._began[slot] = TIMEOUT if limit else CANCELLED
                self._move(slot, _LEAVING, _LEAVING)
            slot = after

    def _finish(self, slot, reason=None):
        """Free a slot, then tell whoever waits for its item; the result stands in `_began`."""
        message = self._messages[slot]
        on_complete = self._on_complete[slot]
        context = self._contexts[slot]
        self._messages[slot] = self._on_complete[slot] = self._contexts[slot] = None
        self._move(slot, _FREE, _FREE)
        if on_complete is not None:
            on_complete(message, self._began[slot], reason, context)

    def _move(self, slot, where, before):
        """Take a slot out of its list and put it in another, before a slot of it or at the end."""
        after = self._next[slot]
        prior = self._prev[slot]
        self._next[prior] = after
        self._prev[after] = prior
        if slot == self._last:
            self._last = prior
        prior = self._prev[before]
        self._next[prior] = self._prev[before] = slot
        self._prev[slot] = prior
        self._next[slot] = before
        self._sizes[self._where[slot]] -= 1
        self._sizes[where] += 1
        self._where[slot] = where


def _number(name, value, low=0, high=NO_LIMIT):
    if type(value) is not int:
        raise TypeError("{} {!r}: a whole number expected".format(name, value))
    within(name, value, high, low)
