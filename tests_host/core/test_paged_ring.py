"""PagedRing against the requirements R1-R8, R10 and R11, and against a model of plain lists."""

from millpond.paged_ring import EXPIRED, STOLEN, PagedRing
from tests_host.kit import no_alloc, raises


def text(ring):
    """The head's payload."""
    return bytes(ring.buffer[ring.head_at : ring.head_at + ring.head_length])


def deliver(ring, packet_id=1):
    """Send and acknowledge the head; its payload, or None."""
    if not ring.head():
        return None
    payload = text(ring)
    ring.sent(packet_id)
    assert ring.ack(packet_id)
    return payload


def drain(ring):
    out = []
    while ring.head():
        out.append(deliver(ring))
    return out


def numbered(n, size=16):
    return b"%04d" % n + bytes(size - 4)


# -- construction --------------------------------------------------------------------------------


def test_R8_sizes_out_of_range_name_value_and_limit():
    assert "63" in raises(ValueError, PagedRing, 1000, 63)
    assert "64 to 65536" in raises(ValueError, PagedRing, 1000, 63)
    assert "65537" in raises(ValueError, PagedRing, 1000000, 65537)
    assert "191" in raises(ValueError, PagedRing, 191, 64)
    assert "3 to 65534 pages" in raises(ValueError, PagedRing, 191, 64)
    assert "lanes 0" in raises(ValueError, PagedRing, 192, 64, 0)
    assert "lanes 5" in raises(ValueError, PagedRing, 192, 64, 5)


def test_R8_least_and_largest_page():
    ring = PagedRing(192, 64)
    assert ring.pages == 3 and ring.page_payload == 56
    ring = PagedRing(3 * 65536, 65536)
    assert ring.append(bytes(65528)) and ring.append(b"x")
    assert len(deliver(ring)) == 65528
    assert deliver(ring) == b"x"
    ring.check()


def test_R8_bad_messages_change_nothing():
    ring = PagedRing(256, 64, 2)
    ring.append(b"first", 1, 7)
    message = raises(ValueError, ring.append, bytes(57))
    assert "57" in message and "56" in message
    assert "lane 2" in raises(ValueError, ring.append, b"x", 2)
    assert "lane 4" in raises(ValueError, ring.append, b"x", 4)
    assert "lane -1" in raises(ValueError, ring.append, b"x", -1)
    assert "tag 65536" in raises(ValueError, ring.append, b"x", 0, 65536)
    assert "tag -1" in raises(ValueError, ring.append, b"x", 0, -1)
    assert "57" in raises(ValueError, ring.reserve, 57)
    assert "lane 3" in raises(ValueError, ring.reserve, 5, 3)
    ring.check()
    assert ring.messages() == 1 and ring.refused == [0, 0]
    assert drain(ring) == [b"first"]


# -- pages ---------------------------------------------------------------------------------------


def test_R1_page_goes_free_work_used_free():
    ring = PagedRing(256, 64)
    states = lambda: (ring.pages_free(), ring.pages_work(), ring.pages_used())  # noqa: E731
    assert states() == (4, 0, 0)
    ring.append(bytes(40))
    assert states() == (3, 1, 0)
    ring.append(bytes(40))
    assert states() == (2, 1, 1)
    deliver(ring)
    assert states() == (3, 1, 0)
    deliver(ring)
    assert states() == (4, 0, 0)
    ring.check()


def test_R1_check_notices_a_broken_ring():
    ring = PagedRing(256, 64)
    ring.append(bytes(40))
    ring.append(bytes(40))
    ring.lists.free_count -= 1
    assert "free list" in raises(RuntimeError, ring.check)
    ring.lists.free_count += 1
    ring.buffer[7] += 1
    assert "page's end" in raises(RuntimeError, ring.check)


def test_R2_header_is_id_tag_size_big_endian():
    ring = PagedRing(4096, 1024)
    ring.append(b"A" * 300, 0, 0x1234)
    assert ring.buffer[:8] == b"\x00\x00\x12\x34\x00\x00\x01\x2c"
    ring.head()
    ring.sent(0xBEEF)
    assert ring.buffer[:8] == b"\xbe\xef\x12\x34\x00\x00\x01\x2c"
    assert ring.head_tag == 0x1234 and ring.head_packet_id == 0xBEEF


