"""Sizing: how long a ring lasts when nothing leaves it. Pure calculation, nothing is read or drawn.

While the link is down the packer writes one batch into each page and goes on until the next
reading does not fit. A page of `page` bytes spends 8 on the message's header, so that `n` readings
in `g` groups fit it when

    head + g * group + (the bytes of each reading) <= page - 8

    0xF7    head 5, group 14 (a moment, and again where a scan goes on in the next page),
            each reading 5 + the size of its kind
    JSON    head 1, group 0, each reading the length of its object and of a comma

The bytes are not written down here: `framing` measures them on the core's own writers. What is
left over at the end of a page is smaller than a reading and stays empty. All pages but the work
page are used; the first reading is lost when a page more is wanted than there are:

    readings = the sum over all pages of the n that fit
    retention = floor(readings / tags) * period

which is the longest outage that is sure to cost nothing, counted in whole scans.

Assumed: one value a reading, tags numbered from 1, all tags of a scan read at the same moment
(sensors that read at different seconds pay a group each), an empty ring at the start, and nothing
of higher priority than readings. Health messages are of lower priority and give way.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, islice
from math import gcd

from firmware import config
from tools._core import Clock, batch

F7 = "f7"
JSON = "json"
ENCODINGS = (F7, JSON)
LIMITS = {row[0]: row[3] for row in config.TABLE}
DEFAULTS = {row[0]: row[1] for row in config.TABLE}

MESSAGE_HEAD = 8
MIN_PAGES = 3
MAX_PAGES = 65534
MIN_PAGE = 64
MAX_PAGE = 65536
MAX_TAGS = 65535
MIN_PERIOD_MS = 10
MAX_PERIOD_MS = 86400000

# JSON writes a value's digits: for an integer the most its kind has, for a float those of seed 004.
_SAMPLES = {
    "bool": False,
    "int8": -128,
    "uint8": 255,
    "int16": -32768,
    "uint16": 65535,
    "int32": -2147483648,
    "uint32": 4294967295,
    "float32": 23.7,
}


@dataclass(frozen=True)
class Plan:
    """What is to be sized; ValueError names the value and the limit.

    `buffer` and `page` are bytes, times are milliseconds. `value` is a typical value of the kind,
    whose digits JSON writes; None for the one in _SAMPLES. `max_readings` and `max_age_ms` close
    a batch while the link is up. The defaults are the case of seed 004.
    """

    tags: int = 200
    period_ms: int = 60000
    buffer: int = 2 << 20
    encoding: str = F7
    page: int = 4096
    kind: str = "float32"
    value: float | None = None
    max_readings: int = DEFAULTS["batch.max_readings"]
    max_age_ms: int = DEFAULTS["batch.max_age_ms"]

    def __post_init__(self):
        _within("tags", self.tags, 1, MAX_TAGS)
        _within("period", self.period_ms, MIN_PERIOD_MS, MAX_PERIOD_MS, "ms")
        _within("page", self.page, MIN_PAGE, MAX_PAGE, "bytes")
        why = f"bytes in {MIN_PAGES} to {MAX_PAGES} pages of {self.page}"
        _within("buffer", self.buffer, *buffer_limits(self.page), why)
        _within("max_readings", self.max_readings, *LIMITS["batch.max_readings"])
        _within("max_age_ms", self.max_age_ms, *LIMITS["batch.max_age_ms"])
        bytes_of = framing(self)
        least = bytes_of.head + bytes_of.group + bytes_of.largest
        if self.page - MESSAGE_HEAD < least:
            raise ValueError(
                f"page {self.page}: at least {least + MESSAGE_HEAD} bytes expected"
                f" for one reading in {self.encoding}"
            )

    @property
    def pages(self) -> int:
        """How many whole pages the buffer has."""
        return self.buffer // self.page

    @property
    def sample(self) -> float:
        """The value that every reading is taken to have."""
        if self.value is None:
            return _SAMPLES[self.kind]
        return bool(self.value) if self.kind == "bool" else self.value


@dataclass(frozen=True)
class Framing:
    """The bytes of a batch: `head`, `group` for each moment, and those of the readings of a scan.

    `upto[i]` is the sum of the first i readings of a scan. The moments have whole seconds: below
    a period of 1 s several scans share one, in a pattern that repeats after `round` scans.
    """

    head: int
    group: int
    upto: list[int]
    period_ms: int

    @property
    def round(self) -> int:
        return 1 if self.period_ms >= 1000 else 1000 // gcd(self.period_ms, 1000)

    @property
    def largest(self) -> int:
        return self.upto[-1] - self.upto[-2]

    def opens_group(self, scan: int) -> bool:
        """Whether a scan is at another second than the scan before it."""
        if self.period_ms >= 1000:
            return True
        return scan * self.period_ms // 1000 != (scan - 1) * self.period_ms // 1000

    def fitting(self, offset: int, room: int) -> int:
        """How many readings of a scan, from the one at `offset` on, fit in `room` bytes."""
        if room < 0:
            return 0
        return bisect_right(self.upto, self.upto[offset] + room) - 1 - offset


@dataclass(frozen=True)
class Fill:
    """What one page holds: readings in groups, in `used` bytes of its payload."""

    readings: int
    groups: int
    used: int


@dataclass(frozen=True)
class Retention:
    """What a full ring holds, until its first loss; `spent` says for what its bytes went."""

    pages: int
    readings: int
    scans: int
    seconds: float
    spent: dict[str, int]


@lru_cache(maxsize=16)
def framing(plan: Plan) -> Framing:
    """The bytes of a plan's batches, as its encoding's writer makes them."""
    kind = batch.kind_of(plan.kind)

    def length(*readings: tuple[int, int]) -> int:
        return _length(plan.encoding, kind, plan.sample, readings)

    first = length((1, 0))
    each = length((1, 0), (1, 0)) - first
    group = length((1, 0), (1, 1)) - first - each
    by_digits = [length((1, 0), (10**more, 0)) - first for more in range(5)]
    sizes = [by_digits[len(str(tag)) - 1] for tag in range(1, plan.tags + 1)]
    upto = list(accumulate(sizes, initial=0))
    return Framing(first - each - group, group, upto, plan.period_ms)


def fills(plan: Plan) -> Iterator[Fill]:
    """Page after page, without end, what each holds while the link is down."""
    bytes_of = framing(plan)
    known: dict[tuple[int, int], tuple[Fill, int, int]] = {}
    at = (0, 0)
    while True:
        if at not in known:
            known[at] = _fill(bytes_of, plan.page - MESSAGE_HEAD, *at)
        fill, scan, offset = known[at]
        yield fill
        at = (scan, offset)


def retention(plan: Plan) -> Retention:
    """What the plan's ring holds, and for how long it lasts."""
    held = list(islice(fills(plan), plan.pages))
    readings = sum(fill.readings for fill in held)
    scans = readings // plan.tags
    bytes_of = framing(plan)
    heads = bytes_of.head * plan.pages
    groups = bytes_of.group * sum(fill.groups for fill in held)
    used = sum(fill.used for fill in held)
    spent = {
        "readings": used - heads - groups,
        "group headers": groups,
        "batch headers": heads,
        "message headers": MESSAGE_HEAD * plan.pages,
        "left empty": plan.buffer - used - MESSAGE_HEAD * plan.pages,
    }
    seconds = scans * plan.period_ms / 1000
    return Retention(plan.pages, readings, scans, seconds, spent)


