"""Sender: one in flight, against S1-S5 and S9."""

from millpond import sender as states
from millpond.message import TAG_UNSTAMPED, TopicTable, make_tag
from millpond.paged_ring import PagedRing
from millpond.sender import Sender
from tests_host.kit import no_alloc, raises

WRAP = 1 << 30


class Line:
    """A ring and a sender, with short words for what a link would do."""

    def __init__(self, lost=None, **options):
        self.topics = TopicTable()
        self.tag0 = make_tag(self.topics.index("pond/alarm"), 0, False)
        self.tag2 = make_tag(self.topics.index("pond/bill"), 2, False)
        self.tag1 = make_tag(self.topics.index("pond/data"), 1, False)
        lost = [] if lost is None else lost
        self.ring = PagedRing(1024, 128, 4, on_drop=lambda *what: lost.append(what[1:]))
        self.sender = Sender(self.ring, self.topics, **options)

    def put(self, *payloads):
        for payload in payloads:
            self.ring.append(payload, 1, self.tag1)

    def strays(self):
        """Acknowledgements of nothing in flight."""
        return self.ring.stray_acks + self.sender.strays

    def sent(self, now=0):
        """What leaves now, as (payload, packet id, dup), or None."""
        s = self.sender
        if not s.next(now):
            return None
        s.left(now)
        return bytes(self.ring.buffer[s.at : s.at + s.length]), s.packet_id, s.dup


def test_S1_nothing_is_sent_before_the_link_is_up():
    line = Line()
    line.put(b"a")
    assert line.sent() is None
    line.sender.connected(False, 0)
    assert line.sent() == (b"a", 1, False)


def test_S1_one_message_in_flight():
    line = Line()
    line.put(b"a", b"b")
    line.sender.connected(False, 0)
    assert line.sent() == (b"a", 1, False)
    assert line.sent() is None
    assert line.sender.acked(1, 5)
    assert line.sender.round_trip_ms == 5
    assert line.sent() == (b"b", 2, False)


def test_the_link_is_told_topic_qos_and_retained():
    line = Line()
    tag = make_tag(line.topics.index("pond/state"), 1, True)
    line.ring.append(b"x", 0, tag)
    line.sender.connected(False, 0)
    assert line.sender.next(0)
    assert line.sender.topic == b"pond/state"
    assert line.sender.qos == 1 and line.sender.retained is True


def test_S2_foreign_acknowledgements_change_nothing_and_are_counted():
    """Report: mq/repeated-ack."""
    line = Line()
    line.put(b"a", b"b")
    sender = line.sender
    assert not sender.acked(1, 0)
    sender.connected(False, 0)
    sender.next(0)
    assert not sender.acked(1, 0)
    sender.left(0)
    assert not sender.acked(2, 0) and not sender.acked(0, 0)
    assert sender.acked(1, 0) and not sender.acked(1, 0)
    assert line.strays() == 5 and sender.delivered == 1
    assert line.sent() == (b"b", 2, False)


def test_S3_session_kept_resends_first_under_the_same_id_with_dup():
    """Report: EMS-ESP32#305."""
    line = Line()
    line.put(b"a", b"b")
    line.sender.connected(False, 0)
    line.sent()
    line.sender.disconnected()
    line.ring.append(b"critical", 3, line.tag1)
    assert line.sent() is None
    line.sender.connected(True, 0)
    assert line.sent() == (b"a", 1, True)
    assert line.sender.resent == 1
    line.sender.acked(1, 0)
    assert line.sent() == (b"critical", 2, False)


def test_S3_session_gone_sends_a_new_publication():
    """Report: EMS-ESP32#305, espMqttClient#59."""
    line = Line()
    line.put(b"a")
    line.sender.connected(False, 0)
    line.sent()
    line.sender.disconnected()
    line.sender.connected(False, 0)
    assert line.sent() == (b"a", 2, False)
    assert line.sender.resent == 1