def test_R3_messages_share_a_page_while_they_fit():
    ring = PagedRing(256, 64)
    ring.append(bytes(20))  # 28 bytes with its header
    ring.append(bytes(28))  # 36: exactly the rest
    assert ring.pages_free() == 3
    ring.append(b"")
    assert ring.pages_free() == 2
    assert [len(p) for p in drain(ring)] == [20, 28, 0]
    ring.check()


def test_R3_empty_message_is_a_message():
    ring = PagedRing(192, 64)
    ring.append(b"", 0, 5)
    assert ring.head() and ring.head_length == 0 and ring.head_tag == 5
    assert deliver(ring) == b"" and not ring.head()


def test_R3_reserve_and_commit_write_straight_into_the_page():
    ring = PagedRing(256, 64)
    ring.append(b"before")
    assert ring.room() == 64 - 14 - 8
    at = ring.reserve(30)
    ring.buffer[at : at + 5] = b"hello"
    ring.commit(5, 0, 9)
    ring.append(b"after")
    assert ring.pages_free() == 3
    assert drain(ring) == [b"before", b"hello", b"after"]
    ring.check()


def test_R3_reservation_that_does_not_fit_takes_a_new_page():
    ring = PagedRing(256, 64)
    ring.append(bytes(10))
    at = ring.reserve(56)
    assert at == 64 + 8 and ring.pages_used() == 1
    ring.buffer[at : at + 56] = b"B" * 56
    ring.commit(56)
    assert [len(p) for p in drain(ring)] == [10, 56]
    ring.check()


def test_R3_misused_reservations_raise():
    ring = PagedRing(256, 64)
    assert "no open reservation" in raises(ValueError, ring.commit, 0)
    ring.reserve(10)
    for lane in (-1, 1, 4):
        assert "lane {}".format(lane) in raises(ValueError, ring.commit, 0, lane)
    assert "still open" in raises(ValueError, ring.reserve, 5)
    assert "still open" in raises(ValueError, ring.append, b"x")
    message = raises(ValueError, ring.commit, 11)
    assert "11" in message and "10" in message
    raises(ValueError, ring.commit, 5, 0, 65536)
    ring.cancel()
    ring.cancel()
    assert ring.append(b"x") and drain(ring) == [b"x"]
    ring.check()
    assert ring.pages_free() == 4


def test_R3_page_with_an_open_reservation_is_read_but_not_freed():
    ring = PagedRing(256, 64)
    ring.append(b"one")
    at = ring.reserve(20)
    assert deliver(ring) == b"one"
    assert not ring.head()
    ring.check()
    ring.buffer[at : at + 3] = b"two"
    ring.commit(3)
    assert deliver(ring) == b"two"
    ring.check()
    assert ring.pages_free() == 4


def test_R3_page_with_an_open_reservation_is_not_stolen():
    ring = PagedRing(192, 64, 2)
    at = ring.reserve(20, 0)
    for n in range(5):
        ring.append(numbered(n, 50), 1)
    ring.buffer[at : at + 4] = b"kept"
    ring.commit(4, 0)
    ring.check()
    assert drain(ring) == [numbered(3, 50), numbered(4, 50), b"kept"]


def test_R3_cancelled_reservation_frees_a_page_already_read():
    ring = PagedRing(256, 64)
    ring.append(b"one")
    ring.reserve(20)
    deliver(ring)
    ring.cancel()
    ring.check()
    assert ring.pages_free() == 4


# -- stealing ------------------------------------------------------------------------------------


def test_R4_full_ring_steals_the_oldest_page_and_counts():
    lost = []
    ring = PagedRing(
        192, 64, 1, on_drop=lambda at, n, tag, lane, why: lost.append((n, tag, lane, why))
    )
    for n in range(5):
        assert ring.append(numbered(n, 20 + n), 0, n)
    assert ring.stolen == [0]
    ring.append(numbered(5, 40), 0, 5)
    ring.check()
    assert ring.stolen == [2]
    assert lost == [(20, 0, 0, STOLEN), (21, 1, 0, STOLEN)]
    assert [p[:4] for p in drain(ring)] == [b"0002", b"0003", b"0004", b"0005"]


