"""MessageQueue: Q1-Q9 and Q11, a behaviour a test; test_queue_model.py has the random walks."""

from array import array

from millpond.clock import add
from millpond.message import CRITICAL, HIGH, LOW, NORMAL, Message, TopicTable
from millpond.message_queue import MAX_TTL_MS, OVERFLOWS, MessageQueue
from tests_host.core.queue_kit import (
    WRAP,
    books,
    drained,
    filled,
    shown,
)
from tests_host.kit import leaves_the_heap_alone, no_alloc, raises

# -- Q1, Q4: what goes in comes out ----------------------------------------------------------------


def test_Q1_message_comes_out_with_every_field_it_went_in_with():
    queue = MessageQueue(4, 16, first_id=70000)
    queue.topics.index("first")
    assert queue.enqueue("plant/a", b"21.5", 2, HIGH, True, 5000, 1000) == 70000
    message = Message(16)
    message.delivery_count = 7
    message.acknowledged = True
    assert queue.dequeue(message, 1200)
    assert message.id == 70000
    assert message.topic == "plant/a" and message.topic_index == 1
    assert message.length == 4 and bytes(message.payload[:4]) == b"21.5"
    assert (message.qos, message.priority, message.retained) == (2, HIGH, True)
    assert (message.created, message.expiry) == (1000, 6000)
    assert message.delivery_count == 0 and message.acknowledged is False


def test_Q1_defaults_are_qos_1_normal_not_retained_and_no_expiry():
    queue = MessageQueue(4)
    message = Message(64)
    assert queue.enqueue("t", b"x") == 1
    assert queue.dequeue(message, 0)
    assert (message.qos, message.priority, message.retained) == (1, NORMAL, False)
    assert (message.created, message.expiry) == (0, 0)


def test_Q1_expiry_that_falls_on_0_is_not_taken_for_never():
    queue = MessageQueue(2)
    queue.enqueue("t", b"x", ttl_ms=10, now=WRAP - 10)
    message = Message(64)
    assert queue.dequeue(message, WRAP - 1)
    assert message.expiry == 1
    queue.enqueue("t", b"x", ttl_ms=10, now=WRAP - 10)
    assert not queue.dequeue(message, 0)
    assert queue.stats.expired == 1
    queue.enqueue("t", b"x", ttl_ms=10, now=WRAP - 10)
    assert queue.expire(WRAP - 1) == 0 and queue.expire(0) == 1
    queue.enqueue("t", b"x", ttl_ms=10, now=WRAP - 10)
    queue.enqueue("t", b"y")
    assert queue.enqueue("t", b"z", now=0) and queue.stats.refused == 0


def test_Q1_ids_are_unique_and_wrap_from_the_last_to_1():
    """Report: lib#94."""
    queue = MessageQueue(8, first_id=0xFFFFFFFE)
    assert [queue.enqueue("t", b"") for _ in range(4)] == [0xFFFFFFFE, 0xFFFFFFFF, 1, 2]
    message = Message(64)
    ids = []
    while queue.dequeue(message, 0):
        ids.append(message.id)
    assert ids == [0xFFFFFFFE, 0xFFFFFFFF, 1, 2]


def test_Q1_ids_carry_from_one_half_to_the_other():
    queue = MessageQueue(4, first_id=0xFFFF)
    assert [queue.enqueue("t", b"") for _ in range(3)] == [0xFFFF, 0x10000, 0x10001]


def test_Q1_refused_and_wrong_messages_use_up_no_id():
    queue = filled(1, NORMAL)
    assert queue.enqueue("t", b"x") == 0
    raises(ValueError, queue.enqueue, "", b"x")
    queue.pop(0)
    assert queue.enqueue("t", b"x") == 2


def test_Q1_topics_are_shared_with_a_table_that_is_handed_in():
    topics = TopicTable(2)
    i = topics.index("a")
    queue = MessageQueue(2, topics=topics)
    assert queue.topics is topics
    assert queue.enqueue(i, b"x") and queue.enqueue("b", b"y")
    assert queue.peek(0) and queue.head_topic == i
    assert len(topics) == 2


def test_Q4_payloads_of_every_size_come_out_whole():
    queue = MessageQueue(20, 17)
    sizes = list(range(18))
    payloads = [bytes([(7 * i + j) & 0xFF for j in range(i)]) for i in sizes]
    for kind in (bytes, bytearray, memoryview):
        for payload in payloads:
            assert queue.enqueue("t", kind(payload))
        queue.check()
        assert drained(queue) == payloads


