"""Device: topics, greetings, and whose tags are whose."""

import json

from firmware.device import LAST_WILL, Device, tags_of
from tests_host.kit import raises

CONFIG = {
    "mqtt.prefix": "t",
    "device.name": "pond",
    "device.type": 7,
    "device.serial": 4711,
    "batch.encoding": "f7",
}


class Sensor:
    def __init__(self, name, *ids):
        self.name = name
        self.tags = tuple([(tag_id, "x", "bool", "", 1) for tag_id in ids])


def test_every_topic_is_below_prefix_and_name():
    device = Device(CONFIG)
    for last in ("data", "tags", "status", "health", "alert", "cmd"):
        assert getattr(device, last) == "t/pond/" + last
    assert device.reply == "t/pond/cmd/reply"


def test_L9_the_longest_topic_is_counted_in_bytes():
    assert Device(CONFIG).topic_bytes() == len("t/pond/cmd/reply")
    device = Device(dict(CONFIG, **{"device.name": "bébé"}))
    assert device.topic_bytes() == len("t/bebe/cmd/reply") + 2
    for topic in (device.data, device.tags, device.status, device.health, device.alert):
        assert len(topic.encode()) <= device.topic_bytes()


def test_the_announcement_names_what_a_batch_holds():
    tags = tags_of((Sensor("plant", 1, 2),))
    assert json.loads(Device(CONFIG).announcement(tags)) == {
        "device": "pond",
        "device_type": 7,
        "serial": 4711,
        "encoding": "f7",
        "tags": [[1, "x", "bool", "", 1], [2, "x", "bool", "", 1]],
    }


def test_birth_and_last_will_are_two_states():
    birth = json.loads(Device(CONFIG, "power on").birth(1767225600, 3))
    assert birth == {
        "state": "online",
        "since": 1767225600,
        "connects": 3,
        "started_by": "power on",
    }
    assert json.loads(LAST_WILL) == {"state": "offline"}


def test_a_tag_id_belongs_to_one_sensor():
    sensors = (Sensor("plant", 1, 2), Sensor("board", 3))
    assert [tag[0] for tag in tags_of(sensors)] == [1, 2, 3]
    message = raises(ValueError, tags_of, sensors + (Sensor("level", 4, 2),))
    assert message == "tag id 2 of sensor level: sensor plant has it already"
