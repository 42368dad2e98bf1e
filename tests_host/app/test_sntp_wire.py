"""SNTP on the wire, against RFC 4330 and what failed time servers have said."""

from firmware.sntp_wire import Unwelcome, is_for, query, read
from millpond.message import ProtocolError
from tests_host.kit import raises

NONCE = b"\xff\x00\x01abcde"
NEW_YEAR_2026 = 1767225600
SECONDS_70_YEARS = 2208988800


def answer(unix=NEW_YEAR_2026, nonce=NONCE, first=0x24, stratum=2, code=b"\0\0\0\0"):
    seconds = (unix + SECONDS_70_YEARS) & 0xFFFFFFFF
    head = bytes((first, stratum, 6, 0xEC)) + bytes(8) + code + bytes(8)
    return head + nonce + bytes(8) + seconds.to_bytes(4, "big") + b"\x80\0\0\0"


def test_a_question_is_that_of_a_client_of_version_4():
    packet = query(NONCE)
    assert len(packet) == 48 and packet[0] == 0x23 and packet[40:] == NONCE
    assert not any(packet[1:40])


def test_the_answer_gives_unix_time():
    assert is_for(answer(), NONCE)
    assert read(answer()) == NEW_YEAR_2026
    assert read(answer(first=0x1C)) == NEW_YEAR_2026  # version 3 will do


def test_the_seconds_begin_anew_in_2036():
    last = 2085978495
    for unix in (last, last + 2, last + 86400):  # between them stands 0, which means no time
        assert read(answer(unix)) == unix


def test_what_is_no_answer_to_the_question_is_not_taken_for_one():
    good = answer()
    assert not is_for(good[:47], NONCE) and not is_for(b"", NONCE)
    assert not is_for(answer(nonce=b"12345678"), NONCE)
    for mode in (0, 1, 2, 3, 5, 6, 7):
        assert not is_for(answer(first=0x20 | mode), NONCE)
    assert is_for(good + b"a signature behind it", NONCE)


def test_mp_7137_a_server_that_has_no_time_gives_none():
    """Report: lib#786, lib#604, mp#7137."""
    for data in (
        answer(-SECONDS_70_YEARS),  # seconds 0
        answer(first=0xE4),  # leap 3: its clock is not set
        answer(stratum=16),
        answer(stratum=255),
    ):
        assert "does not know the time itself" in raises(ProtocolError, read, data)


def test_a_server_that_sends_us_away_is_told_from_one_that_is_not_ready():
    assert "too often" in raises(Unwelcome, read, answer(stratum=0, code=b"RATE"))
    for code in (b"DENY", b"RSTR"):
        assert "does not answer this board" in raises(Unwelcome, read, answer(stratum=0, code=code))
    assert "(INIT)" in raises(ProtocolError, read, answer(stratum=0, code=b"INIT"))
    assert "(A???)" in raises(ProtocolError, read, answer(stratum=0, code=b"A\x00\x1b\xff"))
