"""Packer: intake to batches to ring (SPEC §5), with the real queue, ring and writers."""

from millpond.batch import F7Writer, JsonWriter, decode, interpret
from millpond.clock import Clock
from millpond.ledger import MALFORMED, REFUSED, STOLEN, TOO_LARGE, Ledger
from millpond.message import CRITICAL, HIGH, LOW, NORMAL, TAG_BATCH, TAG_UNSTAMPED, make_tag
from millpond.message_queue import MessageQueue
from millpond.packer import Packer
from millpond.paged_ring import PagedRing
from millpond.reading import FLOAT32, INT16, UINT8, pack_reading
from tests_host.core.batch_kit import START
from tests_host.kit import no_alloc, raises

DATA = "millpond/m1/data"
ALERT = "millpond/m1/alert"


class Line:
    """A queue, a ring and a packer between them, on a clock that the test moves."""

    def __init__(self, size=49152, page_size=4096, slots=128, unix=START, json=False, **options):
        self.ms = 0
        self.clock = Clock(lambda: self.ms)
        if unix:
            self.clock.set_unix(unix)
        self.ledger = Ledger()
        self.queue = MessageQueue(slots, slot_size=96)
        self.ring = PagedRing(size, page_size, lanes=4, on_drop=self.ledger.lost)
        self.packer = Packer(
            self.queue,
            self.ring,
            self.clock,
            self.ledger,
            JsonWriter if json else lambda: F7Writer(1, 2),
            DATA,
            **options,
        )
        self.data_topic = self.queue.topics.index(DATA)
        self.record = bytearray(96)
        self.views = [memoryview(self.record)[:size] for size in range(97)]
        self.packet_id = 0

    def reading(self, tag_id, value=7, priority=NORMAL, kind=FLOAT32):
        self.clock.now()
        length = pack_reading(self.record, 0, tag_id, kind, value, self.clock.seconds)
        return self.queue.enqueue(self.data_topic, self.views[length], priority=priority)

    def readings(self, first, last, **options):
        for tag_id in range(first, last + 1):
            assert self.reading(tag_id, **options)

    def alert(self, text, priority=NORMAL, **options):
        assert self.queue.enqueue(ALERT, text, priority=priority, **options)

    def poll(self, link_up=True, **options):
        taken = self.packer.poll(self.clock.now(), link_up, **options)
        self.ring.check()
        return taken

    def next(self):
        """Deliver the ring's head: (lane, tag, payload), or None."""
        ring = self.ring
        if not ring.head():
            return None
        at, length, tag, lane = ring.head_at, ring.head_length, ring.head_tag, ring.head_lane
        tag = self.packer.prepare(at, length, tag)
        payload = bytes(ring.buffer[at : at + length])
        self.packet_id += 1
        ring.sent(self.packet_id)
        ring.ack(self.packet_id)
        self.ledger.delivered(at, length, tag)
        return lane, tag, payload

    def drain(self):
        """Deliver everything: for each message its lane and its tag ids, or its text."""
        seen = []
        while True:
            message = self.next()
            if not message:
                return seen
            lane, tag, payload = message
            if tag & TAG_BATCH:
                payload = [value[0] for group in decode(payload) for value in group[3]]
            seen.append((lane, payload))

    def stored(self):
        """How many items are in the ring, found by walking over its pages."""
        ring = self.ring
        buf = ring.buffer
        items = 0
        for lane, work in enumerate(ring._work):
            runs = [(page, ring._read[page], ring._unread[page]) for page in ring.lists.used(lane)]
            runs.append((work[3], 0, work[2]))
            for page, read, count in runs:
                at = page * ring.page_size + read + 8
                for _ in range(count):
                    length = buf[at - 2] << 8 | buf[at - 1]
                    items += self.ledger.items_in(at, length, buf[at - 6] << 8 | buf[at - 5])
                    at += length + 8
        return items

    def accounts(self):
        ledger = self.ledger
        return (
            ledger.items_taken,
            ledger.items_delivered,
            ledger.lost_in_all(),
            ledger.held(),
        )