def test_R4_low_lanes_are_stolen_from_before_the_writers_own():
    ring = PagedRing(256, 64, 3)
    for lane in (2, 0, 1, 1):
        ring.append(bytes(50), lane)
    ring.append(bytes(50), 2)
    assert ring.stolen == [1, 0, 0]
    ring.append(bytes(50), 2)
    assert ring.stolen == [1, 1, 0]
    ring.append(bytes(50), 2)
    assert ring.stolen == [1, 2, 0]
    ring.append(bytes(50), 2)
    assert ring.stolen == [1, 2, 1]
    ring.check()


def test_R4_never_steals_from_a_higher_lane_and_counts_the_refusal():
    ring = PagedRing(192, 64, 2)
    for _ in range(3):
        ring.append(bytes(50), 1)
    assert not ring.append(b"low", 0)
    assert ring.refused == [1, 0] and ring.stolen == [0, 0] and ring.messages() == 3
    assert ring.reserve(5, 0) == 0 and ring.refused == [1, 0]
    ring.check()


def test_R4_a_lower_lanes_work_page_is_stolen_when_it_has_nothing_else():
    ring = PagedRing(192, 64, 4)
    for lane in range(3):
        ring.append(b"low", lane)
    assert ring.append(b"critical", 3)
    assert ring.stolen == [1, 0, 0, 0]
    assert deliver(ring) == b"critical"
    ring.check()


def test_R4_page_in_flight_is_never_stolen():
    ring = PagedRing(192, 64)
    for n in range(3):
        ring.append(numbered(n, 50))
    ring.head()
    ring.sent(9)
    for n in range(3, 20):
        ring.append(numbered(n, 50))
        ring.check()
    assert text(ring) == numbered(0, 50)
    assert ring.ack(9)
    assert drain(ring) == [numbered(18, 50), numbered(19, 50)]
    assert ring.stolen == [17]


def test_R4_rewound_message_keeps_its_page():
    ring = PagedRing(192, 64)
    for n in range(3):
        ring.append(numbered(n, 50))
    ring.head()
    ring.sent(9)
    ring.rewind()
    for n in range(3, 9):
        ring.append(numbered(n, 50))
    assert ring.head() and text(ring) == numbered(0, 50) and ring.head_packet_id == 9
    ring.check()


def test_R4_survivor_knows_how_many_were_lost_before_it():
    ring = PagedRing(192, 64)
    for n in range(5):
        ring.append(numbered(n, 50))
    ring.head()
    assert text(ring) == numbered(2, 50) and ring.head_lost == 2
    deliver(ring)
    ring.head()
    assert ring.head_lost == 0
    ring.sent(1)
    for n in range(5, 7):
        ring.append(numbered(n, 50))
    ring.ack(1)
    ring.head()
    assert text(ring) == numbered(5, 50) and ring.head_lost == 1


def test_R4_refused_messages_count_before_the_next_that_is_kept():
    ring = PagedRing(192, 64, 2)
    for _ in range(3):
        ring.append(bytes(50), 1)
    ring.append(b"a", 0)
    ring.append(b"b", 0)
    deliver(ring)
    ring.append(b"c", 0)
    ring.append(b"d", 0)
    deliver(ring)
    deliver(ring)
    ring.head()
    assert text(ring) == b"c" and ring.head_lost == 2
    deliver(ring)
    ring.head()
    assert text(ring) == b"d" and ring.head_lost == 0


# -- reading -------------------------------------------------------------------------------------


def test_R5_highest_lane_first_then_fifo():
    ring = PagedRing(4096, 256, 4)
    for n, lane in enumerate((0, 3, 1, 3, 2, 0)):
        ring.append(numbered(n), lane)
    assert [int(p[:4]) for p in drain(ring)] == [1, 3, 4, 2, 0, 5]


def test_R5_head_alone_pins_nothing():
    ring = PagedRing(4096, 256, 4)
    ring.append(b"low", 0)
    assert ring.head() and text(ring) == b"low"
    ring.append(b"high", 3)
    assert ring.head() and text(ring) == b"high"


def test_R5_message_in_flight_stays_the_head():
    ring = PagedRing(4096, 256, 4)
    ring.append(b"low", 0)
    ring.head()
    ring.sent(1)
    ring.append(b"high", 3)
    assert ring.head() and text(ring) == b"low"
    ring.rewind()
    assert ring.head() and text(ring) == b"low"
    ring.sent(1)
    ring.ack(1)
    assert ring.head() and text(ring) == b"high"


