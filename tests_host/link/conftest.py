"""A real broker, a proxy that makes faults, and the judge of what arrived, for each link test."""

import pytest

from tests_host.link.harness import Judge, Rig
from tools.broker import MOSQUITTO, Broker
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