def test_Q4_shorter_payload_in_a_used_slot_is_not_followed_by_the_old_one():
    queue = MessageQueue(1, 8)
    for payload in (b"longlong", b"ab", b"", b"xyz"):
        queue.enqueue("t", payload)
        assert queue.peek(0) and queue.head_length == len(payload)
        assert shown(queue) == payload
        queue.pop(0)


def test_Q4_message_taken_in_does_not_change_with_the_buffer_it_came_from():
    queue = MessageQueue(2, 8)
    record = bytearray(b"first")
    queue.enqueue("t", record)
    record[:] = b"xxxxx"
    assert drained(queue) == [b"first"]


def test_Q4_peek_shows_everything_and_removes_nothing():
    queue = MessageQueue(4, 8)
    queue.topics.index("other")
    queue.enqueue("t", b"abc", qos=2, priority=CRITICAL, retained=True)
    queue.enqueue("other", b"de", qos=0, priority=LOW)
    for _ in range(3):
        assert queue.peek(0)
        assert shown(queue) == b"abc" and bytes(queue.head_payload[:3]) == b"abc"
        assert len(queue.head_payload) == 8
        assert queue.head_topic == queue.topics.index("t")
        assert (queue.head_qos, queue.head_priority, queue.head_retained) == (2, CRITICAL, True)
        assert len(queue) == 2
    assert queue.pop(0) and queue.peek(0)
    assert shown(queue) == b"de" and queue.head_topic == 0
    assert (queue.head_qos, queue.head_priority, queue.head_retained) == (0, LOW, False)


def test_Q4_empty_queue_gives_nothing_and_counts_nothing():
    queue = MessageQueue(2)
    assert not queue.peek(0) and not queue.pop(0) and not queue.dequeue(Message(64), 0)
    assert queue.clear() == 0 and queue.expire(0) == 0
    assert books(queue) == (0, 0, 0, 0, 0, 0)
    queue.check()


def test_Q4_pop_without_a_peek_removes_the_next():
    queue = filled(4, LOW, HIGH)
    assert queue.pop(0)
    assert drained(queue) == [b"0"]


def test_Q4_pop_removes_what_peek_has_shown_whatever_came_meanwhile():
    queue = filled(4, NORMAL, NORMAL)
    assert queue.peek(0) and shown(queue) == b"0"
    queue.enqueue("t", b"urgent", priority=CRITICAL)
    assert queue.pop(0)
    queue.check()
    assert drained(queue) == [b"urgent", b"1"]


def test_Q4_peek_again_shows_what_is_more_urgent_now():
    queue = filled(4, NORMAL)
    assert queue.peek(0)
    queue.enqueue("t", b"urgent", priority=CRITICAL)
    assert queue.peek(0) and shown(queue) == b"urgent"
    assert queue.pop(0)
    assert drained(queue) == [b"0"]


def test_Q4_pop_removes_nothing_when_what_was_shown_has_been_displaced():
    queue = filled(1, LOW)
    assert queue.peek(0)
    assert queue.enqueue("t", b"urgent", priority=CRITICAL)
    assert not queue.pop(0)
    assert books(queue) == (2, 0, 0, 1, 0, 0)
    queue.check()
    assert queue.pop(0)
    assert books(queue) == (2, 1, 0, 1, 0, 0)


def test_Q4_pop_removes_nothing_when_what_was_shown_has_expired_or_was_cleared():
    queue = MessageQueue(4, 8)
    queue.enqueue("t", b"old", ttl_ms=10)
    queue.enqueue("t", b"new")
    assert queue.peek(9) and shown(queue) == b"old"
    assert queue.expire(10) == 1
    assert not queue.pop(10) and len(queue) == 1
    assert queue.peek(10) and shown(queue) == b"new"
    assert queue.clear() == 1
    queue.enqueue("t", b"later")
    assert not queue.pop(10) and len(queue) == 1
    assert drained(queue, 10) == [b"later"]


def test_Q4_pop_after_a_peek_takes_the_message_even_when_its_time_is_up_since():
    queue = MessageQueue(4, 8)
    queue.enqueue("t", b"x", ttl_ms=10)
    assert queue.peek(9)
    assert queue.pop(11)
    assert books(queue) == (1, 1, 0, 0, 0, 0)


