"""MessageQueue against its model, whatever is done to it in whatever configuration (Q1-Q12)."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from millpond.message_queue import MAX_TTL_MS, OVERFLOWS
from tests_host.core.queue_driver import BY_INDEX, TOPICS, QueueDriver
from tests_host.models.conftest import examples
from tests_host.models.machine import Machine
from tests_host.models.queue_model import MAX_ID, RING, QueueModel

EXAMPLES = 250

times_to_begin = st.sampled_from((0, 1000, RING - 500, RING // 2 - 500))
first_ids = st.sampled_from((1, 0xFFFE, 0x3FFFFFFE, MAX_ID - 2, MAX_ID))
pauses = st.one_of(
    st.integers(0, 60),
    st.sampled_from((999, 10_000, 60_000, RING // 2 - 1, RING // 2, RING - 1)),
)
ttls = st.one_of(st.just(0), st.integers(1, 80), st.sampled_from((5000, MAX_TTL_MS)))
good = {"qos": st.integers(0, 2), "priority": st.integers(0, 3), "retained": st.integers(0, 1)}


class QueueMachine(Machine):
    make_real = QueueDriver
    make_model = QueueModel
    now = 0

    @staticmethod
    def marks(config):
        capacity, _, topics, overflow, first_id, feeds, locked = config
        marks = ("overflow", overflow, min(capacity, 2)), ("id", first_id), ("feeds", feeds, locked)
        return *marks, ("topics", topics), ("capacity", capacity)

    @initialize(
        capacity=st.one_of(st.integers(1, 6), st.sampled_from((10, 20))),
        slot_size=st.integers(1, 24),
        topics=st.integers(1, 6),
        overflow=st.sampled_from(OVERFLOWS),
        first_id=first_ids,
        feeds=st.booleans(),
        locked=st.sampled_from((0, 0, 1)),
        now=times_to_begin,
        pace=st.sampled_from((0, 1, 7, 30)),
    )
    def make(self, capacity, slot_size, topics, overflow, first_id, feeds, locked, now, pace):
        self.now = now
        self.pace = pace
        self.slot_size = slot_size
        self.start(capacity, slot_size, topics, overflow, first_id, int(feeds), locked)

    def enqueue(self, size, topic=0, given_as=0, qos=1, priority=1, retained=0, ttl=0):
        size = min(size, self.slot_size)
        self.now = (self.now + self.pace) % RING
        return self.do("enqueue", topic, size, given_as, qos, priority, retained, ttl, self.now)

    @rule(size=st.integers(0, 24), topic=st.integers(0, 2), ttl=ttls, **good)
    def put(self, size, topic, ttl, qos, priority, retained):
        self.enqueue(size, topic, 0, qos, priority, retained, ttl)

    @precondition(lambda self: self.pace and self.now > RING - 1000)
    @rule()
    def put_until_the_wrap(self):
        """The moment when its time is up is 0 on the ring, which is not "never" (Q7)."""
        self.enqueue(1, ttl=RING - (self.now + self.pace) % RING)

    @rule(priority=st.integers(0, 3), number=st.integers(2, 8), ttl=ttls)
    def put_several(self, priority, number, ttl):
        for _ in range(number):
            self.enqueue(24, priority=priority, ttl=ttl)

    @rule(
        topic=st.one_of(st.integers(0, len(TOPICS) - 1), st.integers(BY_INDEX - 1, BY_INDEX + 6)),
        given_as=st.integers(0, 5),
        size=st.integers(0, 26),
        qos=st.integers(-1, 3),
        priority=st.integers(-1, 4),
        ttl=st.sampled_from((0, 9, -1, MAX_TTL_MS, MAX_TTL_MS + 1)),
    )
    def put_anything(self, topic, given_as, size, qos, priority, ttl):
        """What is refused leaves all as it was (Q11)."""
        topic = min(topic, len(TOPICS) - 1) if topic < BY_INDEX else topic
        size = min(size, self.slot_size + 2)
        self.do("enqueue", topic, size, given_as, qos, priority, 0, ttl, self.now)

    @rule(given_as=st.integers(0, 5), index=st.integers(0, 3), size=st.integers(0, 24))
    def put_by_index(self, given_as, index, size):
        self.enqueue(size, BY_INDEX + index, given_as)

    @rule()
    def peek(self):
        self.do("peek", self.now)

    @rule()
    def pop(self):
        self.do("pop", self.now)

    @rule(number=st.integers(1, 4))
    def dequeue(self, number):
        for _ in range(number):
            self.do("dequeue", self.now)

    @rule(ms=pauses)
    def wait(self, ms):
        """Time goes on; by RING - 1 it goes back by 1 ms."""
        self.now = (self.now + ms) % RING
        self.do("oldest_ms", self.now)

    @rule()
    def expire(self):
        self.do("expire", self.now)
        assert self.real.rates() == self.model.rates()

    @rule(what=st.integers(0, 7))
    def seldom(self, what):
        if what == 0:
            self.do("clear", self.now)
        if what == 1:
            self.do("print_stats")
        if what == 2:
            self.do("dequeue_into_too_small", self.now)

    @precondition(lambda self: len(self.model) < self.model.capacity)
    @rule(priority=st.integers(0, 3), ttl=ttls)
    def fill(self, priority, ttl):
        while len(self.model) < self.model.capacity:
            self.enqueue(3, priority=priority, ttl=ttl)

    def finish(self):
        """Produced = delivered + dropped by reason + held, to the last message (Q8)."""
        while len(self.model):
            self.do("dequeue", self.now)
        assert self.real.rates() == self.model.rates()
        fates = self.model.fates
        assert sorted(fates) == list(range(1, self.model.offers + 1))
        assert "held" not in fates.values()
        stats = self.real.queue.stats
        assert stats.offered == self.model.offers == stats.dequeued + stats.dropped


def test_queue_does_what_its_model_does():
    run_state_machine_as_test(
        QueueMachine, settings=settings(max_examples=examples(EXAMPLES), stateful_step_count=40)
    )
