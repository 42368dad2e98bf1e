"""HostNetwork: what the computer's own files say of names."""

from firmware import network_up
from firmware.network_up import HostNetwork

FILES = {
    "/etc/resolv.conf": [
        "# nameserver 192.0.2.1",
        "search example",
        "nameserver 192.0.2.53",
        "nameserver fe80::1",
        "nameserver",
        "  nameserver\t198.51.100.53 ",
        "",
    ],
    "/etc/hosts": [
        "# 192.0.2.1 no",
        "127.0.0.1 localhost Own  # mine",
        "::1 localhost six",
        "192.0.2.9 own",
        "",
    ],
}


def test_name_servers_and_hosts_are_those_with_IPv4_addresses():
    lines = network_up._lines
    network_up._lines = FILES.get
    try:
        network = HostNetwork()
        assert network.name_servers() == ["192.0.2.53", "198.51.100.53"]
        assert network.hosts() == {"localhost": "127.0.0.1", "own": "127.0.0.1"}
    finally:
        network_up._lines = lines


def test_files_that_are_not_there_name_nothing():
    assert network_up._lines("/no/such/file") == []