def test_S3_a_session_that_came_between_does_not_know_the_message():
    """Report: EMS-ESP32#305."""
    line = Line()
    line.put(b"a")
    line.sender.connected(False, 0)
    line.sent()
    line.sender.disconnected()
    line.sender.connected(False, 0)
    line.sender.disconnected()
    line.sender.connected(True, 0)
    payload, _, dup = line.sent()
    assert payload == b"a" and not dup


def test_S3_lost_while_leaving_is_sent_again():
    line = Line()
    line.put(b"a")
    line.sender.connected(False, 0)
    assert line.sender.next(0)
    line.sender.disconnected()
    line.sender.left(0)
    assert line.sender.state == states.OFFLINE
    line.sender.connected(True, 0)
    assert line.sent() == (b"a", 1, True)


def test_S4_lib_94_ids_wrap_past_zero():
    """Report: lib#94."""
    line = Line()
    sender = line.sender
    ids = [sender.next_packet_id() for _ in range(65537)]
    assert ids[0] == 1 and ids[65534] == 65535 and ids[65535] == 1 and 0 not in ids


def test_S4_an_id_in_flight_is_passed_over():
    """Report: lib#94."""
    line = Line()
    line.put(b"a")
    line.sender.connected(False, 0)
    line.sent()
    ids = [line.sender.next_packet_id() for _ in range(65535)]
    assert 1 not in ids[:-1] and ids[65533] == 65535 and ids[65534] == 2


def test_S5_overdue_after_the_time_out_across_the_tick_wrap():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    line = Line(ack_timeout_s=20)
    line.put(b"a")
    line.sender.connected(False, WRAP - 5000)
    assert not line.sender.overdue(WRAP - 5000)
    line.sent(WRAP - 5000)
    assert not line.sender.overdue(14999)
    assert line.sender.overdue(15000)
    line.sender.disconnected()
    assert not line.sender.overdue(15000)


def test_S5_a_message_that_does_not_leave_is_overdue_too():
    """Report: lib#103."""
    line = Line(ack_timeout_s=20)
    line.put(b"a")
    line.sender.connected(False, 0)
    line.sender.next(0)
    assert line.sender.overdue(20000)


def test_S5_a_message_that_leaves_slowly_is_not_overdue_while_it_moves():
    line = Line(ack_timeout_s=20)
    line.put(b"a")
    line.sender.connected(False, 0)
    line.sender.next(0)
    for now in range(0, 100000, 10000):
        assert not line.sender.overdue(now)
        line.sender.progress(now)
    line.sender.left(100000)
    line.sender.progress(110000)
    assert not line.sender.overdue(119999)
    assert line.sender.overdue(120000)


def test_S6_QoS_0_is_complete_when_its_bytes_left():
    line = Line()
    line.ring.append(b"zero", 1, line.tag0)
    line.put(b"one")
    line.sender.connected(False, 0)
    assert line.sender.next(0) and line.sender.qos == 0
    assert line.ring.messages() == 2
    line.sender.left(0)
    assert line.ring.messages() == 1 and line.sender.delivered == 1
    assert line.sent()[0] == b"one"


def test_S6_QoS_0_cut_while_leaving_goes_again_without_dup():
    line = Line()
    line.ring.append(b"zero", 1, line.tag0)
    line.sender.connected(False, 0)
    line.sender.next(0)
    line.sender.disconnected()
    line.sender.connected(True, 0)
    payload, _, dup = line.sent()
    assert payload == b"zero" and not dup
    assert line.sender.resent == 1


def test_S6_QoS_2_is_complete_at_PUBCOMP():
    line = twice_in_flight()
    sender = line.sender
    assert not sender.acked(1, 0)
    assert not sender.completed(1, 0)
    assert not sender.received(2, 0)
    assert line.sent() is None
    assert sender.received(1, 3)
    assert sender.next(4) and sender.release and sender.packet_id == 1
    assert line.sent() is None
    assert not sender.acked(1, 5) and not sender.completed(2, 5)
    assert sender.delivered == 0 and line.ring.messages() == 2
    assert sender.completed(1, 6)
    assert sender.delivered == 1 and sender.round_trip_ms == 2
    assert not sender.completed(1, 6)
    assert line.sent() == (b"b", 2, False) and not sender.release
    assert line.strays() == 6