def test_readings_go_into_one_batch_with_the_packers_tag_and_the_time_of_each():
    line = Line(qos=2)
    line.reading(1, 23.5)
    line.reading(2, -3, kind=INT16)
    line.ms = 1000
    line.reading(3, 1, kind=UINT8)
    assert line.poll() == 3
    assert line.next() is None and line.packer.open_readings() == 3
    line.packer.flush()
    assert line.packer.open_readings() == 0
    lane, tag, payload = line.next()
    assert lane == NORMAL
    assert tag == make_tag(line.data_topic, 2, False) | TAG_BATCH
    first, second = decode(payload)
    assert first[:3] == (START, 1, 2) and second[:3] == (START + 1, 1, 2)
    assert interpret(FLOAT32, 4, first[3][0][3]) == (23.5,)
    assert interpret(INT16, 2, first[3][1][3]) == (-3,)
    assert second[3] == [(3, 0, 1, b"\x01")]
    assert line.next() is None


def test_link_up_closes_a_batch_at_max_readings():
    line = Line(max_readings=3)
    line.readings(1, 7)
    assert line.poll() == 7
    assert line.drain() == [(NORMAL, [1, 2, 3]), (NORMAL, [4, 5, 6])]
    assert line.packer.open_readings() == 1


def test_link_up_closes_a_batch_at_max_age_counted_from_its_first_reading():
    line = Line(max_age_ms=5000)
    line.ms = 400
    line.reading(1)
    line.poll()
    line.ms = 5000
    line.reading(2)
    line.poll()
    line.ms = 5399
    line.poll()
    assert line.drain() == []
    line.ms = 5400
    assert line.poll() == 0
    assert line.drain() == [(NORMAL, [1, 2])]
    line.reading(3)
    line.poll()
    line.ms = 10399
    line.poll()
    assert line.drain() == []


def test_age_of_a_batch_survives_the_wrap_of_the_ticks():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    line = Line(max_age_ms=5000)
    line.ms = (1 << 30) - 2000
    line.clock = line.packer._clock = Clock(lambda: line.ms)
    line.reading(1)
    line.poll()
    line.ms = (1 << 30) + 2999
    line.poll()
    assert line.drain() == []
    line.ms += 1
    line.poll()
    assert line.drain() == [(NORMAL, [1])]


def test_each_lane_has_its_own_batch_and_a_higher_lane_goes_first():
    line = Line()
    for tag_id in range(8):
        line.reading(tag_id, priority=tag_id % 4)
    assert line.poll() == 8
    line.packer.flush()
    assert line.drain() == [(CRITICAL, [3, 7]), (HIGH, [2, 6]), (NORMAL, [1, 5]), (LOW, [0, 4])]


def test_link_down_fills_a_page_to_the_last_reading_that_fits():
    # A batch head of 5 bytes, a group head of 14 and 9 bytes a float reading, in 4088 bytes.
    fit = (4088 - 5 - 14) // 9
    assert fit == 452
    line = Line(slots=600, max_readings=3, max_age_ms=10)
    line.readings(1, fit)
    assert line.poll(link_up=False) == fit
    line.ms = 100000
    line.poll(link_up=False)
    assert line.ring.messages() == 0 and line.packer.open_readings() == fit
    line.reading(999)
    line.poll(link_up=False)
    assert line.ring.messages() == 1 and line.packer.open_readings() == 1
    assert line.drain() == [(NORMAL, list(range(1, fit + 1)))]


def test_link_down_uses_the_rest_of_a_page_that_has_messages_already():
    # 8 + 28 bytes are in use and 8 more for the next header: 4052 - 5 - 14 bytes for readings.
    fit = (4052 - 5 - 14) // 9
    assert fit == 448
    line = Line(slots=600)
    line.reading(1)
    line.poll()
    line.packer.flush()
    line.readings(2, 449)
    line.poll(link_up=False)
    assert line.ring.pages_free() == 11 and line.ring.messages() == 1
    line.reading(450)
    line.poll(link_up=False)
    assert line.ring.pages_free() == 10 and line.ring.messages() == 2
    line.packer.flush()
    assert line.drain() == [
        (NORMAL, [1]),
        (NORMAL, list(range(2, 450))),
        (NORMAL, [450]),
    ]


def test_link_coming_up_closes_what_the_outage_left_open():
    line = Line(max_readings=50)
    line.readings(1, 60)
    line.poll(link_up=False)
    assert line.drain() == []
    line.reading(61)
    line.poll()
    assert line.drain() == [(NORMAL, list(range(1, 61)))]
    assert line.packer.open_readings() == 1
    line.poll()
    assert line.packer.open_readings() == 1


