"""DispatchQueue against its model, whatever its callbacks do to it (seed 002, D1-D17)."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from tests_host.core.dispatch_driver import DispatchDriver
from tests_host.models.conftest import examples
from tests_host.models.dispatch_model import DispatchModelDriver
from tests_host.models.machine import Machine

EXAMPLES = 400

results = st.integers(0, 4)
limits = st.tuples(
    st.sampled_from((0, 6, 20)), st.sampled_from((0, 4, 9)), st.sampled_from((0, 1, 3))
)
REFUSED = (
    ("add_nothing",),
    ("add_with_no_callable",),
    ("complete_id", "1", 0),
    ("complete_id", 1, 5),
    ("complete_id", 0, 0),
    ("set_option", 3, 1),
    ("set_option", 0, -1),
)
options = (0, 0), (0, 4), (1, 0), (1, 2), (2, 0), (2, 2)

# What callbacks do: an attempt mostly ends at once or not at all, and either callback may meddle.
own = st.tuples(st.just("own"), st.sampled_from((0, 1, 2, 2, 2, 3, 4)))
adding = st.tuples(st.just("add"), st.integers(0, 3))
meddling = st.one_of(
    adding,
    st.tuples(st.just("complete"), st.integers(0, 3), results),
    st.sampled_from((("move_all_back_to_pending",), ("remove_all",), ("do_work",))),
    st.just(("fail",)),
    st.sampled_from((("close",), ("wait", 1), ("wait", 5), ("set_failure", 1), ("set_failure", 0))),
    st.sampled_from([("set_option", *one) for one in options]),
)
meddlings = st.lists(meddling, max_size=2).map(tuple)
plans = st.tuples(
    st.one_of(
        st.tuples(own),
        st.tuples(own, meddling),
        st.tuples(meddling, own),
        st.tuples(meddling),
        st.tuples(meddling, meddling),
    ),
    st.one_of(st.tuples(adding), meddlings, st.just((("add", 0), ("close",)))),
    st.sampled_from((1, 1, 1, 0)),
)


class DispatchMachine(Machine):
    make_real = DispatchDriver
    make_model = DispatchModelDriver

    @staticmethod
    def marks(config):
        capacity, window, limits, _ = config
        return ("capacity", min(capacity, 4)), ("window", window > 0), ("limits", limits)

    @initialize(
        capacity=st.one_of(st.integers(1, 5), st.just(12)),
        window=st.integers(0, 3),
        limits=limits,
        plans=st.lists(plans, min_size=1, max_size=3).map(tuple),
    )
    def make(self, capacity, window, limits, plans):
        quiet = ((), (), 1)
        self.start(capacity, window, limits, (quiet, *plans))

    @rule(plan=st.integers(0, 3), number=st.integers(1, 4))
    def add(self, plan, number):
        for n in range(number):
            self.do("add", plan + n)

    @rule(plan=st.integers(0, 3), number=st.integers(1, 6))
    def add_and_work(self, plan, number):
        for _ in range(number):
            self.do("add", plan)
        self.do("do_work")

    @rule(seconds=st.integers(0, 6))
    def work_later(self, seconds):
        self.do("wait", seconds)
        self.do("do_work")

    @rule(back=st.integers(0, 6), result=results)
    def complete(self, back, result):
        self.do("complete", back, result)

    @rule(result=st.sampled_from((0, 2)))
    def complete_several(self, result):
        self.complete_all(result)

    def complete_all(self, result):
        for back in reversed(range(min(6, len(self.model.order)))):
            self.do("complete", back, result)

    @rule(retries=st.integers(0, 4))
    def link_lost(self, retries):
        """What was in progress is tried again, as often as if the link had not been lost."""
        self.do("move_all_back_to_pending")
        self.do("do_work")
        for _ in range(retries):
            self.complete_all(2)
            self.do("do_work")

    @rule(what=st.integers(0, 12), option=st.sampled_from(options))
    def seldom(self, what, option):
        if what == 0:
            self.do("remove_all")
        if what in (1, 2):
            self.do("do_work")
            self.do("set_option", *option)
            self.do("do_work")
        if what == 3:
            self.do("wait", -3)
        if what in (4, 5):
            self.do("set_failure", what - 3)
            self.do("add", 0)
            self.do("do_work")
            self.do("set_failure", 0)
        if what > 5:
            self.do(*REFUSED[what - 6])

    def finish(self):
        """Taken = told by result + unheard, to the last message."""
        while ("raised",) in self.do("close"):
            pass
        self.do("add", 0)
        self.do("do_work")
        driver = self.real
        assert driver.queue.is_empty()
        assert len(driver.order) == sum(driver.told_by_result) + driver.unheard


def test_dispatch_queue_does_what_its_model_does():
    limits = settings(max_examples=examples(EXAMPLES), stateful_step_count=30)
    run_state_machine_as_test(DispatchMachine, settings=limits)
