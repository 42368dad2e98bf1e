"""Traffic: what a month of readings puts on the wire, and its price. Pure calculation.

While the link is up a batch is closed at `max_readings`, at `max_age_ms`, or with its page, and a
page leaves as soon as a batch in it is closed. `cycle` follows the packer from scan to scan until
its state comes again; a month is that cycle, as often as it goes into 30 days. Each batch is one
message, and costs

    PUBLISH   1 + bytes of the remaining length + 2 + topic + 2 + payload   (MQTT 3.1.1, QoS 1)
    PUBACK    4
    TCP/IP    40 for each segment: ceil(PUBLISH / 1440) and one for the PUBACK

One message is in flight at a time, so the next PUBLISH carries the acknowledgement of the PUBACK
before it; only the last of a burst needs a segment of its own, 40. Between two bursts that are
more than half a keepalive apart go pings, each 2 + 2 and three segments.

Assumed: IPv4 and TCP headers without options, the ESP32's segment size of 1440, no TLS, nothing
lost and sent again, no reconnects. Health messages, alerts and announcements are not in it. A
price is in dollars a megabyte of 1,000,000 bytes, up and down alike.
"""

from dataclasses import dataclass
from math import ceil

from tools.sizing import DEFAULTS, MESSAGE_HEAD, Framing, Plan, framing

TOPIC = f"{DEFAULTS['mqtt.prefix']}/{DEFAULTS['device.name']}/data"
KEEPALIVE_S = DEFAULTS["mqtt.keepalive_s"]
MONTH_S = 30 * 86400
MEGABYTE = 1000000

HEALTH_PERIOD_S = DEFAULTS["health.period_s"]

_TCP_IP = 40
_SEGMENT = 1440
_POLL = 64  # items that firmware.app has packed in one turn
_PUBACK = 4
_PING = 2
_HEALTH = 1200  # about what a health message has


@dataclass(frozen=True)
class Month:
    """A month of readings: numbers of messages and pings, and bytes by what they are for."""

    messages: float
    pings: float
    payload: float
    mqtt: float
    tcp_ip: float
    keepalive: float

    @property
    def total(self) -> float:
        """All bytes, in both directions."""
        return self.payload + self.mqtt + self.tcp_ip + self.keepalive

    def price(self, per_mb: float) -> float:
        """The month in dollars, at so many dollars a megabyte."""
        return self.total / MEGABYTE * per_mb


def month(plan: Plan, keepalive_s: int = KEEPALIVE_S) -> Month:
    """A month with the link up throughout."""
    length_ms, batches = cycle(plan)
    times = MONTH_S * 1000 / length_ms
    moments = sorted({at for at, _ in batches})
    published = [publish_bytes(payload) for _, payload in batches]
    sent = sum(segments(size) + 1 for size in published) + len(moments)
    payload = sum(size for _, size in batches)
    pings = _pings(moments, length_ms, keepalive_s * 500)
    return Month(
        messages=times * len(batches),
        pings=times * pings,
        payload=times * payload,
        mqtt=times * (sum(published) - payload + _PUBACK * len(batches)),
        tcp_ip=times * _TCP_IP * sent,
        keepalive=times * pings * (2 * _PING + 3 * _TCP_IP),
    )


def health_month(period_s: int = HEALTH_PERIOD_S) -> float:
    """About the bytes that a month of health messages adds, each of them a burst of its own."""
    size = publish_bytes(_HEALTH)
    return MONTH_S / period_s * (size + _PUBACK + _TCP_IP * (segments(size) + 2))


def publish_bytes(payload: int, topic: str = TOPIC) -> int:
    """The bytes of a PUBLISH at QoS 1."""
    remaining = 2 + len(topic.encode()) + 2 + payload
    return 1 + ceil(remaining.bit_length() / 7) + remaining


def segments(size: int) -> int:
    """How many TCP segments so many bytes take."""
    return ceil(size / _SEGMENT)