def twice_in_flight(**options):
    """A line with "a" of QoS 2 in flight, and "b" of QoS 1 behind it."""
    line = Line(**options)
    line.ring.append(b"a", 1, line.tag2)
    line.put(b"b")
    line.sender.connected(False, 0)
    assert line.sent() == (b"a", 1, False)
    return line


def test_S6_a_PUBREC_that_comes_again_changes_nothing_and_is_counted():
    line = twice_in_flight()
    assert line.sender.received(1, 0) and not line.sender.received(1, 0)
    assert line.sender.next(0) and not line.sender.received(1, 0)
    assert line.strays() == 2
    assert line.sender.completed(1, 0)


def test_S6_before_PUBREC_a_kept_session_gets_the_same_PUBLISH_with_DUP():
    line = twice_in_flight()
    line.sender.disconnected()
    line.sender.connected(True, 0)
    assert line.sent() == (b"a", 1, True)
    assert line.sender.flags == 2 << 1 | 8 and not line.sender.release


def test_S6_after_PUBREC_a_kept_session_gets_PUBREL_and_no_second_PUBLISH():
    for released in (False, True):
        line = twice_in_flight()
        sender = line.sender
        assert sender.received(1, 0)
        if released:
            assert sender.next(0)
        for _ in range(3):
            sender.disconnected()
            line.ring.append(b"critical", 3, line.tag1)
            assert not sender.completed(1, 0)
            sender.connected(True, 0)
            assert sender.next(0) and sender.release and sender.packet_id == 1
        assert sender.completed(1, 0)
        assert (sender.delivered, sender.resent) == (1, 0)
        assert line.sent() == (b"critical", 2, False)


def test_S6_a_PUBREC_that_comes_before_the_message_goes_again_counts():
    for early in (True, False):
        line = twice_in_flight()
        sender = line.sender
        sender.disconnected()
        if early:
            assert sender.received(1, 0) and not sender.received(1, 0)
            assert not sender.next(0)
        sender.connected(True, 0)
        if not early:
            assert sender.received(1, 0)
        assert sender.next(0) and sender.release and sender.packet_id == 1
        assert sender.completed(1, 0)
        assert (sender.delivered, sender.resent) == (1, 0)
    line = twice_in_flight()
    line.sender.disconnected()
    assert not line.sender.received(2, 0)
    assert line.sender.received(1, 0)
    line.sender.connected(False, 0)
    assert line.sent() == (b"a", 2, False)
    assert line.sender.received(2, 0)


def test_S6_a_PUBREC_for_a_message_that_is_leaving_is_foreign():
    line = twice_in_flight()
    sender = line.sender
    sender.disconnected()
    sender.connected(True, 0)
    assert sender.next(0) and sender.dup
    assert not sender.received(1, 0)
    sender.left(0)
    assert sender.received(1, 0)


def test_S6_after_PUBREC_a_new_session_gets_the_message_anew():
    line = twice_in_flight()
    assert line.sender.received(1, 0) and line.sender.next(0)
    line.sender.disconnected()
    line.sender.connected(False, 0)
    assert line.sent() == (b"a", 2, False)
    line.sender.disconnected()
    line.sender.connected(True, 0)
    assert line.sent() == (b"a", 2, True)
    assert line.sender.received(2, 0) and line.sender.next(0) and line.sender.completed(2, 0)


def test_S6_S4_the_id_of_QoS_2_wraps_and_is_not_given_away():
    line = Line()
    line.sender._ids.coming = 65535
    line.ring.append(b"a", 1, line.tag2)
    line.sender.connected(False, 0)
    assert line.sent() == (b"a", 65535, False)
    assert line.sender.received(65535, 0) and line.sender.next(0)
    line.sender._ids.coming = 65535
    assert line.sender.next_packet_id() == 1
    assert line.sender.completed(65535, 0)


def cleared(line):
    """The next id goes through its clearing: that id, or None where the message goes at once."""
    sender = line.sender
    assert sender.next(0)
    if sender.state != states.CLEARING:
        sender.left(0)
        return None
    assert sender.release and not line.ring.in_flight
    assert sender.cleared(sender.packet_id)
    return sender.packet_id


