"""A real broker, a proxy that makes faults, and the judge of what arrived, for each link test."""

import socket

import pytest

from tests_host.link.harness import Judge, Rig
from tests_host.link.tls_kit import Paper
from tools.broker import MOSQUITTO, Broker
from tools.loopback import HOST
from tools.proxy import Proxy


@pytest.fixture
def broker(tmp_path):
    """mosquitto, which forgets its sessions when it is restarted."""
    with Broker(tmp_path, kind=MOSQUITTO) as made:
        yield made


@pytest.fixture
def proxy(broker):
    """The way to the broker, on which faults are made."""
    with Proxy(broker.port) as made:
        yield made


@pytest.fixture
def judge(broker):
    """The subscriber, connected before anything is published."""
    with Judge(broker.port) as made:
        yield made


@pytest.fixture
def rig(proxy):
    """A rig with default options behind the proxy."""
    with Rig(proxy.port) as made:
        yield made


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """Certificates, good and bad."""
    return Paper(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def plain_port():
    """A free port, for the second listener of a TLS broker."""
    with socket.create_server((HOST, 0)) as server:
        return server.getsockname()[1]