def cycle(plan: Plan) -> tuple[int, list[tuple[int, int]]]:
    """Milliseconds until the batches repeat themselves; (moment in ms, bytes) of each of them."""
    bytes_of = framing(plan)
    packer = _Packer(plan, bytes_of)
    seen: dict[tuple, tuple[int, int]] = {}
    scan = 0
    while True:
        now = scan * plan.period_ms
        # A scan at the very moment that a batch comes of age is still taken into it.
        packer.close_older_than(now, plan.max_age_ms)
        state = (scan % bytes_of.round, packer.state(now))
        if state in seen:
            since, first = seen[state]
            return now - since, packer.closed[first:]
        seen[state] = (now, len(packer.closed))
        packer.add_scan(scan, now)
        scan += 1


def drain_seconds(pages: int, payload: int, rtt_s: float, bits_per_s: float) -> float:
    """How long a full ring takes to go out, a message a page of `payload` bytes, one in flight.

    Each takes a round trip, and its bytes the time the rate gives them (infinite: none).
    Readings that come meanwhile are not in it.
    """
    size = publish_bytes(payload)
    on_wire = size + _TCP_IP * segments(size)
    return pages * (rtt_s + 8 * on_wire / bits_per_s)


class _Packer:
    """One lane of the packer, by the numbers: what is in the open batch, and what was closed.

    A batch that is begun right behind another has the rest of its page. With the end of the poll
    what is closed leaves, and so does the page: the next batch begins a page of its own.
    """

    def __init__(self, plan: Plan, bytes_of: Framing):
        self._plan = plan
        self._bytes_of = bytes_of
        self._page = plan.page - MESSAGE_HEAD
        self._rest = 0  # of the page that the last batch is in, while that has not left
        self._follows = self._left = False  # the open batch: behind another, and that one has left
        self._limit = self._opened = 0
        self.count = self.size = 0
        self.closed: list[tuple[int, int]] = []

    def state(self, now: int) -> tuple:
        """All that matters for what comes."""
        if not self.count:
            return ()
        return self.count, self.size, self._limit, self._left, now - self._opened

    def close_older_than(self, now: int, age: int) -> None:
        """Close the open batch if it is older than `age`, at the moment when it came of age."""
        if self.count and now - self._opened > age:
            self._close(self._opened + age)
            self._end_poll()

    def add_scan(self, scan: int, now: int) -> None:
        """Take in all readings of a scan, as many a poll as the packer does."""
        for first in range(0, self._plan.tags, _POLL):
            offset, end = first, min(first + _POLL, self._plan.tags)
            while offset < end:
                offset += self._add(scan, now, offset, end - offset)
            self._end_poll()

    def _add(self, scan: int, now: int, offset: int, most: int) -> int:
        """Put up to `most` readings into the open batch, or close it; how many were put."""
        bytes_of = self._bytes_of
        if not self.count:
            self._open(now, offset)
        size = self.size
        if not self.count or (offset == 0 and bytes_of.opens_group(scan)):
            size += bytes_of.group
        fitting = bytes_of.fitting(offset, self._limit - size)
        taken = min(fitting, most, self._plan.max_readings - self.count)
        if taken:
            self.count += taken
            self.size = size + bytes_of.upto[offset + taken] - bytes_of.upto[offset]
        if not taken or self.count == self._plan.max_readings:
            self._close(now)
        return taken

    def _open(self, now: int, offset: int) -> None:
        bytes_of = self._bytes_of
        self.size = bytes_of.head
        first = bytes_of.head + bytes_of.group + bytes_of.upto[offset + 1] - bytes_of.upto[offset]
        self._follows = self._rest >= max(self._page // 16, first)
        self._limit = self._rest if self._follows else self._page
        self._left = False
        self._opened = now

    def _close(self, at: int) -> None:
        self.closed.append((at, self.size))
        self._rest = 0 if self._left else self._limit - self.size - MESSAGE_HEAD
        self.count = self.size = 0

    def _end_poll(self) -> None:
        self._rest = 0
        self._left = self._left or self._follows


def _pings(moments: list[int], length_ms: int, half_ms: int) -> int:
    """How many pings go out in a cycle, at each half keepalive that nothing else was heard."""
    if not half_ms:
        return 0
    after = [*moments[1:], moments[0] + length_ms]
    gaps = [later - earlier for earlier, later in zip(moments, after, strict=True)]
    return sum(ceil(gap / half_ms) - 1 for gap in gaps)
