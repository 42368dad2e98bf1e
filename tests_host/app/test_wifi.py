"""Wifi: the station is brought up, tried again, and told about in words."""

from firmware.network_up import Wifi


class Wlan:
    """A station as the ESP32's is documented: connect begins an attempt, isconnected tells."""

    def __init__(self):
        self.calls = []
        self.connected = False
        self.fails = False

    def isconnected(self):
        return self.connected

    def active(self, on):
        self.calls.append("active")

    def disconnect(self):
        self.calls.append("disconnect")

    def connect(self, ssid, password):
        self.calls.append((ssid, password))
        if self.fails:
            raise OSError("Wifi Internal Error")

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
    world = World()
    world.wlan.fails = True
    world.seconds(1)
    assert world.lines == ["wifi barn: Wifi Internal Error"]
    world.wlan.fails = False
    world.seconds(20)
    assert world.wlan.calls.count(("barn", "secret")) == 2


def test_the_password_is_in_no_line():
    world = World()
    world.wlan.fails = True
    world.seconds(50)
    assert not any("secret" in line for line in world.lines) and "secret" not in world.wifi.status
