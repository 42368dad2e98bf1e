"""The reader of 0xF7 batches, given 200,000 inputs that are wrong, or nearly right (SPEC §5).

Each must be refused with BatchError or be read rightly, which a second reader judges (f7.py) and
writing it again proves. Time is bounded in steps executed, and memory in bytes at the peak, both by
the input's size; a reader that goes on beyond that is stopped and fails.
"""

import sys
import tracemalloc
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.batch import BatchError, decode_f7
from millpond.batch_f7 import count_f7, restamp_f7
from millpond.clock import Clock
from tests_host.models import f7
from tests_host.models.conftest import SOAK, examples

INPUTS = 200_000
BATCHES = 340
STRAYS = 1500

START = 1709337600
MARGIN = b"\xa5" * 16

# What the reader may take for an input of n bytes, the second number times n.
CALLS = 16, 2
LINES = 60, 8
BYTES = 4096, 64

u8, u16, u32 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32))
statuses = st.tuples(u16, st.integers(1, 255), st.just(0), st.just(b""))
readings = st.sampled_from((1, 2, 4)).flatmap(
    lambda size: st.tuples(
        u16,
        st.just(0),
        st.just(size),
        st.integers(0, 3).flatmap(lambda n: st.binary(min_size=n * size, max_size=n * size)),
    )
)
values = st.lists(st.one_of(statuses, readings), max_size=4)
batches = st.lists(st.tuples(u32, u16, u32, values), min_size=1, max_size=3)
strays = st.one_of(
    st.binary(max_size=40),
    st.binary(max_size=80).map(lambda data: b"\xf7\0\0\0\x01" + data),
    st.tuples(st.binary(min_size=10, max_size=10), u8, st.binary(max_size=60)).map(
        lambda part: b"\xf7\0\0\0\x01" + part[0] + bytes((0, 0, 0, part[1] % 16)) + part[2]
    ),
    # Statuses and single bytes only: nearly anything is a value.
    st.lists(st.sampled_from((b"\0\1\7", b"\0\2\0\1\1\5", b"\0\0\0\0\4")), max_size=20).map(
        lambda parts: b"\xf7\0\0\0\1" + bytes(13) + bytes((len(parts),)) + b"".join(parts)
    ),
)


def damaged(data):
    """A batch cut short everywhere, with every bit flipped, and every byte gone or doubled."""
    for i in range(len(data)):
        yield data[:i]
        yield data[:i] + data[i + 1 :]
        yield data[:i] + data[i : i + 1] + data[i:]
        for bit in range(8):
            yield data[:i] + bytes((data[i] ^ 1 << bit,)) + data[i + 1 :]


def misled(data, places):
    """A batch with other numbers where they steer the reader, and batches run into each other."""
    for at, size in places:
        number = int.from_bytes(data[at : at + size], "big")
        top = (1 << 8 * size) - 1
        for other in {0, 1, 2, 3, number + 1, number - 1, number * 2, top, top >> 1, top - 1}:
            yield data[:at] + (other & top).to_bytes(size, "big") + data[at + size :]
        yield data[:at] + data[: at + 1]
        yield data[at:] + data
    yield data + b"\0"
    yield data + data


def within(limit, data):
    return limit[0] + limit[1] * len(data)


class Steps:
    """Counts what a call executes, in function calls or in lines, and stops it beyond a limit."""

    def __init__(self):
        self.left = 0

    def run(self, call, *args, limit, by_line=False):
        self.left = limit
        tracer = sys.gettrace()
        sys.settrace(self.see_line if by_line else self.see_call)
        try:
            return call(*args)
        finally:
            sys.settrace(tracer)

    def see_call(self, frame, event, arg):
        self.left -= 1
        if self.left < 0:
            raise AssertionError("too many steps for an input of that size")

    def see_line(self, frame, event, arg):
        self.see_call(frame, event, arg)
        return self.see_line


def peak(call, *args):
    """How many bytes a call takes at the most."""
    tracemalloc.start()
    try:
        call(*args)
    except BatchError:
        pass
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return taken


class Reader:
    """Gives inputs to the reader of the core and judges what comes of it."""

    def __init__(self):
        self.steps = Steps()
        self.read = self.refused = 0
        self.clock = Clock(lambda: 0)
        self.clock.set_unix(START)

    def see(self, data, closely=False):
        """Have `data` read; `closely`: in lines and bytes."""
        try:
            expected = f7.read(data)
        except f7.Malformed:
            expected = None
        seen = self.read + self.refused
        given = (bytes, bytearray, memoryview)[seen % 3](data)
        try:
            groups = self.steps.run(decode_f7, given, limit=within(CALLS, data))
        except BatchError as error:
            assert str(error)
            groups = None
        assert groups == expected, f"{data!r}: {groups} read, {expected} expected"
        if groups is None:
            self.refused += 1
        else:
            self.read += 1
            assert f7.write(groups)[0] == data
        closely = closely or seen % 16 == 0
        self.see_in_place(data, groups, closely)
        if closely:
            self.measure(data)

    def measure(self, data):
        with suppress(BatchError):
            self.steps.run(decode_f7, data, limit=within(LINES, data), by_line=True)
        taken = peak(decode_f7, data)
        assert taken <= within(BYTES, data), f"{taken} bytes of memory for {data!r}"

    def see_in_place(self, data, groups, closely):
        """What counts and stamps a stored batch ends, and stays within it, whatever is there."""
        buf = bytearray(MARGIN + data + MARGIN)
        at = len(MARGIN)
        if closely:
            limits = {"limit": within(LINES, data), "by_line": True}
            self.steps.run(restamp_f7, bytearray(buf), at, len(data), self.clock, **limits)
            self.steps.run(count_f7, buf, at, len(data), **limits)
        count = count_f7(buf, at, len(data))
        assert buf == MARGIN + data + MARGIN
        restamp_f7(buf, at, len(data), self.clock)
        assert len(buf) == len(data) + 2 * at
        assert buf[:at] == buf[-at:] == MARGIN
        if groups is None:
            return
        assert count == sum(len(group[3]) for group in groups)
        for before, after in zip(groups, f7.read(buf[at:-at]), strict=True):
            assert after[0] == before[0] + (START if before[0] < 0x3C000000 else 0)
            assert after[1:] == before[1:]


def test_200_000_inputs_are_read_rightly_or_refused():
    reader = Reader()

    @settings(max_examples=examples(BATCHES))
    @given(batches)
    def see_batch(groups):
        data, places = f7.write(groups)
        reader.see(data, closely=True)
        for other in misled(data, places):
            reader.see(other, closely=True)
        for other in damaged(data):
            reader.see(other)

    @settings(max_examples=examples(STRAYS))
    @given(strays)
    def see_stray(data):
        reader.see(data, closely=True)

    see_batch()
    see_stray()
    assert reader.read + reader.refused >= INPUTS * max(1, SOAK)
    assert reader.read >= INPUTS // 10 and reader.refused >= INPUTS // 10