def test_a_message_passes_as_it_is_after_the_readings_before_it():
    line = Line()
    line.readings(1, 2)
    line.alert(b"hot", qos=0, retained=True)
    line.reading(3)
    line.alert(b"low", priority=LOW)
    line.poll()
    line.packer.flush()
    tags = []
    seen = []
    while line.ring.head():
        lane, tag, payload = line.next()
        tags.append(tag)
        seen.append(payload if not tag & TAG_BATCH else decode(payload)[0][3][0][0])
    assert seen == [1, b"hot", 3, b"low"]
    alert = line.queue.topics.index(ALERT)
    batch = make_tag(line.data_topic, 1, False) | TAG_BATCH
    assert tags == [batch, make_tag(alert, 0, True), batch, make_tag(alert, 1, False)]


def test_a_message_leaves_the_batches_of_other_lanes_open():
    line = Line()
    line.reading(1, priority=LOW)
    line.alert(b"hot", priority=CRITICAL)
    line.poll()
    assert line.drain() == [(CRITICAL, b"hot")]
    assert line.packer.open_readings() == 1


def test_messages_of_every_length_are_copied_whole_at_every_place_in_a_page():
    for page_size in (256, 264, 300, 104, 100, 96, 80):
        line = Line(size=page_size * 200, page_size=page_size, slots=1)
        sent = []
        for length in list(range(min(97, page_size - 7))) * 2:
            text = bytes((length + i) & 0xFF for i in range(length))
            sent.append((NORMAL, text))
            line.alert(text)
            assert line.poll(link_up=False) == 1
        assert line.drain() == sent


def test_message_uses_the_rest_of_a_page_that_would_not_hold_a_whole_slot():
    line = Line(size=10 * 256, page_size=256)
    line.ring.append(bytes(180), NORMAL, 0)
    assert line.ring.room(NORMAL) == 60
    line.alert(b"x" * 60)
    line.poll()
    assert line.ring.pages_free() == 9
    assert line.drain() == [(NORMAL, bytes(180)), (NORMAL, b"x" * 60)]


def test_message_too_large_for_a_page_is_counted_and_does_not_block():
    line = Line(size=640, page_size=64)
    line.alert(b"x" * 57)
    line.alert(b"y" * 56)
    assert line.poll() == 2
    assert line.drain() == [(NORMAL, b"y" * 56)]
    assert line.ledger.items_lost[TOO_LARGE] == [0, 1, 0, 0]
    assert line.accounts() == (2, 1, 1, 0)


def test_reading_too_large_for_a_page_is_counted_and_does_not_block():
    # 56 bytes: batch head 5, group head 14, value head 5, so 32 bytes of values.
    line = Line(size=640, page_size=64)
    line.reading(1, [0] * 33, kind=UINT8)
    line.reading(2, [0] * 32, kind=UINT8)
    assert line.poll() == 2
    line.packer.flush()
    assert line.drain() == [(NORMAL, [2])]
    assert line.ledger.items_lost[TOO_LARGE] == [0, 1, 0, 0]
    assert line.accounts() == (2, 1, 1, 0)


def test_what_is_no_record_on_the_data_topic_is_counted_and_does_not_block():
    line = Line()
    for junk in (b"", b"12345678", b"\0\1\0\0\0\0\0\7\2\0\0\0\0", b"{}" * 20):
        assert line.queue.enqueue(line.data_topic, junk, priority=HIGH)
    line.reading(1, priority=HIGH)
    assert line.poll() == 5
    line.packer.flush()
    assert line.drain() == [(HIGH, [1])]
    assert line.ledger.items_lost[MALFORMED] == [0, 0, 4, 0]
    assert line.accounts() == (5, 1, 4, 0)


def test_poll_takes_no_more_than_its_limit():
    line = Line()
    line.readings(1, 5)
    assert line.poll(limit=2) == 2
    assert len(line.queue) == 3
    assert line.poll(limit=0) == 0
    assert line.poll() == 3
    assert line.poll() == 0


def test_poll_ends_even_when_items_come_as_fast_as_they_go():
    line = Line()
    line.readings(1, 2)
    pop = line.queue.pop

    def pop_and_enqueue(now):
        pop(now)
        line.reading(9)

    line.queue.pop = pop_and_enqueue
    assert line.poll() == 2
    assert len(line.queue) == 2


