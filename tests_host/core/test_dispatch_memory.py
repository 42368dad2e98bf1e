"""DispatchQueue allocates nothing once made, and no item costs more because others are held."""

from millpond.dispatch import ERROR, RETRYABLE_ERROR, SUCCESS, DispatchQueue
from tests_host.core.dispatch_kit import check
from tests_host.kit import leaves_the_heap_alone, no_alloc

TOP = (1 << 30) - 1


class Bench:
    """A queue whose callbacks allocate nothing, and a step that does everything a queue does."""

    def __init__(self, capacity=8, **options):
        self.time = 0
        self.result = SUCCESS
        self.told = 0
        self.item = 0
        self.read = self.clock
        self.tell = self.on_complete
        self.queue = DispatchQueue(self.process, self.read, capacity, **options)

    def clock(self):
        return self.time

    def process(self, item, message, complete, context):
        self.item = item
        if self.result >= 0:
            complete(item, self.result, context)

    def on_complete(self, message, result, reason, context):
        self.told += 1

    def step(self):
        """Each way through the queue once; 7 items are told."""
        queue = self.queue
        self.result = SUCCESS
        queue.add("a", self.tell, self)
        queue.do_work()
        self.result = RETRYABLE_ERROR
        queue.add("retried", self.tell)
        queue.do_work()
        queue.do_work()  # the second attempt is its last
        self.result = -1
        queue.add("moved back", self.tell)
        queue.do_work()
        queue.move_all_back_to_pending()
        queue.do_work()
        queue.complete(self.item, ERROR, "reason")
        queue.complete(self.item, ERROR)
        queue.add("in progress", self.tell)
        queue.do_work()
        queue.add("pending", self.tell)
        self.time += 10
        queue.do_work()
        queue.add("cancelled", self.tell)
        queue.do_work()
        queue.add("cancelled too", self.tell)
        queue.set_option("max_retry_count", 1)
        queue.remove_all()


def bench(capacity=8):
    one = Bench(capacity, max_enqueued_time_s=10, max_processing_time_s=9, max_retry_count=1)
    one.step()
    check(one.queue)
    assert one.told == 7 and one.queue.is_empty() and one.queue.strays == 1
    return one


def full_turns(one):
    """So many items that each slot has been used several times."""
    for _ in range(30):
        one.step()


def test_SRS_09_017_nothing_is_allocated_with_the_heap_locked():
    """SRS_09_018: so there is nothing to lack memory for."""
    one = bench()
    no_alloc(one.step)
    no_alloc(lambda: full_turns(one))
    check(one.queue)
    assert one.told == 7 * 32


def test_SRS_09_017_nothing_is_taken_from_the_heap_even_for_a_moment():
    one = bench()
    leaves_the_heap_alone(lambda: full_turns(one))
    check(one.queue)


def test_a_refusal_and_a_failing_clock_allocate_nothing():
    one = Bench(2)
    one.result = -1

    def refused():
        one.queue.add("a", one.tell)
        one.queue.add("b", one.tell)
        assert one.queue.add("c", one.tell) == 0
        one.time = None
        assert one.queue.add("d", one.tell) == 0
        one.queue.do_work()
        one.time = 5

    refused()
    no_alloc(refused)
    check(one.queue)
    assert one.told == 4


def test_ids_at_the_last_small_int_allocate_nothing():
    one = bench(3)
    for slot in range(3):
        one.queue._ids[slot] = TOP - 3 - (TOP - 3 - slot - 1) % 3
    no_alloc(lambda: full_turns(one))
    assert max(one.queue._ids) < 1000  # they have begun again


def test_a_clock_far_from_its_start_allocates_nothing():
    """Times are kept as what has passed: up to 34 years of seconds are small ints."""
    one = bench()
    one.time = TOP - 1000
    one.queue.do_work()
    no_alloc(lambda: full_turns(one))
    assert one.time > TOP - 1000


def moves(queue, call):
    """How many moves of a slot from list to list a call makes."""
    count = [0]
    real = queue._move

    def counted(*args):
        count[0] += 1
        real(*args)

    queue._move = counted
    call()
    queue._move = real
    return count[0]


def test_the_work_for_an_item_does_not_grow_with_the_number_held():
    """Each event of an item is one move; nothing is searched for."""
    for held in (10, 1000, 5000):
        one = Bench(held + 1)
        one.result = -1
        for n in range(held):
            one.queue.add(n)
        one.queue.do_work()
        assert moves(one.queue, lambda one=one: one.queue.add("a")) == 1
        assert moves(one.queue, one.queue.do_work) == 1
        assert moves(one.queue, lambda one=one: one.queue.complete(one.item, SUCCESS)) == 1


def test_D12_all_items_are_looked_at_once_for_each_moment():
    """Not at each do_work of it; but again when a limit has changed."""
    one = Bench(4, max_enqueued_time_s=9)
    looks = [0]
    real = one.queue._judge

    def counted(*args):
        looks[0] += 1
        real(*args)

    one.queue._judge = counted
    one.queue.do_work()
    assert looks == [2]  # pending, in progress
    one.queue.do_work()
    assert looks == [2]
    one.time = 1
    one.queue.do_work()
    assert looks == [4]
    one.queue.set_option("max_enqueued_time_s", 8)
    one.queue.do_work()
    assert looks == [6]
