"""PagedRing against its model, whatever is done to it in whatever configuration (R1-R11)."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from tests_host.core.ring_driver import RingDriver
from tests_host.models.conftest import examples
from tests_host.models.machine import Machine
from tests_host.models.ring_model import HEADER, RingModel

EXAMPLES = 300

lanes = st.integers(0, 3)
tags = st.sampled_from((0, 1, 0x1234, 65535))
packet_ids = st.sampled_from((1, 255, 256, 65535))
# Bytes, or for a float that share of what fills a page.
sizes = st.one_of(st.integers(0, 12), st.sampled_from((0.4, 0.5, 1.0)))


class RingMachine(Machine):
    make_real = RingDriver
    make_model = RingModel

    @staticmethod
    def marks(config):
        pages, page_size, lanes, _, locked = config
        return ("locked", locked), ("lanes", lanes, min(pages, 4)), ("page size", page_size)

    @initialize(
        pages=st.integers(3, 7),
        page_size=st.sampled_from((64, 65, 71, 96, 255, 256, 300, 65536)),
        lanes=st.integers(1, 4),
        spare=st.sampled_from((0, 1, 63)),
        locked=st.sampled_from((0, 0, 1)),
    )
    def make(self, pages, page_size, lanes, spare, locked):
        self.largest = page_size - HEADER
        self.start(pages, page_size, lanes, spare, locked)

    def size(self, size):
        """A size in bytes; a half is such that two messages fill a page to its last byte."""
        if not isinstance(size, float):
            return min(size, self.largest)
        return max(0, int((self.largest + HEADER) * size) - HEADER)

    def lane(self, lane):
        return lane % len(self.model.lanes)

    @rule(size=sizes, lane=lanes, tag=tags)
    def append(self, size, lane, tag):
        self.do("append", self.size(size), self.lane(lane), tag)

    @rule(size=sizes, lane=lanes, number=st.integers(2, 9))
    def append_several(self, size, lane, number):
        for n in range(number):
            self.do("append", self.size(size), self.lane(lane), n)

    @rule(lane=lanes, step=st.integers(0, 3), number=st.integers(5, 20))
    def fill(self, lane, step, number):
        """Messages of half a page in turn on several lanes."""
        for _ in range(number):
            self.do("append", self.size(0.5), self.lane(lane), lane)
            lane += step

    @rule(lane=lanes)
    def append_to_the_last_byte(self, lane):
        """Exactly the room there is in the work page, and then no room is left."""
        lane = self.lane(lane)
        room = self.model.room(self.model.lanes[lane])
        if room:
            assert self.do("append", room, lane, 7) == 1
            assert self.real.ring.room(lane) == 0

    @rule(
        what=st.integers(0, 7), lane=st.integers(-1, 4), packet_id=st.sampled_from((0, -1, 65536))
    )
    def refused(self, what, lane, packet_id):
        """Bad sizes, lanes, tags and packet ids are refused, and all is as it was (R8)."""
        if what == 0:
            self.do("append", self.largest + 1, self.lane(lane), 0)
        if what == 1:
            self.do("reserve", self.largest + 1, self.lane(lane))
        if what == 2:
            self.do("reserve", -1, self.lane(lane))
        if what == 3:
            self.do("append", 1, self.lane(lane), packet_id or 65537)
        if what == 4:
            self.do("append", 1, lane, 0)
            self.do("commit", 0, lane, 0)
        if what == 5:
            self.do("sent", packet_id)
        if what == 6:
            self.do("ack", packet_id)
        if what == 7:
            self.do("commit", 0, self.lane(lane), packet_id)

    @rule(size=sizes, lane=lanes)
    def reserve(self, size, lane):
        self.do("reserve", self.size(size), self.lane(lane))

    @rule(lane=lanes, drops=st.booleans())
    def reserve_behind_the_head(self, lane, drops):
        """The page with the reservation may be the one that is read, and be read to its end."""
        lane = self.lane(lane)
        self.do("append", 3, lane, 1)
        self.do("reserve", 5, lane)
        self.do("head")
        if drops:
            self.do("drop", "poison")

    @rule(lane=lanes)
    def open_a_page_for_nothing(self, lane):
        self.do("reserve", self.largest, self.lane(lane))
        self.do("cancel", self.lane(lane))

    @precondition(lambda self: self.open())
    @rule(share=st.sampled_from((1, 0, 0.5, 1, 2)), which=lanes, tag=tags)
    def commit(self, share, which, tag):
        """Nothing, half, all, or more than was reserved."""
        lane, size = self.open()[which % len(self.open())]
        self.do("commit", size + 1 if share == 2 else int(size * share), lane, tag)

    @precondition(lambda self: self.open())
    @rule(which=lanes)
    def cancel(self, which):
        self.do("cancel", self.open()[which % len(self.open())][0])

    def open(self):
        """(lane, size) of the open reservations."""
        lanes = enumerate(self.model.lanes)
        return [(n, len(lane.open[1])) for n, lane in lanes if lane.open]

    @rule()
    def head(self):
        self.do("head")

    @precondition(lambda self: not self.model.in_flight)
    @rule(packet_id=packet_ids)
    def send(self, packet_id):
        self.do("head")
        self.do("sent", packet_id)

    @precondition(lambda self: self.model.in_flight)
    @rule(packet_id=packet_ids)
    def ack(self, packet_id):
        """Another id is a stray, unless it is the one; the right one is right once."""
        self.do("ack", packet_id)
        self.do("ack", self.model.in_flight)
        self.do("head")

    @rule(number=st.integers(1, 9))
    def deliver(self, number):
        for n in range(number):
            self.deliver_one(n + 1)

    def deliver_one(self, packet_id):
        if self.model.in_flight:
            self.do("ack", self.model.in_flight)
        if self.do("head"):
            self.do("sent", packet_id)
            self.do("ack", packet_id)

    @precondition(lambda self: self.model.pinned)
    @rule()
    def rewind(self):
        self.do("rewind")
        self.do("head")

    @rule(reason=st.sampled_from(("poison", "expired")))
    def drop(self, reason):
        self.do("drop", reason)

    @rule(tag=st.sampled_from((0, 65535, 0x1000, 65536)))
    def retag(self, tag):
        self.do("retag", tag)

    @rule(seconds=st.sampled_from((1, 60, 1 << 24)))
    def wait(self, seconds):
        self.do("wait", seconds)

    @rule(lane=lanes, seconds=st.sampled_from((1, 59, 60, 100, 0)))
    def limit_age(self, lane, seconds):
        self.do("limit_age", self.lane(lane), seconds)

    @rule(seconds=st.sampled_from((0, 1, 60)))
    def expire(self, seconds):
        self.do("wait", seconds)
        self.do("expire")

    @rule(lane=lanes, off=st.integers(-1, 1))
    def expire_at_the_limit(self, lane, off):
        """The limit is 1 s below, at, or above the age of the lane's oldest page."""
        pages = self.model.lanes[self.lane(lane)].pages()
        if pages and self.model.seconds - pages[0].born + off > 0:
            age = self.model.seconds - pages[0].born
            self.do("limit_age", self.lane(lane), age + off)
            self.do("expire")

    def finish(self):
        """Stored = acknowledged + dropped by reason + held, to the last message (R11)."""
        for lane in range(len(self.model.lanes)):
            self.do("cancel", lane)
        while self.do("head"):
            self.deliver_one(9)
        ring = self.real.ring
        assert ring.messages() == ring.bytes_held() == 0
        assert self.model.told == sum(ring.stolen) + sum(ring.expired) + sum(ring.dropped)


def test_ring_does_what_its_model_does():
    run_state_machine_as_test(
        RingMachine, settings=settings(max_examples=examples(EXAMPLES), stateful_step_count=40)
    )