def completes(line):
    """The message of QoS 2 that is in flight goes through the rest of its exchange."""
    sender = line.sender
    assert sender.received(sender.packet_id, 0) and sender.next(0) and sender.release
    assert sender.completed(sender.packet_id, 0)


def test_S6_ids_that_a_session_from_before_may_hold_are_cleared_first():
    line = Line()
    sender = line.sender
    line.ring.append(b"a", 1, line.tag2)
    line.put(b"b")
    line.ring.append(b"c", 1, line.tag2)
    sender.connected(True, 0)
    assert cleared(line) == 1
    assert line.sent() == (b"a", 1, False) and not sender.release
    assert not sender.cleared(1)  # an answer that comes again
    sender.disconnected()
    sender.connected(True, 0)
    assert line.sent() == (b"a", 1, True)
    completes(line)
    assert line.sent() == (b"b", 2, False)
    assert sender.acked(2, 0)
    assert cleared(line) == 3
    assert line.sent() == (b"c", 3, False)
    assert sender.delivered == 2 and line.strays() == 0


def test_S6_nothing_is_published_before_the_id_is_known_to_be_clear():
    line = Line(ack_timeout_s=10)
    sender = line.sender
    line.ring.append(b"a", 1, line.tag2)
    sender.connected(True, 0)
    for now in (0, 20000):
        assert sender.next(now) and sender.release and sender.state == states.CLEARING
        sender.left(now)  # that of a PUBREL means nothing
        assert not sender.next(now)
        assert not sender.cleared(2) and not sender.acked(1, now) and not sender.received(1, now)
        assert not sender.overdue(now + 9999) and sender.overdue(now + 10000)
        assert sender.closed_by_peer(now) == 0
        sender.disconnected()
        sender.connected(True, now)
    assert cleared(line) == 1
    sender.disconnected()
    sender.connected(True, 0)
    assert line.sent() == (b"a", 1, False)
    assert (sender.resent, sender.delivered) == (0, 0)


def test_S6_what_comes_while_an_id_is_cleared_has_its_turn_by_priority():
    line = Line()
    sender = line.sender
    line.ring.append(b"a", 1, line.tag2)
    sender.connected(True, 0)
    assert sender.next(0) and sender.release
    line.ring.append(b"critical", 3, line.tag2)
    assert sender.cleared(1)
    assert line.sent() == (b"critical", 1, False)
    completes(line)
    assert cleared(line) == 2


def test_S6_once_round_and_in_a_new_session_no_id_is_in_doubt():
    line = Line()
    sender = line.sender
    sender.connected(True, 0)
    assert sender._ids._doubtful == 65535
    sender._ids._doubtful = 2
    for doubt in (True, True, False):
        line.ring.append(b"", 1, line.tag2)
        assert (cleared(line) is not None) is doubt
        if doubt:
            assert line.sent()
        completes(line)
    for first in (False, True):
        line = Line()
        line.sender.connected(first, 0)
        line.sender.disconnected()
        line.sender.connected(not first, 0)
        line.ring.append(b"a", 1, line.tag2)
        assert cleared(line) is None


def test_S6_an_id_that_was_used_uncleared_begins_the_round_anew():
    for use in ("QoS 1", "subscription"):
        line = Line()
        sender = line.sender
        sender.connected(True, 0)
        sender._ids._doubtful = 2
        if use == "QoS 1":
            line.put(b"b")
            assert cleared(line) is None
            assert sender.acked(1, 0)
        else:
            assert sender.next_packet_id() == 1
        for packet_id in (2, 3, 4):
            line.ring.append(b"", 1, line.tag2)
            assert cleared(line) == packet_id
            assert line.sent()
            completes(line)


def test_S6_an_id_given_away_while_it_is_cleared_leaves_the_next_one_in_doubt():
    line = Line()
    sender = line.sender
    line.ring.append(b"a", 1, line.tag2)
    sender.connected(True, 0)
    assert sender.next(0) and sender.release and sender.packet_id == 1
    assert sender.next_packet_id() == 1  # of a subscription
    assert sender.cleared(1)
    assert cleared(line) == 2
    assert line.sent() == (b"a", 2, False)


