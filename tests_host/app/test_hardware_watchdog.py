"""HardwareWatchdog: bites what hangs, spares a person's visit, and can be off."""

from firmware.hardware_watchdog import HardwareWatchdog


class Wdt:
    """Stands in for machine.WDT and keeps what was done to all of them."""

    done = []

    def __init__(self, timeout):
        self.done.append(timeout)

    def feed(self):
        self.done.append("fed")


def done(*steps, wdt=Wdt, timeout_s=30):
    Wdt.done.clear()
    dog = HardwareWatchdog(wdt, timeout_s)
    for step in steps:
        getattr(dog, step)()
    return list(Wdt.done)


def test_nothing_bites_before_the_program_runs():
    assert done("feed", "hold") == []


def test_a_running_program_must_feed_it_within_the_time_out():
    assert done("guard", "feed", "feed") == [30000, "fed", "fed", "fed"]


def test_a_stopped_program_has_an_hour_and_then_its_time_out_again():
    assert done("guard", "hold", "guard") == [30000, "fed", 3600000, "fed", 30000, "fed"]


def test_a_time_out_of_0_turns_it_off():
    assert done("guard", "feed", "hold", timeout_s=0) == []


def test_a_board_without_one_is_no_error():
    assert done("guard", "feed", "hold", wdt=None) == []