def curve(plan: Plan, least: int, most: int, points: int) -> list[tuple[int, float]]:
    """(bytes of the buffer, retention in seconds) from `least` to `most` bytes.

    At most `points` of them, at buffers of whole pages spaced by equal ratios.
    """
    first = max(MIN_PAGES, least // plan.page)
    last = min(MAX_PAGES, max(first, most // plan.page))
    held = list(accumulate(fill.readings for fill in islice(fills(plan), last)))
    ratio = (last / first) ** (1 / max(1, points - 1))
    counts = sorted({min(last, round(first * ratio**i)) for i in range(points)})
    period_s = plan.period_ms / 1000
    return [(n * plan.page, held[n - 1] // plan.tags * period_s) for n in counts]


def side_by_side(plan: Plan) -> list[Plan]:
    """The plan, and behind it the same in each other encoding that its pages have room for."""
    plans = [plan]
    for encoding in ENCODINGS:
        if encoding != plan.encoding:
            with suppress(ValueError):
                plans.append(replace(plan, encoding=encoding))
    return plans


def buffer_limits(page: int) -> tuple[int, int]:
    """The least and the most bytes of a ring with pages of `page` bytes."""
    return MIN_PAGES * page, (MAX_PAGES + 1) * page - 1


def _within(name: str, value: int, least: int, most: int, unit: str = "") -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} {value}: {least} to {most} {unit}".rstrip() + " expected")


def _length(encoding: str, kind: int, value: float, readings: tuple) -> int:
    """Bytes of a batch of readings (tag id, second), as the writer makes it."""
    clock = Clock(lambda: 0)
    writer = batch.make_writer(encoding, 0, 0)
    buf, record = bytearray(512), bytearray(16)
    writer.begin(buf, 0, len(buf))
    for tag_id, second in readings:
        batch.pack_reading(record, 0, tag_id, kind, value, second)
        writer.add(record, 0, clock)
    return writer.end()


def _fill(bytes_of: Framing, payload: int, scan: int, offset: int) -> tuple[Fill, int, int]:
    """Fill a page from the reading at `offset` of `scan` on; where in the round the next begins."""
    tags = len(bytes_of.upto) - 1
    room = payload - bytes_of.head
    readings = groups = 0
    while True:
        new = not groups or (offset == 0 and bytes_of.opens_group(scan))
        after = room - bytes_of.group if new else room
        fitting = bytes_of.fitting(offset, after)
        if not fitting:
            break
        groups += new
        readings += fitting
        room = after - (bytes_of.upto[offset + fitting] - bytes_of.upto[offset])
        offset += fitting
        if offset < tags:
            break
        offset = 0
        scan = (scan + 1) % bytes_of.round
    return Fill(readings, groups, payload - room), scan, offset
