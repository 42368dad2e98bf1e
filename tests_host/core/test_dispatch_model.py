"""DispatchQueue against a model of plain lists: random walks whose callbacks re-enter at random.

A walk is a stream of dice. It is walked twice with the same dice, by the model and by the queue;
what each of them does decides what the dice are asked for next, so that the two diaries are equal
only if both did the same, callback by callback. The diary is proven by itself, too.
"""

from millpond.dispatch import RESULTS, SUCCESS, DispatchQueue
from tests_host.core.dispatch_kit import check
from tests_host.core.dispatch_model import Model


class Dice:
    """A linear congruential generator: the same numbers on CPython and MicroPython."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % n


class Walk:
    """One walk: `make` is Model or DispatchQueue. What happens goes into `diary`."""

    def __init__(self, make, seed, capacity, window, **options):
        self.dice = Dice(seed)
        self.time = 0
        self.failing = False
        self.depth = 0
        self.messages = 0
        self.ids = []
        self.numbers = {}  # of an id: how many were given before it
        self.diary = []
        self.make = make
        self.config = (capacity, window)
        self.queue = make(self.process, self.clock, capacity, window, **options)

    def clock(self):
        if self.failing:
            if self.dice.below(2):
                raise OSError(5)
            return None
        return self.time

    def note(self, *entry):
        self.diary.append(entry)

    def run(self, steps):
        # Some stretches fill the queue and some drain it.
        for step in range(steps):
            fills = (step // 25) % 3 != 2
            self.time += self.dice.below(4)
            if self.dice.below(40) == 0:
                self.time -= self.dice.below(30)
            self.failing = self.dice.below(25) == 0
            try:
                self.act(self.dice.below(100), 55 if fills else 25)
            except KeyError:
                self.note("raised")
            self.look()
        self.failing = False

    def finish(self):
        """Close, however often a callback raises."""
        while True:
            try:
                self.queue.close()
                break
            except KeyError:
                self.note("raised")
        self.look()

    def look(self):
        if self.make is DispatchQueue:
            check(self.queue)
        queue = self.queue
        self.note("held", len(queue), queue.is_empty(), queue.strays)

    def act(self, roll, adds):
        queue = self.queue
        if roll < adds:
            self.add()
        elif roll < 75:
            queue.do_work()
        elif roll < 90:
            self.complete()
        elif roll < 94:
            queue.move_all_back_to_pending()
        elif roll < 96:
            queue.remove_all()
        elif roll < 99:
            name = sorted(queue.options())[self.dice.below(3)]
            queue.set_option(name, self.dice.below(12))
            self.note("options", sorted(queue.options().items()))
        else:
            self.note("stray", queue.complete(self.dice.below(9) - 9, SUCCESS))

    def add(self):
        self.messages += 1
        message = self.messages
        on_complete = self.tell if self.dice.below(8) else None
        item = self.queue.add(message, on_complete, -message)
        if item:
            assert item not in self.numbers or self.make is Model
            self.numbers[item] = len(self.ids)
            self.ids.append(item)
        self.note("add", message, item != 0, on_complete is not None)

    def complete(self):
        """Of any item there ever was, mostly a recent one."""
        if not self.ids:
            return
        back = self.dice.below(40 if self.dice.below(4) == 0 else 6)
        number = max(0, len(self.ids) - 1 - back)
        result = self.dice.below(5)
        done = self.queue.complete(self.ids[number], result, number)
        self.note("complete", number, RESULTS[result], done)

    def process(self, item, message, complete, context):
        assert complete == self.queue.complete and context == -message
        self.note("process", self.numbers[item], message)
        roll = self.dice.below(100)
        if roll < 40:
            result = self.dice.below(5)
            self.note("at once", RESULTS[result], complete(item, result, "at once"))
        self.meddle()
        if roll >= 97:
            raise KeyError(message)

    def tell(self, message, result, reason, context):
        assert context == -message
        self.note("told", message, RESULTS[result], reason)
        self.meddle()
        if self.dice.below(60) == 0:
            raise KeyError(message)

    def meddle(self):
        """What a callback does to the queue: half of them something, a few of them much."""
        if self.depth == 4:
            return
        self.depth += 1
        try:
            while self.dice.below(2):
                if self.dice.below(60) == 0:
                    self.note("close")
                    self.queue.close()
                else:
                    self.act(self.dice.below(100), 35)
        finally:
            self.depth -= 1


def compare(model, queue):
    for n, (one, other) in enumerate(zip(model.diary, queue.diary)):
        if one != other:
            raise AssertionError(
                "step {}: the model did {}, the queue {}, after {}".format(
                    n, one, other, model.diary[max(0, n - 8) : n]
                )
            )
    assert len(model.diary) == len(queue.diary)


def prove(diary):
    """Each message that was taken and has a callback is told once; none is otherwise."""
    waiting = []
    for entry in diary:
        if entry[0] == "told":
            waiting.remove(entry[1])
            assert entry[2] != "RETRYABLE_ERROR"
        elif entry[0] == "add" and entry[2] and entry[3]:
            waiting.append(entry[1])
    assert waiting == []
    assert diary[-1][:3] == ("held", 0, True)


def walk(capacity, window, steps, walks):
    kinds = set()
    for n in range(walks):
        seed = 7919 * capacity + 31 * window + n
        pair = []
        for make in (Model, DispatchQueue):
            one = Walk(
                make,
                seed,
                capacity,
                window,
                max_enqueued_time_s=(0, 30, 12)[n % 3],
                max_processing_time_s=(0, 9)[n % 2],
                max_retry_count=n % 4,
            )
            one.run(steps)
            one.finish()
            pair.append(one)
        compare(*pair)
        prove(pair[1].diary)
        for entry in pair[1].diary:
            kinds.add(entry[2] if entry[0] == "told" else entry[0])
    expected = {"add", "process", "at once", "complete", "raised", "close", "options", "stray"}
    expected |= {"SUCCESS", "ERROR", "TIMEOUT", "CANCELLED"}
    assert expected <= kinds, expected - kinds


def test_D14_walks_of_a_queue_of_1():
    walk(1, 0, 150, 20)


def test_D14_walks_of_a_queue_of_2():
    walk(2, 1, 150, 12)


def test_D14_walks_of_a_queue_of_3():
    walk(3, 0, 150, 12)


def test_D14_walks_of_a_queue_of_5_with_a_window():
    """D17."""
    walk(5, 3, 150, 12)


def test_D14_walks_of_a_queue_of_16():
    walk(16, 0, 200, 12)


def test_D14_walks_of_a_queue_of_40_with_a_window():
    """D17."""
    walk(40, 7, 200, 12)