def test_R6_only_the_right_acknowledgement_advances():
    ring = PagedRing(256, 64)
    ring.append(b"a")
    assert not ring.ack(0) and not ring.ack(1)
    ring.head()
    ring.sent(7)
    assert not ring.ack(6) and not ring.ack(0)
    assert ring.messages() == 1 and ring.stray_acks == 4
    assert ring.ack(7) and not ring.ack(7)
    assert ring.acked == [1] and ring.stray_acks == 5 and ring.messages() == 0
    ring.check()


def test_R6_packet_ids_and_order_of_calls_are_checked():
    ring = PagedRing(256, 64)
    assert "empty" in raises(ValueError, ring.sent, 1)
    ring.append(b"a")
    assert "0" in raises(ValueError, ring.sent, 0)
    assert "65536" in raises(ValueError, ring.sent, 65536)
    ring.sent(5)
    assert "in flight" in raises(ValueError, ring.sent, 6)


def test_R7_rewind_without_flight_changes_nothing():
    ring = PagedRing(256, 64)
    ring.append(b"a")
    ring.rewind()
    ring.check()
    assert drain(ring) == [b"a"]


def test_R7_acknowledgement_after_rewind_is_foreign():
    ring = PagedRing(256, 64)
    ring.append(b"a")
    ring.sent(5)
    ring.rewind()
    assert not ring.ack(5) and ring.messages() == 1
    ring.sent(6)
    assert ring.head_packet_id == 6 and ring.ack(6)


def test_drop_sets_the_head_aside_and_counts():
    lost = []
    ring = PagedRing(256, 64, 1, on_drop=lambda at, n, tag, lane, why: lost.append((n, why)))
    assert not ring.drop("poison")
    ring.append(b"bad")
    ring.append(b"good")
    ring.sent(1)
    assert ring.drop("poison")
    assert lost == [(3, "poison")] and ring.dropped == [1]
    ring.head()
    assert text(ring) == b"good" and ring.head_lost == 1 and not ring.in_flight
    ring.check()
    drain(ring)
    ring.append(b"last")
    ring.drop("poison")
    ring.append(b"next")
    ring.head()
    assert ring.head_lost == 1


def test_telegraf_17240_first_message_after_a_full_drain_is_kept():
    """Report: Telegraf#17240."""
    for capacity in range(3, 9):
        ring = PagedRing(64 * capacity, 64)
        for fill in range(1, 2 * capacity):
            for n in range(fill):
                ring.append(numbered(n, 50))
            drain(ring)
            assert ring.pages_free() == capacity
            ring.append(b"again")
            assert drain(ring) == [b"again"]
            ring.check()


# -- age -----------------------------------------------------------------------------------------


def aged(lanes=1, **options):
    """A ring with a message begun at 100, 110 and 120 s on each lane, a page for each."""
    ring = PagedRing(1024, 64, lanes, **options)
    for second in (100, 110, 120):
        ring.seconds = second
        for lane in range(lanes):
            ring.append(numbered(second, 50), lane, lane)
    return ring


def test_R10_pages_older_than_their_lanes_limit_are_expired_and_counted():
    told = []
    ring = aged(2, on_drop=lambda at, n, tag, lane, why: told.append((at % 64, n, tag, lane, why)))
    ring.seconds = 1000
    assert ring.expire() == 0 and ring.messages() == 6  # no limit, no end
    ring.max_age_s[1] = 30
    ring.seconds = 130
    assert ring.expire() == 0  # as old as the limit is not older
    ring.seconds = 141
    assert ring.expire() == 2 and ring.expired == [0, 2] and ring.held(0) == 3
    assert told == [(8, 50, 1, 1, EXPIRED)] * 2
    ring.check()
    assert ring.head() and text(ring) == numbered(120, 50) and ring.head_lost == 2
    ring.max_age_s[0] = 1
    assert ring.expire() == 3 and ring.expired == [3, 2] and ring.stolen == [0, 0]
    ring.check()
    assert drain(ring) == [numbered(120, 50)]


def test_R10_a_work_page_expires_and_what_comes_next_knows():
    ring = PagedRing(256, 64)
    ring.max_age_s[0] = 5
    ring.append(b"one")
    ring.append(b"two")
    ring.seconds = 6
    assert ring.expire() == 2 and ring.pages_free() == 4 and ring.oldest_age() == 0
    assert not ring.head() and ring.expire() == 0
    ring.append(b"three")
    assert ring.expire() == 0 and ring.head() and ring.head_lost == 2
    ring.check()