def test_S6_a_message_dropped_half_way_leaves_its_id_in_doubt():
    line = twice_in_flight(max_retries=1)
    assert closed(line) == 1
    line.ring.append(b"c", 1, line.tag2)
    packet_id = line.sent()[1]
    assert line.sender.acked(packet_id, 0)
    assert cleared(line) == packet_id + 1


def test_S6_an_id_that_was_cleared_once_is_not_clear_for_ever():
    line = Line(max_retries=1)
    sender = line.sender
    line.ring.append(b"a", 1, line.tag2)
    sender.connected(True, 0)
    assert cleared(line) == 1 and line.sent()
    assert closed(line) == 1
    sender._ids.coming = 1  # as once round
    line.ring.append(b"b", 1, line.tag2)
    assert cleared(line) == 1


def test_S6_S5_each_half_of_QoS_2_has_the_whole_time():
    line = twice_in_flight(ack_timeout_s=10)
    sender = line.sender
    assert not sender.overdue(9999)
    assert sender.received(1, 9999) and not sender.overdue(19998) and sender.overdue(19999)
    assert sender.next(10000)
    assert not sender.overdue(19999) and sender.overdue(20000)


def closed(line, ms=10):
    """The broker closes the connection `ms` after the message left, and takes the next one."""
    poison = line.sender.closed_by_peer(line.sender._since + ms)
    line.sender.disconnected()
    line.sender.connected(True, 0)
    return poison


def test_S7_what_the_peer_closes_on_is_dropped_in_the_end_and_the_next_one_goes():
    for qos_tag in ("tag1", "tag2"):
        lost = []
        line = Line(lost, max_retries=3)
        tag = getattr(line, qos_tag)
        line.ring.append(b"bad", 1, tag)
        line.ring.append(b"good", 1, tag)
        line.sender.connected(False, 0)
        for closes in range(3):
            assert line.sent()[0] == b"bad"
            assert closed(line) == (3 if closes == 2 else 0)
        assert lost == [(3, tag, 1, "poison")]
        assert line.ring.dropped[1] == 1
        assert line.sent() == (b"good", 2, False)


def test_S7_only_closings_in_a_row_count_and_only_right_behind_the_message():
    line = Line(max_retries=2)
    line.put(b"a", b"b")
    line.sender.connected(False, 0)
    assert not closed(line)  # with nothing in flight
    line.sent()
    assert not closed(line)
    line.sent()
    assert not closed(line, 6000)  # for some other reason
    line.sent()
    line.sender.disconnected()  # by us
    line.sender.connected(True, 0)
    _, packet_id, _ = line.sent()
    assert line.sender.acked(packet_id, 0)
    line.sent()
    assert not closed(line)
    line.sent()
    assert closed(line)


def test_S7_a_broker_that_closes_on_everything_gets_its_victims_ever_more_slowly():
    line = Line(max_retries=2)
    line.put(*[bytes((n,)) for n in range(9)])
    line.sender.connected(False, 0)
    for needed in (2, 4, 8, 16, 32, 64, 100, 100):
        for closes in range(needed):
            packet_id = line.sent()[1]
            assert closed(line) == (needed if closes == needed - 1 else 0)
    packet_id = line.sent()[1]
    line.put(b"a", b"b")
    assert line.sender.acked(packet_id, 0)
    line.sent()
    assert not closed(line)
    line.sent()
    assert closed(line)


def test_S7_a_message_whose_PUBREC_came_is_not_suspected():
    line = twice_in_flight(max_retries=2)
    assert not closed(line)
    line.sent()
    assert line.sender.received(1, 0)
    assert not closed(line)


def test_S9_rate_limit_paces_and_a_long_idle_does_not_stall_it():
    line = Line(rate_limit=10)
    line.put(*[b"%d" % n for n in range(5)])
    sender = line.sender
    sender.connected(False, 1000)
    assert line.sent(1000)
    sender.acked(1, 1010)
    assert line.sent(1010) is None and line.sent(1099) is None
    assert line.sent(1100)
    sender.acked(2, 1100)
    now = 1100
    for _ in range(8):
        now = (now + 86400000) % WRAP
        sender.overdue(now)
    assert line.sent(now)


