"""Spelling: a key that is not known leads to the one that was meant."""

from firmware.spelling import _distance, meant


def test_edits_are_counted():
    for a, b, edits in (
        ("", "", 0),
        ("", "abc", 3),
        ("port", "port", 0),
        ("prot", "port", 2),
        ("pasword", "password", 1),
        ("kitten", "sitting", 3),
    ):
        assert _distance(a, b) == _distance(b, a) == edits, (a, b)


def test_the_fewest_edits_are_meant():
    known = ("mqtt.host", "mqtt.port", "mqtt.prefix")
    assert meant("mqtt.hots", known) == "mqtt.host"
    assert meant("mqt.prot", known) == "mqtt.port"


def test_a_right_name_in_the_wrong_section_is_nearly_right():
    known = ("mqtt.user", "wifi.ssid", "wifi.password")
    assert meant("mqtt.ssid", known) == "wifi.ssid"
    assert meant("ssid", known) == "wifi.ssid"
