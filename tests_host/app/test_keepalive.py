"""Keepalive: pings and deadlines against L6, also where the clock begins again."""

from firmware.keepalive import PING, Keepalive

WRAP = 1 << 30
STARTS = (0, 5000, WRAP - 30001, WRAP - 30000, WRAP - 10000, WRAP - 1)
DEAD = "no answer to a ping within {} s"


class Line:
    """A Keepalive whose bytes came and left at `start`, on a clock that begins there."""

    def __init__(self, keepalive_s, start=0):
        self.start = start
        self.keepalive = Keepalive(keepalive_s)
        self.at(0, "heard", "spoke")

    def at(self, ms, *flags):
        """What `look` says `ms` after the start, where bytes have come or left before it."""
        for flag in flags:
            assert hasattr(self.keepalive, flag)
            setattr(self.keepalive, flag, True)
        return self.keepalive.look((self.start + ms) % WRAP)


def test_L6_silence_of_half_the_keepalive_in_either_direction_is_broken_by_a_ping():
    for start in STARTS:
        for flags in ((), ("heard",), ("spoke",)):
            line = Line(60, start)
            assert line.at(29000, *flags) is None
            assert line.at(29999, *flags) is None
            assert line.at(30000, *flags) == PING


def test_L6_no_ping_while_bytes_come_and_go():
    for start in STARTS:
        line = Line(60, start)
        for n in range(1, 50):
            assert line.at(29999 * n, "heard", "spoke") is None
        assert line.at(29999 * 49 + 30000) == PING


def test_L6_one_ping_at_a_time_and_the_next_when_it_is_answered():
    for start in STARTS:
        line = Line(60, start)
        assert line.at(30000) == PING
        assert line.at(30100, "spoke") is None
        assert line.at(59999) is None
        line.keepalive.ponged()
        assert line.at(60050, "heard") is None
        assert line.at(60099) is None
        assert line.at(60100) == PING  # as long after the first ping was written


def test_L6_a_ping_without_an_answer_is_the_end_whatever_else_comes():
    for start in STARTS:
        line = Line(60, start)
        assert line.at(30000) == PING
        assert line.at(59999, "heard", "spoke") is None
        assert line.at(60000, "heard", "spoke") == DEAD.format(30)


def test_L6_a_ping_has_a_second_at_least_however_short_the_keepalive():
    for start in STARTS:
        for keepalive_s, half_ms, limit_ms, words in (
            (1, 500, 1000, "1"),
            (2, 1000, 1000, "1"),
            (3, 1500, 1500, "1.5"),
            (65535, 32767500, 32767500, "32767.5"),
        ):
            line = Line(keepalive_s, start)
            assert line.at(half_ms - 1) is None
            assert line.at(half_ms) == PING
            assert line.at(half_ms + limit_ms - 1) is None
            assert line.at(half_ms + limit_ms) == DEAD.format(words)


def test_L6_a_keepalive_of_0_neither_pings_nor_ends():
    for start in STARTS:
        line = Line(0, start)
        for ms in (0, 1, 1000, 60000, 1 << 28):
            assert line.at(ms) is None


def test_a_new_connection_owes_no_answer_to_an_old_ping():
    for start in STARTS:
        line = Line(60, start)
        assert line.at(30000) == PING
        line.keepalive.reset()
        assert line.at(70000, "heard", "spoke") is None
        assert line.at(99999) is None
        assert line.at(100000) == PING


def test_what_an_old_connection_heard_does_not_count_for_the_new_one():
    line = Line(60)
    line.keepalive.heard = line.keepalive.spoke = True
    line.keepalive.reset()
    assert line.at(30000) == PING


def test_while_connecting_times_are_noted_and_nothing_is_due():
    for start in STARTS:
        line = Line(60, start)
        line.keepalive.spoke = True
        line.keepalive.note((start + 40000) % WRAP)
        assert line.keepalive.spoke_at == (start + 40000) % WRAP
        assert line.at(41000, "heard") is None
        assert line.keepalive.spoke_at == (start + 40000) % WRAP
        assert line.at(69999, "heard") is None
        assert line.at(70000, "heard") == PING