def test_Q4_clear_empties_every_lane_and_counts_what_it_drops():
    queue = filled(8, LOW, CRITICAL, NORMAL, HIGH, NORMAL)
    queue.pop(0)
    assert queue.clear() == 4
    assert len(queue) == 0 and queue.is_empty()
    assert books(queue) == (5, 1, 0, 0, 0, 4)
    assert queue.stats.dropped == 4
    queue.check()
    assert queue.enqueue("t", b"again") == 6
    assert drained(queue) == [b"again"]


def test_Q4_empty_full_and_length_follow_what_is_in():
    queue = MessageQueue(5, 8)
    assert queue.is_empty() and not queue.is_full() and queue.fill_percent() == 0
    for n in range(1, 6):
        queue.enqueue("t", b"x")
        assert len(queue) == n and not queue.is_empty()
        assert queue.is_full() == (n == 5) and queue.fill_percent() == 20 * n
    assert not queue.enqueue("t", b"x") and queue.is_full() and len(queue) == 5


def test_Q4_message_smaller_than_a_slot_is_an_error_and_takes_nothing():
    queue = filled(2, NORMAL)
    small = Message(7)
    assert "7 bytes: a slot's 8" in raises(ValueError, queue.dequeue, small, 0)
    assert len(queue) == 1 and len(small.payload) == 7
    large = Message(20)
    assert queue.dequeue(large, 0) and len(large.payload) == 20
    assert bytes(large.payload[: large.length]) == b"0"


# -- Q3, Q5: rings and order -----------------------------------------------------------------------


def test_Q3_every_capacity_from_1_fills_drains_and_takes_one_more():
    for capacity in range(1, 40):
        queue = MessageQueue(capacity, 8)
        for turn in range(3):
            expected = []
            for i in range(capacity):
                payload = "{}.{}".format(turn, i).encode()
                assert queue.enqueue("t", payload, now=i)
                expected.append(payload)
                queue.check()
            assert queue.is_full() and queue.enqueue("t", b"more") == 0
            assert drained(queue) == expected
            assert queue.is_empty()
            assert queue.enqueue("t", b"one more") and drained(queue) == [b"one more"]


def test_Q3_rings_wrap_by_modulo():
    queue = MessageQueue(3, 8)
    for i in range(50):
        assert queue.enqueue("t", str(i).encode())
        if i >= 2:
            assert queue.peek(0) and shown(queue) == str(i - 2).encode()
            assert queue.pop(0)
        queue.check()


def test_Q5_highest_priority_first_and_first_in_first_out_within_it():
    order = (NORMAL, LOW, CRITICAL, HIGH, LOW, CRITICAL, NORMAL, HIGH, NORMAL)
    expected = []
    for priority in (CRITICAL, HIGH, NORMAL, LOW):
        expected += [str(i).encode() for i, p in enumerate(order) if p == priority]
    assert drained(filled(9, *order)) == expected


# -- Q6: a full queue ------------------------------------------------------------------------------


def test_Q6_full_queue_displaces_oldest_of_lowest():
    queue = filled(5, NORMAL, LOW, HIGH, LOW, NORMAL)
    assert queue.enqueue("t", b"new", priority=HIGH)
    assert books(queue) == (6, 0, 0, 1, 0, 0)
    queue.check()
    assert drained(queue) == [b"2", b"new", b"0", b"4", b"3"]


def test_Q6_lowest_goes_first_until_only_equals_are_left():
    queue = filled(4, LOW, HIGH, NORMAL, LOW)
    for _ in range(4):
        assert queue.enqueue("t", b"C", priority=CRITICAL)
        queue.check()
    assert queue.enqueue("t", b"C", priority=CRITICAL) == 0
    assert books(queue) == (8, 0, 1, 4, 0, 0)
    assert drained(queue) == [b"C"] * 4


def test_Q6_message_that_finds_nothing_lower_is_refused():
    for priority in (LOW, NORMAL, HIGH, CRITICAL):
        queue = filled(2, priority, CRITICAL)
        assert queue.enqueue("t", b"x", priority=priority) == 0
        assert books(queue) == (2, 0, 1, 0, 0, 0)
        assert queue.stats.dropped == 1
        queue.check()
        assert sorted(drained(queue)) == [b"0", b"1"]


