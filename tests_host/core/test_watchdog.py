"""DeliveryWatchdog: connected, something pending, nothing delivered."""

from millpond.watchdog import DeliveryWatchdog
from tests_host.kit import raises

WRAP = 1 << 30


def test_fires_after_the_time_out_and_counts():
    dog = DeliveryWatchdog(120)
    assert not dog.check(0, True, True, 0)
    assert not dog.check(119999, True, True, 0)
    assert dog.check(120000, True, True, 0) and dog.fired == 1
    assert not dog.check(120001, True, True, 0)
    assert dog.check(240000, True, True, 0) and dog.fired == 2


def test_idle_is_no_failure():
    dog = DeliveryWatchdog(120)
    for minute in range(60):
        assert not dog.check(minute * 60000, True, False, 0)
    assert not dog.check(59 * 60000 + 1, True, True, 0)
    assert dog.check(59 * 60000 + 120000, True, True, 0)


def test_a_link_that_is_down_is_not_its_business():
    dog = DeliveryWatchdog(120)
    for minute in range(60):
        assert not dog.check(minute * 60000, False, True, 0)


def test_a_delivery_begins_the_span_again():
    dog = DeliveryWatchdog(120)
    for n in range(1, 40):
        assert not dog.check(n * 100000, True, True, n)
    assert dog.check(39 * 100000 + 120000, True, True, 39)


def test_a_new_connection_gets_the_whole_time_out():
    dog = DeliveryWatchdog(120)
    delivered, connects = 7, 1
    dog.check(0, True, True, delivered + connects)
    connects += 1
    assert not dog.check(100000, True, True, delivered + connects)
    assert not dog.check(219999, True, True, delivered + connects)
    assert dog.check(220000, True, True, delivered + connects)


def test_the_tick_wrap_changes_nothing():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    dog = DeliveryWatchdog(120, WRAP - 60000)
    assert not dog.check(59999, True, True, 0)
    assert dog.check(60000, True, True, 0)


def test_bad_time_out_names_value_and_limit():
    assert "0" in raises(ValueError, DeliveryWatchdog, 0)
    assert "86400" in raises(ValueError, DeliveryWatchdog, 86401)


def test_another_time_out_holds_at_the_next_check():
    dog = DeliveryWatchdog(120)
    assert not dog.check(0, True, True, 0)
    dog.set_timeout(5)
    assert not dog.check(4999, True, True, 0)
    assert dog.check(5000, True, True, 0)
    assert "timeout_s" in raises(ValueError, dog.set_timeout, 0)
    assert dog.check(10000, True, True, 0)
