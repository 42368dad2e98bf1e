"""Wifi: the station is brought up, tried again, and told about in words."""

from firmware.network_up import Wifi


class Wlan:
    """A station as the ESP32's is documented: connect begins an attempt, isconnected tells."""

    def __init__(self):
        self.calls = []
        self.connected = False
        self.fails = None

    def isconnected(self):
        return self.connected

    def active(self, on):
        self.calls.append("active")

    def disconnect(self):
        self.calls.append("disconnect")

    def connect(self, ssid, password):
        self.calls.append((ssid, password))
        if self.fails:
            raise self.fails

    def ifconfig(self):
        return ("192.0.2.7", "255.255.255.0", "192.0.2.1", "192.0.2.1")

    def status(self):
        return 201


class World:
    def __init__(self):
        self.wlan = Wlan()
        self.lines = []
        self.wifi = Wifi(self.wlan, "barn", "secret", self)

    def info(self, text):
        self.lines.append(text)

    warning = info

    def seconds(self, n):
        for _ in range(n):
            self.wifi.look()


def test_an_attempt_is_begun_and_then_given_time():
    world = World()
    world.seconds(20)
    assert world.wlan.calls == ["active", "disconnect", ("barn", "secret")]
    world.seconds(1)
    assert world.wlan.calls[3:] == ["active", "disconnect", ("barn", "secret")]


def test_coming_up_and_going_down_are_told_and_a_loss_is_mended_at_once():
    world = World()
    world.seconds(1)
    assert "not connected (status 201)" in world.wifi.status
    world.wlan.connected = True
    world.seconds(5)
    assert world.wifi.up() and world.wifi.status == "wifi barn up, 192.0.2.7"
    assert world.lines == ["wifi up: barn"]
    world.wlan.connected = False
    world.seconds(1)
    assert world.lines[-1] == "wifi down: barn" and not world.wifi.up()
    assert world.wlan.calls.count(("barn", "secret")) == 2


def test_mp_17661_an_internal_error_is_logged_and_tried_again():
    """Report: mq#154, mp#17661."""
    world = World()
    world.wlan.fails = OSError("Wifi Internal Error")
    world.seconds(1)
    assert world.lines == ["wifi barn: Wifi Internal Error"]
    world.wlan.fails = None
    world.seconds(20)
    assert world.wlan.calls.count(("barn", "secret")) == 2


def test_the_password_is_in_no_line():
    world = World()
    world.wlan.fails = OSError("Wifi Internal Error")
    world.seconds(50)
    assert not any("secret" in line for line in world.lines) and "secret" not in world.wifi.status


def test_mq_132_an_access_point_that_is_off_for_10_minutes_whatever_the_status_says():
    """A station reports a wrong password, or no such network, of one that is only out of reach.

    Report: mq#132, mq#154, mp#17661.
    """
    for status in (200, 201, 202, 203, 1001, "no number"):
        world = World()
        world.wlan.status = lambda answer=status: answer
        world.wlan.connected = True
        world.seconds(5)
        world.wlan.connected = False
        world.seconds(600)
        assert world.wlan.calls.count(("barn", "secret")) == 30
        assert str(status) in world.wifi.status and not world.wifi.up()
        world.wlan.connected = True
        world.seconds(1)
        assert world.wifi.up()
        assert world.lines == ["wifi up: barn", "wifi down: barn", "wifi up: barn"]


def test_mq_154_an_attempt_is_ended_before_the_next_is_begun():
    """A second connect() while one is under way is an internal error.

    Report: mq#154, mp#17661.
    """
    world = World()
    world.seconds(100)
    joins = [i for i, call in enumerate(world.wlan.calls) if call == ("barn", "secret")]
    assert len(joins) == 5
    assert all(world.wlan.calls[i - 1] == "disconnect" for i in joins)


def test_mp_17661_after_a_soft_reset_a_station_that_is_still_connected_is_used_as_it_is():
    """And one that only seems to be is made anew as soon as it says so.

    Report: mq#132, mp#17661.
    """
    world = World()
    world.wlan.connected = True
    world.seconds(30)
    assert world.wlan.calls == [] and world.wifi.up()
    world.wlan.connected = False
    world.seconds(1)
    assert world.wlan.calls == ["active", "disconnect", ("barn", "secret")]


def test_mq_154_errors_without_end_end_no_task_and_are_tried_again():
    """The ESP32's port raises an OSError for what it knows and a RuntimeError for what it does not.

    Report: mq#154, mp#17661.
    """
    for kind in (OSError, RuntimeError):
        world = World()
        world.wlan.fails = kind("Wifi Unknown Error 0x3006")
        world.seconds(600)
        assert world.lines == ["wifi barn: Wifi Unknown Error 0x3006"] * 30
        world.wlan.fails = None
        world.wlan.connected = True
        world.seconds(1)
        assert world.wifi.up()
