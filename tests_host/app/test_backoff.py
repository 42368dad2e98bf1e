"""Backoff: capped, exponential, jittered, and reset by a delivery alone (L5)."""

from firmware.backoff import Backoff
from tests_host.kit import raises


def highest(bits):
    return (1 << bits) - 1


def test_L5_the_ceiling_doubles_up_to_the_cap():
    backoff = Backoff(1000, 10000, lambda bits: 0)
    ceilings = []
    for _ in range(6):
        ceilings.append(backoff.ceiling_ms)
        backoff.next_ms()
    assert ceilings == [1000, 2000, 4000, 8000, 10000, 10000]


def test_L5_the_wait_is_drawn_from_nought_to_the_ceiling():
    state = [1]

    def bits(n):
        state[0] = (state[0] * 1103515245 + 12345) & 0x3FFFFFFF
        return state[0] >> (30 - n)

    waits = []
    for _ in range(2000):
        backoff = Backoff(1000, 8000, bits)
        waits.append(backoff.next_ms())
    assert min(waits) < 20 and max(waits) > 980 and max(waits) <= 1000
    assert 450 < sum(waits) // len(waits) < 550


def test_L5_a_delivery_resets_and_nothing_else():
    """Report: esp-rainmaker-neo#1."""
    backoff = Backoff(1000, 8000, highest)
    for _ in range(5):
        backoff.next_ms()
    assert backoff.ceiling_ms == 8000
    backoff.reset()
    assert backoff.ceiling_ms == 1000


def test_L5_what_cannot_be_mended_waits_the_whole_cap():
    backoff = Backoff(1000, 8000, lambda bits: 0)
    assert backoff.next_ms(permanent=True) == 8000


def test_bad_limits_name_both():
    message = raises(ValueError, Backoff, 5000, 1000, highest)
    assert "5000" in message and "1000" in message
    raises(ValueError, Backoff, 0, 1000, highest)
