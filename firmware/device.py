"""Device: what this board is called at the broker, and what it says of itself there.

Every topic is <prefix>/<device name>/<last level>, and every last level stands here, each as an
attribute of the same name. Retained at the broker are

    status  the birth {"state": "online", ...} on each connect, or the last will
    tags    the announcement: name, kind, unit and scale of each tag id (SPEC §5)
"""

import json

LAST_WILL = b'{"state": "offline"}'


class Device:
    """The names and greetings of the board that `config` describes.

    `started_by` is the cause of the last reset in words.
    """

    def __init__(self, config, started_by=""):
        self._config = config
        self._started_by = started_by
        self.data = self._topic("data")
        self.tags = self._topic("tags")
        self.status = self._topic("status")
        self.health = self._topic("health")
        self.alert = self._topic("alert")
        self.cmd = self._topic("cmd")
        self.reply = self._topic("cmd/reply")

    def _topic(self, last):
        c = self._config
        return "{}/{}/{}".format(c["mqtt.prefix"], c["device.name"], last)

    def topic_bytes(self):
        """The length of the longest topic that the board publishes on, in UTF-8 bytes (L9)."""
        return len(self.reply.encode())

    def announcement(self, tags):
        """The payload for `tags`, given the tags of all sensors."""
        c = self._config
        message = {
            "device": c["device.name"],
            "device_type": c["device.type"],
            "serial": c["device.serial"],
            "encoding": c["batch.encoding"],
            "tags": tags,
        }
        return json.dumps(message).encode()

    def birth(self, since, connects):
        """The payload for `status`, at Unix time `since`, on the `connects`-th connection."""
        message = {
            "state": "online",
            "since": since,
            "connects": connects,
            "started_by": self._started_by,
        }
        return json.dumps(message).encode()


def tags_of(sensors):
    """The tags of all sensors; ValueError when two of them have the same id."""
    owners = {}
    tags = []
    for sensor in sensors:
        for tag in sensor.tags:
            if tag[0] in owners:
                text = "tag id {} of sensor {}: sensor {} has it already"
                raise ValueError(text.format(tag[0], sensor.name, owners[tag[0]]))
            owners[tag[0]] = sensor.name
            tags.append(tag)
    return tags