def test_Q6_reject_refuses_whatever_comes():
    queue = filled(2, LOW, LOW, overflow="reject")
    assert queue.enqueue("t", b"x", priority=CRITICAL) == 0
    assert books(queue) == (2, 0, 1, 0, 0, 0)
    assert drained(queue) == [b"0", b"1"]


def test_Q6_oldest_displaces_its_own_when_nothing_lower_is_there():
    queue = filled(3, NORMAL, CRITICAL, NORMAL, overflow="oldest")
    assert queue.enqueue("t", b"n", priority=NORMAL)
    assert books(queue) == (4, 0, 0, 1, 0, 0)
    queue.check()
    assert drained(queue) == [b"1", b"2", b"n"]


def test_Q6_oldest_displaces_the_lower_first_and_never_the_higher():
    queue = filled(2, LOW, HIGH, overflow="oldest")
    assert queue.enqueue("t", b"h", priority=HIGH)
    assert queue.enqueue("t", b"n", priority=NORMAL) == 0
    assert books(queue) == (3, 0, 1, 1, 0, 0)
    assert drained(queue) == [b"1", b"h"]


def test_Q6_what_has_expired_goes_before_what_is_alive():
    for overflow in OVERFLOWS:
        queue = MessageQueue(2, 8, overflow=overflow)
        queue.enqueue("t", b"low", priority=LOW)
        queue.enqueue("t", b"dead", priority=CRITICAL, ttl_ms=10)
        assert queue.enqueue("t", b"new", priority=NORMAL, now=10)
        assert books(queue) == (3, 0, 0, 0, 1, 0)
        queue.check()
        assert drained(queue, 10) == [b"new", b"low"]


def test_Q6_message_that_cannot_be_copied_displaces_nothing():
    queue = filled(2, LOW, LOW)
    before = books(queue)
    for bad in ([1, 2], (1,), None, 5):
        raises((TypeError, NotImplementedError), queue.enqueue, "t", bad, priority=CRITICAL)
    raises(ValueError, queue.enqueue, "t", array("H", [1, 2]), priority=CRITICAL)
    queue.check()
    assert books(queue) == before
    assert queue.enqueue("t", b"good", priority=CRITICAL)
    assert drained(queue) == [b"good", b"1"]


# -- Q7: expiry ------------------------------------------------------------------------------------


def test_Q7_message_is_handed_out_until_its_time_is_up_and_not_after():
    queue = MessageQueue(4, 8)
    queue.enqueue("t", b"x", ttl_ms=100, now=1000)
    assert queue.peek(1099)
    assert not queue.peek(1100)
    assert books(queue) == (1, 0, 0, 0, 1, 0)
    queue.check()


def test_Q7_expired_message_is_passed_over_by_peek_pop_and_dequeue():
    for take in (
        lambda queue: queue.peek(50) and queue.pop(50),
        lambda queue: queue.pop(50),
        lambda queue: queue.dequeue(Message(8), 50),
    ):
        queue = MessageQueue(6, 8)
        queue.enqueue("t", b"dead", priority=CRITICAL, ttl_ms=50)
        queue.enqueue("t", b"dead", priority=NORMAL, ttl_ms=49)
        queue.enqueue("t", b"alive", priority=NORMAL, ttl_ms=51)
        queue.enqueue("t", b"low", priority=LOW)
        assert take(queue)
        assert books(queue) == (4, 1, 0, 0, 2, 0)
        assert drained(queue, 50) == [b"low"]


def test_Q7_expire_sweeps_every_place_and_keeps_the_order():
    for turn in range(6):
        queue = MessageQueue(6, 8)
        for _ in range(turn):
            queue.enqueue("t", b"x")
            queue.pop(0)
        for i in range(6):
            queue.enqueue("t", str(i).encode(), ttl_ms=10 if i % 2 else 0)
        assert queue.expire(9) == 0 and len(queue) == 6
        assert queue.expire(10) == 3
        queue.check()
        assert queue.stats.expired == 3
        for payload in (b"6", b"7", b"8"):
            assert queue.enqueue("t", payload)
        queue.check()
        assert drained(queue, 10) == [b"0", b"2", b"4", b"6", b"7", b"8"]


