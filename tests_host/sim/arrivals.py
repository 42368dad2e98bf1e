"""Arrivals: what a subscriber receives whose session never ends, and the order that it must have.

Each message and each reading of the harness bears a number, and the numbers of a stream (the
messages of a lane, the readings of a tag) rise. What comes again must be what came last, sent once
more; of QoS 0 never, of QoS 2 only when the broker has lost its sessions in between.
"""

from tests_host.sim.verdict import must

DATA = b"millpond/millpond-1/data"
GREETINGS = (b"millpond/millpond-1/status", b"millpond/millpond-1/tags")
TAGS = 7000  # the tag of the counter on lane 0
_MESSAGES = (b"sim/0", b"sim/1", b"sim/2", b"sim/x")


def readings(topic, payload):
    """The readings of a message as (tag, size, raw), or None when it is no batch."""
    from millpond.batch_reader import decode

    if topic != DATA:
        return None
    return [(tag, size, raw) for group in decode(payload) for tag, _, size, raw in group[3]]


def numbered(topic, payload):
    """The harness's own in a message: (stream, number) pairs."""
    if topic in _MESSAGES:
        lane, number = payload.split(b":")[:2]
        return [(int(lane), int(number))]
    found = []
    for tag, size, raw in readings(topic, payload) or ():
        if TAGS <= tag < TAGS + 4:
            found.append((tag, int.from_bytes(raw, "big") if size else raw[0]))
    return found


class Arrivals:
    """Everything that came, in its order."""

    def __init__(self):
        self.times = {}  # (topic, payload) -> how often it came with QoS 1 or 2
        self.numbers = set()
        self._highest = {}
        self._lives = {}
        self._last = None
        self.digest = 0

    def take(self, topic, payload, qos, life):
        """A message came; `life` counts how often the broker has lost its sessions."""
        if topic in GREETINGS:
            return
        message = (topic, payload)
        self._sum_up(message, life)
        if qos:
            self.times[message] = self.times.get(message, 0) + 1
        own = numbered(topic, payload)
        if own and message in self._lives:
            must(message == self._last, "{} again, out of turn", message)
            must(qos, "QoS 0 came twice: {}", message)
            must(qos < 2 or self._lives[message] != life, "QoS 2 came twice: {}", message)
        elif own:
            self._in_order(own)
        self._lives[message] = life
        if qos or own:
            self._last = message

    def highest(self, stream):
        """The last number of a stream that came, or -1."""
        return self._highest.get(stream, -1)

    def _in_order(self, own):
        for stream, number in own:
            highest = self.highest(stream)
            must(number > highest, "stream {}: {} behind {}", stream, number, highest)
            self._highest[stream] = number
            self.numbers.add(number)

    def _sum_up(self, message, life):
        if message[0] in _MESSAGES or message[0] == DATA:
            for byte in message[1][:10]:
                self.digest = self.digest * 33 + byte + life & 0xFFFFFF
