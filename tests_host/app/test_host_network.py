"""HostNetwork: what the computer's own files say of names."""

import os
import sys

from firmware import network_up
from firmware.network_up import HostNetwork

BUILD = __file__.rpartition("tests_host/app/")[0] + "build"
FILE = "{}/test-hosts-{}".format(BUILD, sys.implementation.name)

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


def test_a_line_that_is_no_UTF_8_is_passed_over():
    try:
        os.mkdir(BUILD)
    except OSError:
        pass
    with open(FILE, "wb") as file:
        file.write(b"192.0.2.9 own\n# f\xfcr uns\n192.0.2.10 other")
    try:
        assert network_up._lines(FILE) == ["192.0.2.9 own", "192.0.2.10 other"]
    finally:
        os.remove(FILE)