def test_Q7_expire_sweeps_again_for_what_was_not_yet_due():
    queue = MessageQueue(4, 8)
    for ttl in (30, 10, 20):
        queue.enqueue("t", b"x", ttl_ms=ttl)
    assert [queue.expire(now) for now in (9, 10, 20, 29, 30, 31)] == [0, 1, 1, 0, 1, 0]
    queue.enqueue("t", b"x", ttl_ms=10, now=40)
    assert queue.expire(50) == 1


def test_Q7_expiry_works_across_the_wrap_of_the_ticks():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    queue = MessageQueue(4, 8)
    for payload, ttl in ((b"a", 3000), (b"b", 8000), (b"c", 0)):
        queue.enqueue("t", payload, ttl_ms=ttl, now=WRAP - 5000)
    assert queue.expire(WRAP - 2001) == 0
    assert queue.expire(WRAP - 2000) == 1
    assert queue.expire(2999) == 0
    assert queue.peek(2999) and shown(queue) == b"b"
    assert queue.expire(3000) == 1
    assert drained(queue, 4000) == [b"c"]
    assert queue.stats.max_wait_ms == 9000


def test_Q7_longest_ttl_is_kept_to_the_millisecond():
    queue = MessageQueue(2, 8)
    for start in (0, 123456789, WRAP - 1):
        queue.enqueue("t", b"x", ttl_ms=MAX_TTL_MS, now=start)
        assert queue.peek((start - 1) % WRAP) and queue.peek(start)
        assert queue.expire(add(start, MAX_TTL_MS - 1)) == 0
        assert queue.expire(add(start, MAX_TTL_MS)) == 1