def test_expired_readings_are_left_to_the_queue():
    line = Line()
    line.reading(1)
    length = pack_reading(line.record, 0, 2, UINT8, 1, 0)
    line.queue.enqueue(line.data_topic, line.views[length], ttl_ms=10)
    line.ms = 20
    assert line.poll() == 1
    assert line.queue.stats.expired == 1 and line.accounts() == (1, 0, 0, 1)


def full_of_critical(line):
    """Fill the ring with critical messages, which nothing lower can push out."""
    while line.ring.pages_free() or line.ring.room(CRITICAL) >= 96:
        line.ring.append(b"c" * 96, CRITICAL, 0)


def test_what_the_ring_refuses_stays_in_the_intake_and_its_rule_counts():
    line = Line(size=3 * 256, page_size=256, slots=4)
    full_of_critical(line)
    line.readings(1, 2)
    line.alert(b"hot", priority=HIGH)
    assert line.poll() == 0
    assert line.packer.blocked and len(line.queue) == 3
    assert line.accounts() == (0, 0, 0, 0)
    line.reading(3)
    assert line.reading(4) == 0
    assert line.queue.stats.refused == 1
    while line.ring.head() and line.ring.head_lane == CRITICAL:
        line.ring.sent(1)
        line.ring.ack(1)
    assert line.poll() == 4
    assert not line.packer.blocked
    line.packer.flush()
    assert line.drain() == [(HIGH, b"hot"), (NORMAL, [1, 2, 3])]
    assert line.accounts() == (4, 4, 0, 0)


def test_open_batches_of_lower_lanes_do_not_shut_a_higher_one_out():
    line = Line(size=3 * 256, page_size=256)
    for lane in (LOW, NORMAL, HIGH):
        line.reading(lane, priority=lane)
    line.poll(link_up=False)
    assert line.ring.pages_free() == 0 and line.packer.open_readings() == 3
    line.alert(b"fire", priority=CRITICAL)
    assert line.poll(link_up=False) == 1
    assert line.packer.open_readings() == 2
    assert line.ledger.items_lost[STOLEN] == [1, 0, 0, 0]
    line.packer.flush()
    assert line.drain() == [(CRITICAL, b"fire"), (HIGH, [HIGH]), (NORMAL, [NORMAL])]
    assert line.accounts() == (4, 3, 1, 0)


def test_put_follows_what_its_lane_has_open_and_is_an_item():
    line = Line()
    line.readings(1, 2)
    line.reading(9, priority=HIGH)
    line.poll()
    assert line.packer.put(b"health", NORMAL, 5) is True
    line.reading(3)
    line.poll()
    line.packer.flush()
    tags = []
    while line.ring.head():
        tags.append(line.next()[1])
    batch = make_tag(line.data_topic, 1, False) | TAG_BATCH
    assert tags == [batch, batch, 5, batch]
    assert line.accounts() == (5, 5, 0, 0)


def test_put_closes_open_batches_of_lower_lanes_to_make_room():
    line = Line(size=3 * 256, page_size=256)
    for lane in (LOW, NORMAL, HIGH):
        line.reading(lane, priority=lane)
    line.poll(link_up=False)
    assert line.packer.put(b"fire", CRITICAL, 0) is True
    assert line.ring.refused == [0, 0, 0, 0]
    assert line.accounts() == (4, 0, 1, 3)


def test_put_refused_by_the_ring_is_counted_there_and_in_the_ledger():
    line = Line(size=3 * 256, page_size=256)
    full_of_critical(line)
    assert line.packer.put(b"health", LOW, 0) is False
    assert line.ledger.items_lost[REFUSED] == [1, 0, 0, 0]
    assert line.ring.refused == [1, 0, 0, 0]
    assert line.accounts() == (1, 0, 1, 0)


def test_put_that_the_ring_takes_at_the_second_try_is_no_loss():
    """As when another thread makes room between the two."""
    line = Line()
    line.ring.reserve = lambda n, lane: 0
    assert line.packer.put(b"health", LOW, 5) is True
    del line.ring.reserve
    assert line.accounts() == (1, 0, 0, 1)
    assert line.next() == (LOW, 5, b"health")
    assert line.accounts() == (1, 1, 0, 0)