def moments(line, count, now, late=lambda n: 0):
    """When `count` messages leave, each acknowledged at once, by a caller who heeds `wait_ms`."""
    sender = line.sender
    found = []
    for n in range(count):
        now = (now + sender.wait_ms(now) + late(n)) % WRAP
        assert line.sent(now)
        sender.acked(sender.packet_id, now)
        found.append(now)
    return found


def test_S9_the_rate_is_kept_to_the_millisecond():
    for rate in (1, 3, 7, 15, 30, 200, 300, 999, 1000):
        line = Line(rate_limit=rate)
        line.put(*[b""] * (2 * rate + 1 if rate < 50 else 91))
        line.sender.connected(False, 1000)
        found = moments(line, 2 * rate + 1 if rate < 50 else 91, 1000)
        assert found == [1000 + 1000 * n // rate for n in range(len(found))], rate


def test_S9_the_rate_can_be_set_lifted_and_set_again_at_any_time():
    line = Line()
    line.put(*[b""] * 20)
    line.sender.connected(False, 1000)
    assert moments(line, 3, 1000) == [1000] * 3
    line.sender.pace(3, 5000)
    assert moments(line, 4, 5000) == [5000, 5333, 5666, 6000]
    line.sender.pace(0, 6000)
    assert moments(line, 3, 6000) == [6000] * 3
    later = (6000 + WRAP // 2 + 1000) % WRAP  # so late that the last moment seems to lie ahead
    line.sender.pace(10, later)
    assert moments(line, 3, later) == [later, later + 100, later + 200]
    assert "rate_limit" in raises(ValueError, line.sender.pace, 1001, later)
    assert line.sender.pacer.rate_limit == 10


def test_S9_lateness_does_not_add_up():
    line = Line(rate_limit=30)
    line.put(*[b""] * 91)
    line.sender.connected(False, WRAP - 1000)
    found = moments(line, 91, WRAP - 1000, lambda n: n % 3 if n < 90 else 0)
    assert found[90] == 2000


def test_S9_no_burst_after_an_idle_time_however_short():
    line = Line(rate_limit=10)
    sender = line.sender
    sender.connected(False, 0)
    line.put(b"a")
    assert moments(line, 1, 0) == [0]
    for idle_ms in (30, 49, 5000):
        assert not line.sent(0)
        line.put(*[b""] * 4)
        start = sender.wait_ms(0) + idle_ms
        found = moments(line, 4, start)
        assert found == [start, start + 100, start + 200, start + 300]


def test_S9_no_burst_after_slow_acknowledgements():
    line = Line(rate_limit=100)
    line.put(*[b""] * 60)
    line.sender.connected(False, 0)
    slow = moments(line, 10, 0, lambda n: 300)
    quick = moments(line, 50, slow[-1])
    assert quick[-1] - slow[-1] >= 50 * 10 - 50


def test_S9_wait_ms_is_what_next_waits_for_and_nought_without_a_limit_or_a_link():
    line = Line(rate_limit=4)
    sender = line.sender
    line.put(b"a", b"b")
    assert sender.wait_ms(7) == 0
    sender.connected(False, 1000)
    assert sender.wait_ms(1000) == 0
    line.sent(1000)
    assert [sender.wait_ms(now) for now in (1000, 1001, 1249, 1250, 9999)] == [250, 249, 1, 0, 0]
    sender.acked(1, 1100)
    assert not sender.next(1249) and sender.next(1250)
    sender.disconnected()
    assert sender.wait_ms(1250) == 0
    line = Line()
    line.put(b"a")
    line.sender.connected(False, 0)
    line.sent()
    assert line.sender.wait_ms(0) == 0


def test_a_message_that_can_never_leave_is_set_aside_and_counted():
    line = Line()
    sender = line.sender
    line.put(b"a", b"b")
    assert "no message is leaving" in raises(ValueError, sender.set_aside, "too_large")
    sender.connected(False, 0)
    sender.next(0)
    sender.set_aside("too_large")
    assert (sender.state, line.ring.dropped[1], line.ring.messages()) == (states.IDLE, 1, 1)
    payload, packet_id, dup = line.sent()
    assert payload == b"b" and not dup
    assert sender.acked(packet_id, 0)
    assert (sender.delivered, sender.resent, line.ring.messages()) == (1, 0, 0)
    line.ring.check()


def test_delivered_messages_are_reported_with_their_bytes():
    told = []
    line = Line(
        on_delivered=lambda at, n, tag: told.append((bytes(line.ring.buffer[at : at + n]), tag))
    )
    line.put(b"a", b"bb")
    line.sender.connected(False, 0)
    for packet_id in (1, 2):
        line.sent()
        line.sender.acked(packet_id, 0)
    assert told == [(b"a", line.tag1), (b"bb", line.tag1)]


def test_an_unstamped_message_is_prepared_before_it_leaves():
    line = Line(prepare=lambda at, n, tag: tag & ~TAG_UNSTAMPED)
    line.ring.append(b"a", 1, line.tag1 | TAG_UNSTAMPED)
    line.sender.connected(False, 0)
    line.sent()
    assert line.ring.head_tag == line.tag1


def test_mqtt_espMqttClient_59_nothing_goes_with_the_session():
    """Report: espMqttClient#59."""
    line = Line()
    line.put(*[b"%d" % n for n in range(10)])
    line.sender.connected(True, 0)
    line.sent()
    line.sender.disconnected()
    line.sender.connected(False, 0)
    out = []
    while True:
        sent = line.sent()
        if not sent:
            break
        out.append(sent[0])
        line.sender.acked(sent[1], 0)
    assert out == [b"%d" % n for n in range(10)]


def test_NanoMQ_2432_cut_after_two_delivers_all_twelve():
    """Report: NanoMQ#2432."""
    line = Line()
    line.put(*[b"%d" % n for n in range(12)])
    got = []
    for session, count in ((False, 2), (True, 12)):
        line.sender.connected(session, 0)
        for _ in range(count):
            sent = line.sent()
            if sent is None:
                break
            got.append(sent[0])
            if len(got) != 3 or session:
                line.sender.acked(sent[1], 0)
        line.sent()
        line.sender.disconnected()
    assert sorted(set(got), key=int) == [b"%d" % n for n in range(12)]
    assert line.ring.messages() == 0


def test_bad_options_name_value_and_limit():
    line = Line()
    assert "0" in raises(ValueError, Sender, line.ring, line.topics, 0)
    assert "1000" in raises(ValueError, Sender, line.ring, line.topics, 20, 1001)


def test_no_allocation_from_append_to_acknowledgement():
    no_allocation(Line(), lambda n: n)


def test_no_allocation_from_append_to_completion():
    line = Line()
    tag = line.tag2
    ring, sender = line.ring, line.sender
    sender.connected(True, 0)

    def work():
        for _ in range(50):
            ring.append(b"x", 1, tag)
            sender.next(0)
            sender.cleared(sender.packet_id)
            sender.next(0)
            sender.left(0)
            sender.received(sender.packet_id, 0)
            sender.next(0)
            sender.completed(sender.packet_id, 0)

    work()
    no_alloc(work)
    assert sender.delivered >= 100


def test_no_allocation_under_a_rate_limit():
    no_allocation(Line(rate_limit=300), lambda n: (4 * n - 700) & 0x3FFFFFFF)


def no_allocation(line, moment):
    sender = line.sender
    ring = line.ring
    tag = line.tag1
    payload = bytes(64)
    sender.connected(False, moment(0))

    def work():
        for i in range(200):
            n = moment(i)
            sender.wait_ms(n)
            ring.append(payload, i & 3, tag)
            sender.next(n)
            sender.left(n)
            if i % 10 == 9:
                sender.disconnected()
                sender.connected(i & 1 == 0, n)
                sender.next(n)
                sender.left(n)
            sender.acked(sender.packet_id, n)
            sender.overdue(n)

    no_alloc(work)
    assert sender.delivered == 200 and ring.messages() == 0
