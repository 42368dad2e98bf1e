"""TimeServer: when it asks, what it does with what it learns, and what it says of failures."""

import errno

from firmware import time_server
from firmware.failures import Unreachable
from firmware.time_server import TimeServer
from millpond.clock import Clock
from tests_host.app.test_sntp_wire import NEW_YEAR_2026, answer

DAY_S = 86400


class Pause:
    """What is awaited in place of time."""

    def __init__(self, ms):
        self._ms = ms

    def __await__(self):
        yield self._ms

    __iter__ = __await__


class Asyncio:
    """Stands in for the module: a sleep is handed to whoever drives the coroutine."""

    sleep_ms = Pause


class Line:
    """A TimeServer with all that is around it by hand; `answers` has what the server will say.

    An answer is a packet without its nonce, an exception, or None for the time of 2026.
    """

    def __init__(self, server="time.test", answers=(), settable=True, known=False, is_up=True):
        self.seconds = 0
        self.clock = Clock(lambda: self.seconds * 1000 & 0x3FFFFFFF)
        if known:
            self.clock.set_unix(NEW_YEAR_2026)
        self.answers = list(answers)
        self.asked = []
        self.said = []
        self.can_be_set = settable
        self.port_clock = []
        self.is_up = is_up
        self.server = TimeServer(
            server,
            self.clock,
            self,
            self.resolve,
            self.exchange,
            lambda: self.is_up,
            self,
            lambda bits: 7,
        )

    def set_unix(self, unix):
        self.port_clock.append(unix)

    def info(self, text):
        self.said.append(text)

    warning = info

    async def resolve(self, host, port):
        self.asked.append((self.seconds, host, port))
        return (host, port)

    async def exchange(self, sockaddr, packet, is_answer, timeout_ms):
        said = self.answers.pop(0) if self.answers else None
        if isinstance(said, Exception):
            raise said
        data = said or answer(NEW_YEAR_2026 + self.seconds)
        data = data[:24] + packet[40:] + data[32:]
        assert is_answer(data) and timeout_ms == 2000
        return data

    def run(self, seconds):
        """So many seconds go by; each second it says that it lives."""
        real = time_server.asyncio
        time_server.asyncio = Asyncio
        beats = []
        try:
            task = self.server.run(lambda: beats.append(1))
            for _ in range(seconds):
                assert task.send(None) == 1000
                self.seconds += 1
            task.close()
        finally:
            time_server.asyncio = real
        assert len(beats) == seconds
        return [at for at, _, _ in self.asked]


def test_a_board_without_the_time_asks_at_once_and_then_daily():
    line = Line()
    assert line.run(2 * DAY_S + 10) == [1, 1 + DAY_S, 1 + 2 * DAY_S]
    assert line.asked[0][1:] == ("time.test", 123)
    assert line.clock.known and line.clock.unix() == NEW_YEAR_2026 + line.seconds
    assert line.port_clock[0] == NEW_YEAR_2026 + 1 and line.server.failing == ""
    assert line.said[0] == "time of day: 2026-01-01 00:00:01 UTC, says time server time.test"


def test_a_board_that_knows_the_time_asks_in_a_day():
    assert Line(known=True).run(DAY_S + 1) == [DAY_S]


def test_where_the_operating_system_keeps_the_time_only_a_missing_one_is_asked_for():
    assert Line(settable=False, known=True).run(2 * DAY_S) == []
    assert Line(settable=False).run(2 * DAY_S) == [1]


def test_nobody_is_asked_without_a_server_or_a_network():
    line = Line("")
    assert line.run(DAY_S) == [] and line.server.why_unknown() == "no network.ntp is set"
    line = Line(is_up=False)
    assert line.run(100) == []
    line.is_up = True
    assert line.run(3) == [101]


def test_a_port_may_be_named():
    line = Line("192.0.2.7:1123")
    line.run(3)
    assert line.asked == [(1, "192.0.2.7", 1123)]


def test_failures_make_it_ask_less_and_less_often():
    line = Line(answers=[OSError(errno.ETIMEDOUT, "")] * 9)
    waits = [0, 15, 30, 60, 120, 240, 480, 960, 960, 960]
    moments = [1 + sum(waits[: n + 1]) for n in range(10)]
    assert line.run(moments[-1] + 1) == moments
    assert line.said[0] == "time server time.test does not answer (ETIMEDOUT); asked again in 15 s"
    assert "asked again in 960 s" in line.said[8]
    assert line.clock.known
    line.answers = [OSError(errno.ETIMEDOUT, "")]
    assert line.run(DAY_S + 16)[-2:] == [line.seconds - 16, line.seconds - 1]  # 15 s once more


def test_mp_7137_what_a_failed_server_says_sets_nothing():
    """Report: lib#786, lib#604, mp#7137."""
    for data in (answer(first=0xE4), answer(-2208988800), answer(1000000000), answer(4102444800)):
        line = Line(answers=[data, OSError(errno.ETIMEDOUT, "")])
        line.run(5)
        assert not line.clock.known and line.port_clock == []
        assert line.server.failing.startswith("time server time.test: ")
        line.run(100)
        assert line.clock.known and line.server.failing == ""


def test_a_server_that_sends_us_away_is_left_alone_for_a_day():
    line = Line(answers=[answer(stratum=0, code=b"RATE")])
    assert line.run(DAY_S + 2) == [1, DAY_S + 1]


def test_a_name_that_is_not_found_is_said():
    line = Line()

    async def resolve(host, port):
        raise Unreachable("there is no host time.test, says name server 192.0.2.53")

    line.server._resolve = resolve
    line.run(3)
    assert line.server.failing == "there is no host time.test, says name server 192.0.2.53"