def test_Q7_message_without_ttl_never_expires():
    queue = filled(2, NORMAL, NORMAL)
    for now in range(0, WRAP, WRAP // 64):
        assert queue.expire(now) == 0
    assert queue.peek(WRAP - 1) and len(queue) == 2


# -- Q8, Q9: statistics and what is said of them ---------------------------------------------------


def test_Q8_high_water_is_the_most_that_ever_were_in():
    queue = filled(5, NORMAL, NORMAL, NORMAL)
    assert queue.stats.high_water == 3
    drained(queue)
    queue.enqueue("t", b"x")
    assert queue.stats.high_water == 3
    for _ in range(9):
        queue.enqueue("t", b"x")
    assert queue.stats.high_water == 5


def test_Q8_time_in_queue_is_told_as_last_mean_and_longest():
    queue = MessageQueue(4, 8)
    assert queue.stats.mean_wait_ms == 0
    for wait in (100, 700, 40):
        queue.enqueue("t", b"x", now=WRAP - 50)
        queue.pop((WRAP - 50 + wait) % WRAP)
    stats = queue.stats
    assert (stats.last_wait_ms, stats.mean_wait_ms, stats.max_wait_ms) == (40, 280, 700)
    assert stats.waited_ms == 840


def test_Q8_clock_that_a_reader_took_before_the_writer_is_no_wait():
    queue = MessageQueue(4, 8)
    queue.enqueue("t", b"x", now=500)
    queue.pop(490)
    assert (queue.stats.last_wait_ms, queue.stats.waited_ms) == (0, 0)


def test_Q8_age_of_the_oldest_is_that_over_all_lanes():
    queue = MessageQueue(4, 8)
    assert queue.oldest_ms(77) == 0
    queue.enqueue("t", b"x", priority=HIGH, now=WRAP - 10)
    queue.enqueue("t", b"x", priority=LOW, now=WRAP - 100)
    assert queue.oldest_ms(50) == 150
    assert queue.oldest_ms(WRAP - 200) == 0
    queue.clear()
    assert queue.oldest_ms(50) == 0


def test_Q8_drop_rate_counts_every_reason_over_what_was_offered():
    queue = MessageQueue(2, 8)
    assert queue.stats.drop_rate == 0.0
    queue.enqueue("t", b"x", priority=LOW)
    queue.enqueue("t", b"x", priority=LOW)
    queue.enqueue("t", b"x", priority=HIGH, ttl_ms=10)  # displaces
    queue.enqueue("t", b"x", priority=LOW)  # refused
    queue.expire(10)
    queue.clear()
    stats = queue.stats
    assert (stats.refused, stats.displaced, stats.expired, stats.cleared) == (1, 1, 1, 1)
    assert stats.dropped == 4 and stats.offered == 4 and stats.drop_rate == 1.0
    for _ in range(4):
        queue.enqueue("t", b"x")
        queue.pop(10)
    assert stats.drop_rate == 0.5


def test_Q8_throughput_is_messages_out_per_second_over_the_last_full_window():
    queue = MessageQueue(4, 8)
    now = WRAP - 4000
    queue.expire(now)
    assert queue.stats.throughput == 0.0
    for _ in range(30):
        queue.enqueue("t", b"x")
        queue.pop(now)
    queue.expire((now + 9999) % WRAP)
    assert queue.stats.throughput == 0.0
    queue.expire((now + 10000) % WRAP)
    assert queue.stats.throughput == 3.0
    queue.expire((now + 19000) % WRAP)
    assert queue.stats.throughput == 3.0
    queue.pop(0)
    queue.expire((now + 22500) % WRAP)
    assert queue.stats.throughput == 0.0


def test_Q8_counters_go_on_past_the_small_ints_of_a_32_bit_board():
    queue = MessageQueue(1, 8)
    stats = queue.stats
    many = (1 << 29) - 1
    for place in range(6):
        stats._tally[place] = many
    for turn in range(3):
        queue.enqueue("t", b"x", ttl_ms=1)
        queue.enqueue("t", b"x")
        queue.pop(0)
        queue.expire(turn)
        assert max(stats._tally) <= 1 << 29
        assert stats.enqueued == stats.dequeued == stats.refused == many + turn + 1
    assert stats.displaced == stats.expired == stats.cleared == many


def test_Q8_time_in_queue_adds_up_past_the_small_ints():
    queue = MessageQueue(1, 8)
    wait = (1 << 29) - 1
    for n in range(1, 8):
        queue.enqueue("t", b"x")
        queue.pop(wait)
        assert queue.stats.waited_ms == n * wait
        assert queue.stats._tally[6] < 1 << 29
    assert queue.stats.mean_wait_ms == queue.stats.max_wait_ms == wait


def test_Q9_statistics_are_one_line_in_the_form_of_the_seed():
    queue = filled(3, NORMAL, NORMAL, NORMAL)
    queue.enqueue("t", b"x")
    queue.pop(0)
    lines = []
    queue.print_stats("Sensor", out=lines.append)
    assert lines == ["[STATS] Sensor Queue: size=2/3, enqueued=3, dequeued=1, dropped=1"]


def test_Q9_queue_full_is_told_once_when_it_begins_and_once_when_it_ends():
    lines = []
    queue = filled(5, LOW, *[NORMAL] * 4, log=lines.append)
    assert lines == []
    assert queue.enqueue("t", b"x")
    assert lines == ["Queue full: all 5 slots taken, dropping messages"]
    for _ in range(7):
        assert not queue.enqueue("t", b"x")
    assert len(lines) == 1
    queue.pop(0)
    assert lines[1:] == ["Queue no longer full: 8 messages dropped meanwhile"]
    queue.pop(0)
    queue.expire(0)
    assert len(lines) == 2


def test_Q9_queue_that_is_full_and_loses_nothing_is_not_spoken_of():
    lines = []
    queue = filled(3, NORMAL, NORMAL, NORMAL, log=lines.append)
    drained(queue)
    queue.expire(0)
    assert lines == []


def test_Q9_overflow_ends_at_80_percent_so_that_it_does_not_flap():
    lines = []
    queue = filled(10, *[NORMAL] * 10, log=lines.append)
    for _ in range(3):
        queue.enqueue("t", b"x")
        queue.pop(0)
        queue.enqueue("t", b"x")
    assert len(lines) == 1
    queue.pop(0)
    assert len(lines) == 1
    queue.pop(0)
    assert lines[1:] == ["Queue no longer full: 3 messages dropped meanwhile"]
    queue.enqueue("t", b"x")
    queue.enqueue("t", b"x")
    queue.enqueue("t", b"x")
    assert len(lines) == 3
    assert queue.clear() == 10
    assert lines[3:] == ["Queue no longer full: 1 messages dropped meanwhile"]


def test_Q9_overflow_ends_when_messages_expire():
    lines = []
    queue = MessageQueue(5, 8, log=lines.append)
    for _ in range(6):
        queue.enqueue("t", b"x", ttl_ms=10)
    queue.expire(9)
    assert len(lines) == 1
    queue.expire(10)
    assert len(lines) == 2


def test_Q9_log_that_feeds_the_queue_itself_loses_nothing():
    seen = []

    def log(text):
        seen.append(text)
        queue.enqueue("log", b"L", priority=CRITICAL)

    queue = MessageQueue(2, 8, log=log)
    queue.enqueue("t", b"0", priority=LOW)
    queue.enqueue("t", b"1", priority=LOW)
    queue.enqueue("t", b"2", priority=NORMAL)
    queue.check()
    assert len(seen) == 1
    assert books(queue) == (4, 0, 0, 2, 0, 0)
    message = Message(8)
    ids = []
    while queue.dequeue(message, 0):
        ids.append((message.id, bytes(message.payload[: message.length])))
    assert ids == [(4, b"L"), (5, b"L"), (3, b"2")]
    assert len(seen) == 2
    queue.check()


def test_Q9_expire_does_not_count_what_a_log_feeds():
    queue = MessageQueue(1, 8, log=lambda text: queue.enqueue("log", b"L"))
    queue.enqueue("t", b"a", ttl_ms=5)
    assert not queue.enqueue("t", b"b")
    assert queue.expire(5) == 1 and len(queue) == 1


def test_Q9_nothing_is_printed_unless_asked():
    queue = filled(1, NORMAL)
    assert queue.enqueue("t", b"x") == 0
    queue.pop(0)
    assert queue._log is None


# -- Q11: bad input --------------------------------------------------------------------------------


def test_Q11_wrong_message_is_an_error_naming_value_and_limit_and_changes_nothing():
    queue = filled(4, NORMAL, HIGH, topics=2)
    queue.topics.index("u")
    wrong = (
        (("t", b"x", 3), "QoS 3: 0 to 2"),
        (("t", b"x", -1), "QoS -1: 0 to 2"),
        (("t", b"x", 1, 4), "priority 4: 0 to 3"),
        (("t", b"x", 1, -1), "priority -1: 0 to 3"),
        (("t", b"123456789"), "payload of 9 bytes: at most 8"),
        (("t", b"x", 1, 1, False, -1), "ttl_ms -1: 0 to 536870911"),
        (("t", b"x", 1, 1, False, MAX_TTL_MS + 1), "ttl_ms 536870912: 0 to 536870911"),
        (("", b"x"), "topic of 0 bytes: 1 to 65535"),
        (("a/+", b"x"), "'+' is not allowed"),
        (("a/#", b"x"), "'#' is not allowed"),
        (("a\0", b"x"), "is not allowed"),
        (("°" * 32768, b"x"), "topic of 65536 bytes: 1 to 65535"),
        (("v", b"x"), "table of 2 topics is full"),
        ((2, b"x"), "topic index 2: 2 topics are known"),
    )
    image = bytes(queue.buffer)
    for arguments, text in wrong:
        assert text in raises(ValueError, queue.enqueue, *arguments), text
        queue.check()
        assert bytes(queue.buffer) == image and len(queue) == 2
        assert books(queue) == (2, 0, 0, 0, 0, 0) and len(queue.topics) == 2
    assert queue.enqueue("t", b"12345678") == 3
    assert drained(queue) == [b"1", b"0", b"12345678"]


def test_Q11_wrong_types_are_a_type_error_and_change_nothing():
    queue = filled(2, LOW, LOW)
    wrong = (
        ("t", "text"),
        ("t", "21°C"),
        ("t", b"x", "1"),
        ("t", b"x", 1, None),
        ("t", b"x", 1.0, CRITICAL),
        ("t", b"x", 1, 3.0),
        ("t", b"x", 1, CRITICAL, False, 1.5),
        ("t", b"x", 1, CRITICAL, False, 0, 1.5),
        (None, b"x"),
    )
    for arguments in wrong:
        raises(TypeError, queue.enqueue, *arguments)
        queue.check()
        assert books(queue) == (2, 0, 0, 0, 0, 0)
    assert "payload 'text': bytes expected" in raises(TypeError, queue.enqueue, "t", "text")
    assert drained(queue) == [b"0", b"1"]


def test_Q11_queue_of_a_wrong_shape_is_an_error_naming_the_range():
    wrong = (
        ((0,), {}, "capacity 0: 1 to 65535"),
        ((-1,), {}, "capacity -1: 1 to 65535"),
        ((65536,), {}, "capacity 65536: 1 to 65535"),
        ((1, 0), {}, "slot size 0: 1 to 65535"),
        ((1, 65536), {}, "slot size 65536: 1 to 65535"),
        ((1, 8, 0), {}, "topic table of 0: 1 to 256"),
        ((1, 8, 257), {}, "topic table of 257: 1 to 256"),
        ((1, 8, 16, "newest"), {}, "overflow 'newest'"),
        ((1,), {"first_id": 0}, "first id 0: 1 to 4294967295"),
        ((1,), {"first_id": 1 << 32}, "first id 4294967296: 1 to 4294967295"),
    )
    for arguments, options, text in wrong:
        assert text in raises(ValueError, MessageQueue, *arguments, **options), text


def test_Q11_payload_of_exactly_the_slot_size_fits():
    queue = MessageQueue(2, 1)
    assert queue.enqueue("t", b"x") and raises(ValueError, queue.enqueue, "t", b"xy")
    queue = MessageQueue(1, 65535)
    payload = bytes(range(256)) * 256
    assert queue.enqueue("t", memoryview(payload)[:65535])
    assert queue.peek(0) and queue.head_length == 65535 and shown(queue) == payload[:65535]


# -- nothing is allocated --------------------------------------------------------------------------


def times(start):
    """Four moments for `busy`, which the first ttl of 50 ms divides in two and two."""
    return [add(start, ms) for ms in (0, 1, 60, 64)]


def busy(queue, message, payload, rounds, t):
    """Every hot path of a queue of 3, with every way a full one can answer.

    The rounds are in here because this function, with its long calls, has a frame on the heap.
    """
    for _ in range(rounds):
        queue.enqueue(0, payload, 1, LOW, False, 0, t[0])
        queue.enqueue("t", payload, 1, NORMAL, True, 50, t[0])
        queue.enqueue(0, payload, 2, LOW, False, 0, t[0])
        queue.enqueue(0, payload, 2, HIGH, False, 0, t[1])
        queue.enqueue(0, payload, 2, LOW, False, 0, t[1])
        queue.enqueue(0, payload, 2, HIGH, False, 0, t[2])
        queue.enqueue(0, payload, 2, HIGH, False, 0, t[2])
        queue.enqueue(0, payload, 2, CRITICAL, False, 0, t[2])
        queue.enqueue(0, payload, 2, LOW, False, 0, t[2])
        queue.peek(t[3])
        queue.pop(t[3])
        queue.dequeue(message, t[3])
        queue.pop(t[3])
        queue.peek(t[3])
        queue.pop(t[3])


def every_case():
    """A queue of 3 for each overflow, and the moments for it: early, at the wrap and late."""
    for overflow in OVERFLOWS:
        for start in (1000, WRAP // 2 - 30, WRAP - 100, WRAP - 62, WRAP - 30):
            queue = MessageQueue(3, 16, overflow=overflow)
            queue.topics.index("t")
            yield queue, times(start)


def test_Q_hot_paths_allocate_nothing_under_a_locked_heap():
    message = Message(16)
    payload = bytes(16)
    for queue, t in every_case():

        def all_paths(queue=queue, t=t):
            for _ in range(20):
                busy(queue, message, payload, 1, t)
                queue.expire(t[3])

        no_alloc(all_paths)
        queue.check()
        stats = queue.stats
        assert stats.enqueued and stats.dequeued and stats.expired and stats.refused
        assert bool(stats.displaced) == (queue._overflow != "reject")


def test_Q_hot_paths_take_no_frame_from_the_heap():
    message = Message(16)
    payload = bytes(16)
    for queue, t in every_case():
        leaves_the_heap_alone(lambda queue=queue, t=t: busy(queue, message, payload, 50, t))
        queue.check()
        assert queue.stats.dequeued and queue.stats.refused and queue.stats.expired


def test_Q_buffer_is_made_once_and_never_changes_its_size():
    queue = MessageQueue(3, 16)
    queue.topics.index("t")
    buffer = queue.buffer
    size = len(buffer)
    message = Message(16)
    for _ in range(5):
        busy(queue, message, b"0123456789abcdef", 1, times(0))
    assert queue.buffer is buffer and len(buffer) == size and len(message.payload) == 16