def test_R10_the_message_in_flight_or_to_be_sent_again_stays():
    ring = aged()
    ring.max_age_s[0] = 1
    ring.sent(9)
    ring.seconds = 1000
    assert ring.expire() == 2
    ring.check()
    ring.rewind()
    assert ring.expire() == 0 and text(ring) == numbered(100, 50)
    ring.sent(9)
    assert ring.ack(9) and not ring.head()
    ring.append(b"next")
    assert ring.head() and ring.head_lost == 2
    ring.check()


def test_R10_a_page_with_an_open_reservation_stays():
    ring = PagedRing(256, 64)
    ring.max_age_s[0] = 1
    ring.append(b"one")
    ring.reserve(8)
    ring.seconds = 10
    assert ring.expire() == 0 and ring.pages_work() == 1
    ring.head()  # promotes the page
    assert ring.expire() == 0
    ring.commit(2)
    assert ring.expire() == 2 and ring.pages_free() == 4
    ring.check()


def test_R10_a_page_opened_for_nothing_does_not_make_a_later_message_old():
    ring = PagedRing(192, 64)
    ring.max_age_s[0] = 60
    ring.reserve(10)
    ring.cancel()
    assert ring.pages_free() == 3
    ring.seconds = 100
    ring.append(b"fresh")
    assert ring.oldest_age() == 0 and ring.expire() == 0
    assert drain(ring) == [b"fresh"]
    ring.check()


# -- gauges --------------------------------------------------------------------------------------


def test_R11_gauges():
    ring = PagedRing(512, 64, 2)
    ring.seconds = 100
    assert ring.fill_percent() == 0 and ring.oldest_age() == 0 and ring.bytes_held() == 0
    for _ in range(3):
        ring.append(bytes(50), 0)
    ring.seconds = 110
    ring.append(bytes(10), 1)
    assert ring.pages_free() == 4 and ring.pages_work() == 2 and ring.pages_used() == 2
    assert ring.messages() == 4 and ring.bytes_held() == 3 * 58 + 18
    assert ring.fill_percent() == 50 and ring.oldest_age() == 10 and ring.high_water() == 4
    deliver(ring)
    assert ring.oldest_age() == 10
    drain(ring)
    assert ring.oldest_age() == 0 and ring.fill_percent() == 0 and ring.high_water() == 4
    assert ring.appended(0) == 3 and ring.acked == [3, 1] and ring.held(0) == 0


def test_R11_a_page_all_read_has_no_age_though_a_reservation_keeps_it():
    ring = PagedRing(192, 64)
    ring.append(b"one")
    ring.reserve(5)
    ring.seconds = 9
    assert ring.oldest_age() == 9
    deliver(ring)
    assert ring.messages() == 0 and ring.oldest_age() == 0
    ring.commit(5)
    assert ring.oldest_age() == 9


# -- no allocation -------------------------------------------------------------------------------


def test_no_operation_allocates():
    ring = PagedRing(1024, 128, 4)
    payload = bytes(40)

    def work():
        for n in range(300):
            ring.append(payload, n & 3, n)
            if n % 5 == 0 and ring.head():
                ring.sent(n + 1)
                ring.ack(n + 1)
            if n % 7 == 0 and ring.reserve(30, n & 3):
                ring.commit(20, n & 3, 1)
            if n % 11 == 0 and ring.head():
                ring.sent(n + 1)
                ring.rewind()
        ring.head()
        ring.retag(5)

    no_alloc(work)
    ring.check()
    assert sum(ring.stolen) > 50


# -- against a model -----------------------------------------------------------------------------


class Model:
    """What a PagedRing must hold: per lane a list of [payload, lost before it]."""

    def __init__(self, lanes):
        self.lanes = [[] for _ in range(lanes)]
        self.lost_at_end = [0] * lanes
        self.pinned = None

    def add(self, lane, payload):
        self.lanes[lane].append([payload, self.lost_at_end[lane]])
        self.lost_at_end[lane] = 0

    def lose(self, lane, payload):
        messages = self.lanes[lane]
        i = [m[0] for m in messages].index(payload)
        assert payload != self.pinned
        lost = messages.pop(i)[1] + 1
        if i < len(messages):
            messages[i][1] += lost
        else:
            self.lost_at_end[lane] += lost

    def head(self):
        if self.pinned is not None:
            for messages in self.lanes:
                if messages and messages[0][0] == self.pinned:
                    return messages[0]
            raise AssertionError("pinned message is not at the front")
        for messages in reversed(self.lanes):
            if messages:
                return messages[0]
        return None


