"""The wire as the broker saw it: mosquitto's log, read for one client's packets."""

import re
from typing import NamedTuple

from tests_host.link.harness import WAIT_S
from tools.broker import Broker
from tools.loopback import wait_until

_PUBLISH = re.compile(
    r"Received PUBLISH from (\S+) \(d(\d), q(\d), r(\d), m(\d+), '([^']*)', ... \((\d+) bytes\)\)"
)


class Publish(NamedTuple):
    """One PUBLISH that the broker received."""

    dup: bool
    qos: int
    retained: bool
    packet_id: int
    topic: str
    size: int


def publishes(broker: Broker, client: str = "rig") -> list[Publish]:
    """All that `client` has published, in order."""
    found = _PUBLISH.findall(broker.log_path.read_text())
    return [
        Publish(dup == "1", int(qos), retained == "1", int(mid), topic, int(size))
        for who, dup, qos, retained, mid, topic, size in found
        if who == client
    ]


def count(broker: Broker, packet: str, client: str = "rig") -> int:
    """How many packets of a kind (SUBSCRIBE, PINGREQ, PUBACK...) `client` has sent."""
    text = broker.log_path.read_text()
    return len(re.findall(rf"Received {packet} from {client}\b", text))


def connects(broker: Broker, client: str = "rig") -> int:
    """How often `client` was let in."""
    return len(re.findall(rf"New client connected .* as {client} ", broker.log_path.read_text()))


def wait_count(broker: Broker, packet: str, at_least: int, client: str = "rig") -> None:
    """Wait until the broker has that many such packets from `client`."""
    wait_until(
        lambda: count(broker, packet, client) >= at_least, WAIT_S, f"{at_least} {packet} packets"
    )
