"""Addresses and name servers as a person writes them."""

from firmware.address import (
    DNS_PORT,
    NTP_PORT,
    is_name_server,
    is_number,
    is_time_server,
    listed,
    split,
)


def test_addresses_in_numbers():
    for text in ("192.0.2.7", "0.0.0.0", "255.255.255.255", "::1", "fe80::1"):
        assert is_number(text)
    for text in ("", "a", "1.2.3", "1.2.3.256", "1.2.3.4.5", "1.2.3.x", "1.2..3", "0001.2.3.4"):
        assert not is_number(text)


def test_name_servers_are_parted_by_commas_or_spaces():
    assert listed("") == listed(" , ") == []
    for text in (
        "192.0.2.53,192.0.2.54:5353",
        " 192.0.2.53  192.0.2.54:5353,",
        "192.0.2.53 , 192.0.2.54:5353",
    ):
        assert listed(text) == ["192.0.2.53", "192.0.2.54:5353"]


def test_a_name_server_may_have_a_port_of_its_own():
    for text, parts in (
        ("192.0.2.53", ("192.0.2.53", 53)),
        ("192.0.2.53:", ("192.0.2.53", 53)),
        ("192.0.2.53:1", ("192.0.2.53", 1)),
        ("192.0.2.53:65535", ("192.0.2.53", 65535)),
    ):
        assert is_name_server(text) and split(text, DNS_PORT) == parts


def test_a_name_server_is_no_name_and_its_port_a_port():
    for text in ("", "dns.example", ":53", "192.0.2", "::1", "fe80::1"):
        assert not is_name_server(text)
    for port in ("0", "65536", "-1", "x", "5 3", "53:53", "0x35"):
        assert not is_name_server("192.0.2.53:" + port)


def test_a_time_server_is_a_host_with_or_without_a_port():
    for text, parts in (
        ("pool.ntp.org", ("pool.ntp.org", 123)),
        ("192.0.2.7:1123", ("192.0.2.7", 1123)),
    ):
        assert is_time_server(text) and split(text, NTP_PORT) == parts
    for text in ("", ":123", "a.test:0", "a.test:65536", "a.test:ntp", "a:1:2"):
        assert not is_time_server(text), text