def assert_young(ring, lane, since):
    """No message of the lane that `expire` may take is in a page begun before `since`."""
    spared = (ring.pinned, ring._work[lane][4])
    pages = list(ring.lists.used(lane))
    if ring._work[lane][2]:
        pages.append(ring._work[lane][3])
    for page in pages:
        assert page in spared or ring.born(page) >= since


def run_against_model(pages, page_size, lanes, seed, steps):
    model = Model(lanes)
    taken = [0] * lanes

    def on_drop(at, length, tag, lane, reason):
        taken[lane] += 1
        if reason == EXPIRED:
            assert lane and ring.born(at // page_size) < ring.seconds - 10 * lane
        model.lose(lane, bytes(ring.buffer[at : at + length]))

    ring = PagedRing(pages * page_size, page_size, lanes, on_drop=on_drop)
    for lane in range(lanes):
        ring.max_age_s[lane] = lane * 10  # no limit on lane 0
    state = seed
    open_at = [None] * lanes
    refused = 0
    acked = 0
    for step in range(steps):
        state = (state * 1103515245 + 12345) & 0x3FFFFFFF
        dice = (state >> 8) & 0xFFFF
        lane = dice % lanes
        action = (state >> 4) % 17
        ring.seconds = step
        size = 2 + dice % (ring.page_payload - 1)
        if dice & 1:
            size = 2 + size % 10
        payload = (b"%06d" % step + bytes(size))[:size] if size > 6 else b"%02d" % (step % 100)
        payload = payload[:size]
        if action < 7:
            payload = b"%d:" % step
            payload = payload + bytes(max(0, min(size, ring.page_payload) - len(payload)))
            if open_at[lane] is not None:
                raises(ValueError, ring.append, payload, lane)
            elif ring.append(payload, lane, step & 0xFFFF):
                model.add(lane, payload)
            else:
                refused += 1
                model.lost_at_end[lane] += 1
        elif action == 7 and open_at[lane] is None:
            at = ring.reserve(12, lane)
            if at:
                open_at[lane] = at
        elif action == 8 and open_at[lane] is not None:
            payload = b"r%d" % step
            at = open_at[lane]
            ring.buffer[at : at + len(payload)] = payload
            ring.commit(len(payload), lane)
            model.add(lane, payload)
            open_at[lane] = None
        elif action == 9 and open_at[lane] is not None:
            ring.cancel(lane)
            open_at[lane] = None
        elif action == 10:
            ring.rewind()
        elif action == 16:
            gone = sum(taken)
            assert ring.expire() == sum(taken) - gone
            for k in range(1, lanes):
                assert_young(ring, k, step - 10 * k)
        elif action == 11 and dice % 4 == 0 and ring.head():
            payload, _ = model.head()
            model.pinned = None
            ring.drop("poison")
        elif ring.in_flight:
            assert not ring.ack(ring.head_packet_id ^ 1)
            assert ring.ack(ring.head_packet_id)
            lane = ring.head_lane
            assert model.lanes[lane].pop(0)[0] == model.pinned
            model.pinned = None
            acked += 1
        elif ring.head():
            ring.sent(1 + step % 65535)
            model.pinned = text(ring)
        ring.check()
        expected = model.head()
        assert ring.head() == (expected is not None)
        if expected:
            assert text(ring) == expected[0]
            assert ring.head_lost == expected[1], (ring.head_lost, expected[1])
        for k in range(lanes):
            assert ring.held(k) == len(model.lanes[k])
    assert sum(ring.acked) == acked and sum(ring.refused) == refused
    assert [sum(n) for n in zip(ring.stolen, ring.dropped, ring.expired)] == taken
    return sum(ring.expired)


def test_against_model():
    expired = 0
    for seed in range(1, 7):
        for lanes in range(1, 5):
            expired += run_against_model(
                3 + seed % 4, 64 + 32 * (seed % 3), lanes, seed * 7919, 250
            )
    assert expired > 50, expired