def test_try_put_says_where_the_payload_stands():
    """By that it is known again when it is acknowledged or lost."""
    line = Line(size=5 * 128, page_size=128, max_readings=2)
    standing = {}
    line.ring._on_drop = lambda at, length, tag, lane, reason: standing.pop(at, None)
    stood = 0
    for n in range(400):
        lane = n * 7 % 4
        if n % 3 == 0:
            line.reading(n, priority=lane)
            line.poll(link_up=n // 50 % 2 == 0)
        payload = bytes([n & 0xFF]) * (1 + n * 11 % 120)
        at = line.packer.try_put(payload, lane, n)
        line.ring.check()
        if at:
            assert at not in standing
            standing[at] = payload
            stood += 1
        if n % 5 == 0 and line.ring.head():
            standing.pop(line.ring.head_at, None)
            line.next()
        for at in standing:
            assert line.ring.buffer[at : at + len(standing[at])] == standing[at]
    assert stood > 100 and len(standing) > 3


def test_put_of_bad_input_leaves_its_lane_free():
    line = Line()
    raises(ValueError, line.packer.put, b"health", LOW, 65536)
    assert line.packer.put(b"health", LOW, 5) is True
    assert line.drain() == [(LOW, b"health")]


def test_put_of_bad_input_names_the_limit_and_counts_nothing():
    line = Line()
    assert "4088" in raises(ValueError, line.packer.put, bytes(4089), LOW, 0)
    assert "65536" in raises(ValueError, line.packer.put, b"", LOW, 65536)
    for lane in (-1, 4):
        assert str(lane) in raises(ValueError, line.packer.put, b"", lane, 0)
    assert line.accounts() == (0, 0, 0, 0) and line.ring.messages() == 0
    assert line.packer.put(bytes(4088), LOW, 0)
    line.ring.check()


def test_bad_arguments_name_value_and_limit():
    line = Line()

    def make(ring=line.ring, topic=DATA, **options):
        Packer(line.queue, ring, line.clock, Ledger(), JsonWriter, topic, **options)

    make()
    make(max_readings=65535, max_age_ms=0)
    assert "1 lanes" in raises(ValueError, make, ring=PagedRing(4096, 1024))
    cases = (
        {"max_readings": 0},
        {"max_readings": 65536},
        {"max_age_ms": -1},
        {"max_age_ms": 1 << 29},
        {"qos": 3},
        {"topic": "a/+"},
    )
    for options in cases:
        raises(ValueError, make, **options)


def test_batch_written_before_the_time_was_known_is_marked_and_stamped_when_it_leaves():
    for json in (False, True):
        line = Line(unix=0, json=json)
        line.ms = 12000
        line.reading(1)
        line.poll()
        line.packer.flush()
        assert line.ring.head() and line.ring.head_tag & TAG_UNSTAMPED
        head = (line.ring.head_at, line.ring.head_length, line.ring.head_tag)
        assert line.packer.prepare(*head) == line.ring.head_tag
        line.clock.set_unix(START + 12)
        _, tag, payload = line.next()
        assert tag == make_tag(line.data_topic, 1, False) | TAG_BATCH
        assert decode(payload)[0][0] == START + 12


def test_batch_open_when_the_time_becomes_known_is_stamped_when_it_is_closed():
    line = Line(unix=0)
    line.ms = 12000
    line.reading(1)
    line.poll()
    line.clock.set_unix(START + 12)
    line.ms = 13000
    line.reading(2)
    line.poll()
    line.packer.flush()
    assert line.ring.head() and not line.ring.head_tag & TAG_UNSTAMPED
    assert [group[0] for group in decode(line.next()[2])] == [START + 12, START + 13]


def test_prepare_leaves_stamped_batches_and_plain_messages_alone():
    line = Line()
    line.reading(1)
    line.poll()
    line.packer.flush()
    line.ring.head()
    before = bytes(line.ring.buffer)
    at, length, tag = line.ring.head_at, line.ring.head_length, line.ring.head_tag
    assert line.packer.prepare(at, length, tag) == tag
    assert line.packer.prepare(at, length, 5 | TAG_UNSTAMPED) == 5 | TAG_UNSTAMPED
    assert line.ring.buffer == before


def test_accounts_balance_to_the_last_item_through_overflow_and_delivery():
    for json in (False, True):
        line = Line(size=5 * 512, page_size=512, slots=8, json=json, max_readings=4)
        seed = 1
        for step in range(600):
            seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
            priority = (seed >> 8) % 4
            if seed & 0x7000:
                line.reading(step, priority=priority)
            elif seed & 0x70000:
                line.queue.enqueue(ALERT, b"alert %d" % step, priority=priority)
            else:
                line.packer.put(b"health", priority, 1)
            link_up = step // 100 % 2 == 1
            if seed & 0x300000:
                line.poll(link_up)
            if link_up and seed & 0xC00000:
                line.next()
            if seed & 0x3000000 == 0:
                line.ring.drop("poison")
            stats = line.queue.stats
            taken, delivered, lost, held = line.accounts()
            assert held == line.stored() + line.packer.open_readings()
            waiting = len(line.queue)
            assert step + 1 == taken + stats.refused + stats.displaced + waiting
        assert line.ledger.lost_for(STOLEN) and line.ledger.lost_for("poison")
        line.poll()
        line.packer.flush()
        line.drain()
        # With the ring drained nothing is held: every item is counted as delivered or as lost.
        assert line.ledger.held() == 0 and line.ring.messages() == 0


def test_order_within_a_priority_holds_through_every_way_of_closing():
    line = Line(size=300 * 128, page_size=128, slots=16, max_readings=5, max_age_ms=700)
    sent = [[], [], [], []]
    for step in range(300):
        line.ms += 90
        priority = step * 7 % 4
        sent[priority].append(step)
        if step % 11 == 3:
            line.alert(b"%d" % step, priority=priority)
        else:
            line.reading(step, priority=priority)
        if step % 3 == 0:
            line.poll(link_up=step // 50 % 2 == 0)
    line.poll()
    line.packer.flush()
    got = [[], [], [], []]
    for lane, payload in line.drain():
        got[lane] += payload if isinstance(payload, list) else [int(payload)]
    assert got == sent
    assert line.accounts() == (300, 300, 0, 0)


def test_an_item_interrupted_before_its_pop_is_repeated_not_lost():
    line = Line()
    line.readings(1, 2)
    pop = line.queue.pop

    def interrupted(now):
        raise KeyboardInterrupt

    line.queue.pop = interrupted
    raises(KeyboardInterrupt, line.poll)
    line.queue.pop = pop
    line.poll()
    line.packer.flush()
    assert line.drain() == [(NORMAL, [1, 1, 2])]


def test_readings_and_messages_from_enqueue_to_ring_allocate_nothing():
    line = Line(size=8 * 1024, page_size=1024, max_readings=4, max_age_ms=10)
    value = 23.7
    alert = line.queue.topics.index(ALERT)
    text = b"hot"

    def run():
        for step in range(500):
            line.ms += 30
            line.reading(step, value)
            line.reading(step, -5, NORMAL, INT16)
            line.queue.enqueue(alert, text)
            line.packer.poll(line.clock.now(), step & 64 == 0)
        line.packer.flush()

    no_alloc(run)
    assert line.ledger.lost_for(STOLEN) > 0 and line.ledger.items_taken == 1500
    assert line.ledger.held() == 1500 - line.ledger.lost_for(STOLEN)


def test_restamping_on_the_way_out_and_delivery_allocate_nothing():
    line = Line(unix=0)
    line.readings(1, 100)
    line.poll(link_up=False)
    line.packer.flush()
    line.clock.set_unix(START)
    ring = line.ring

    def leave():
        ring.head()
        tag = line.packer.prepare(ring.head_at, ring.head_length, ring.head_tag)
        line.ledger.delivered(ring.head_at, ring.head_length, tag)

    no_alloc(leave)
    assert line.ledger.items_delivered == 100


def test_other_limits_hold_for_open_batches_too():
    line = Line(max_readings=50, max_age_ms=60000)
    line.readings(1, 3)
    line.poll()
    line.packer.set_limits(4, 60000)
    line.reading(4)
    line.poll()
    assert line.drain() == [(NORMAL, [1, 2, 3, 4])]
    line.reading(5)
    line.poll()
    line.packer.set_limits(4, 10)
    line.ms += 10
    line.poll()
    assert line.drain() == [(NORMAL, [5])]
    assert "max_readings" in raises(ValueError, line.packer.set_limits, 0, 10)
