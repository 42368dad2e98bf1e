"""Addresses and name servers as a person writes them."""

from firmware.address import is_number, is_server, listed, split


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
        assert is_server(text) and split(text) == parts


def test_a_name_server_is_no_name_and_its_port_a_port():
    for text in ("", "dns.example", ":53", "192.0.2", "::1", "fe80::1"):
        assert not is_server(text)
    for port in ("0", "65536", "-1", "x", "5 3", "53:53", "0x35"):
        assert not is_server("192.0.2.53:" + port)
