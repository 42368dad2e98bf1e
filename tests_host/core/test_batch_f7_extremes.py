"""0xF7 batches at the ends of what seed 004's table allows, worked out by hand (SPEC §5).

The common cases, empty batches and malformed ones are in test_batch_f7.
"""

from millpond.batch import BatchError, F7Writer, count_readings, decode_f7, interpret
from millpond.reading import (
    BOOL,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    pack_reading,
)
from tests_host.core.batch_kit import START, clock_set, record, written
from tests_host.kit import raises

LATEST = 4102444799  # the last second a clock can know, 0xF48656FF

# type u16, serial u32
DEVICE = b"\xff\xff" b"\xff\xff\xff\xff"  # fmt: skip

# Kind, value, and its bytes.
ENDS = (
    (BOOL, False, b"\x00"),
    (BOOL, True, b"\x01"),
    (INT8, -128, b"\x80"),
    (INT8, -1, b"\xff"),
    (INT8, 127, b"\x7f"),
    (UINT8, 0, b"\x00"),
    (UINT8, 255, b"\xff"),
    (INT16, -32768, b"\x80\x00"),
    (INT16, -2, b"\xff\xfe"),
    (INT16, 32767, b"\x7f\xff"),
    (UINT16, 0, b"\x00\x00"),
    (UINT16, 65535, b"\xff\xff"),
    (INT32, -2147483648, b"\x80\x00\x00\x00"),
    (INT32, -1073741825, b"\xbf\xff\xff\xff"),
    (INT32, 1073741824, b"\x40\x00\x00\x00"),
    (INT32, 2147483647, b"\x7f\xff\xff\xff"),
    (UINT32, 0, b"\x00\x00\x00\x00"),
    (UINT32, 1073741824, b"\x40\x00\x00\x00"),
    (UINT32, 4294967295, b"\xff\xff\xff\xff"),
    (FLOAT32, 0.0, b"\x00\x00\x00\x00"),
    (FLOAT32, -0.0, b"\x80\x00\x00\x00"),
    (FLOAT32, 1, b"\x3f\x80\x00\x00"),
    (FLOAT32, -2.5, b"\xc0\x20\x00\x00"),
    (FLOAT32, 2.0**-126, b"\x00\x80\x00\x00"),
    (FLOAT32, (2 - 2.0**-23) * 2.0**127, b"\x7f\x7f\xff\xff"),
    (FLOAT32, float("inf"), b"\x7f\x80\x00\x00"),
    (FLOAT32, float("-inf"), b"\xff\x80\x00\x00"),
)

# A group's timestamp, device and number of values, for the moment START.
HEAD = b"\xf7" b"\x00\x00\x00\x01" b"\x65\xe2\x6c\x00" + DEVICE  # fmt: skip


def writer():
    return F7Writer(65535, 4294967295)


def test_every_type_at_its_lowest_and_highest():
    for kind, value, raw in ENDS:
        golden = HEAD + b"\x00\x00\x00\x01" b"\xff\xff" b"\x00" b"\x01"  # fmt: skip
        golden += bytes((len(raw),)) + raw
        assert written(writer(), [record(65535, kind, value)], clock_set()) == golden, value
        ((timestamp, device, serial, values),) = decode_f7(golden)
        assert (timestamp, device, serial) == (START, 65535, 4294967295)
        assert values == [(65535, 0, len(raw), raw)]
        (back,) = interpret(kind, len(raw), raw)
        assert back == value and isinstance(back, (bool, int, float))
        assert str(back) == str(float(value)) or kind != FLOAT32  # -0.0


def test_a_float_that_is_no_number():
    golden = HEAD + b"\x00\x00\x00\x01" b"\x00\x01" b"\x00" b"\x01" b"\x04"  # fmt: skip
    golden += b"\x7f\xc0\x00\x00"
    assert written(writer(), [record(1, FLOAT32, float("nan"))], clock_set()) == golden
    (back,) = interpret(FLOAT32, 4, decode_f7(golden)[0][3][0][3])
    assert back != back


def test_every_type_with_two_values_and_with_255():
    for kind, value, raw in ENDS:
        for count in (2, 255):
            golden = HEAD + b"\x00\x00\x00\x01" b"\x00\x07" b"\x00"  # fmt: skip
            golden += bytes((count, len(raw))) + raw * count
            reading = record(7, kind, [value] * count) if count == 2 else long(kind, value, count)
            assert written(writer(), [reading], clock_set(), 1100) == golden
            assert decode_f7(golden)[0][3] == [(7, 0, len(raw), raw * count)]
            assert interpret(kind, len(raw), raw * count) == (value,) * count


def long(kind, value, count):
    """The record of a reading that needs more room than batch_kit gives."""
    buf = bytearray(1100)
    return bytes(buf[: pack_reading(buf, 0, 7, kind, (value,) * count, 0)])


def test_every_status():
    readings = [record(status, UINT8, None, 0, status) for status in range(1, 256)]
    golden = HEAD + b"\x00\x00\x00\xff"
    for status in range(1, 256):
        golden += b"\x00" + bytes((status, status))
    assert written(writer(), readings, clock_set(), 800) == golden
    assert decode_f7(golden)[0][3] == [(status, status, 0, b"") for status in range(1, 256)]
    assert count_readings(golden, 0, len(golden)) == 255


def test_more_values_in_a_group_and_more_groups_than_a_byte_counts():
    value = b"\x00\x01" b"\x00" b"\x01" b"\x01" b"\x09"  # fmt: skip
    golden = HEAD + b"\x00\x00\x01\x2c" + value * 300
    assert written(writer(), [record(1, UINT8, 9)] * 300, clock_set(), 2000) == golden
    assert decode_f7(golden)[0][3] == [(1, 0, 1, b"\x09")] * 300
    golden = b"\xf7" b"\x00\x00\x01\x2c"  # fmt: skip
    for n in range(300):
        # START is 0x65E26C00, so that its last two bytes take all the seconds.
        golden += b"\x65\xe2" + bytes((0x6C + (n >> 8), n & 255)) + DEVICE
        golden += b"\x00\x00\x00\x01" + value
    readings = [record(1, UINT8, 9, n) for n in range(300)]
    assert written(writer(), readings, clock_set(), 6005) == golden
    assert [group[0] for group in decode_f7(golden)] == [START + n for n in range(300)]
    assert count_readings(golden, 0, len(golden)) == 300


def test_first_and_last_moments():
    value = b"\x00\x00\x00\x01" b"\x00\x01" b"\x00" b"\x01" b"\x01" b"\x09"  # fmt: skip
    for unix, seconds, stamp in (
        (0, 0, b"\x00\x00\x00\x00"),
        (0, 999999999, b"\x3b\x9a\xc9\xff"),
        (START, 65535, b"\x65\xe3\x6b\xff"),
        (LATEST, 0, b"\xf4\x86\x56\xff"),
    ):
        golden = b"\xf7" b"\x00\x00\x00\x01" + stamp + DEVICE + value  # fmt: skip
        assert written(writer(), [record(1, UINT8, 9, seconds)], clock_set(unix)) == golden
        assert decode_f7(golden)[0][0] == unix + seconds


def test_largest_batch_that_a_page_can_hold():
    """65,528 bytes: 21,836 statuses, 0x554C, and a byte that no reading fits."""
    count, limit = 21836, 65528
    buf = bytearray(limit)
    one = writer()
    one.begin(buf, 0, limit)
    status = record(0x0102, UINT8, None, 0, 3)
    clock = clock_set()
    for _ in range(count):
        assert one.add(status, 0, clock)
    assert not one.add(status, 0, clock) and one.count == count
    length = one.end()
    assert length == limit - 1 and buf[:19] == HEAD + b"\x00\x00\x55\x4c"
    assert buf[19:length] == b"\x01\x02\x03" * count and buf[length:] == b"\x00"
    assert count_readings(buf, 0, length) == count
    ((timestamp, _, _, values),) = decode_f7(memoryview(buf)[:length])
    assert timestamp == START and len(values) == count
    assert values[0] == values[-1] == (0x0102, 3, 0, b"")
    assert "1 bytes after the last group" in raises(BatchError, decode_f7, buf)


def test_empty_groups_between_full_ones():
    empty = b"\xff\xff\xff\xff" + DEVICE + b"\x00\x00\x00\x00"
    full = b"\x00\x00\x00\x00" b"\x00\x00" b"\x00\x00\x00\x00" b"\x00\x00\x00\x01"  # fmt: skip
    full += b"\x00\x00\x01"
    golden = b"\xf7" b"\x00\x00\x00\x05" + empty + full + empty + full + empty  # fmt: skip
    no_one = (4294967295, 65535, 4294967295, [])
    some = (0, 0, 0, [(0, 1, 0, b"")])
    assert decode_f7(golden) == [no_one, some, no_one, some, no_one]
    assert count_readings(golden, 0, len(golden)) == 2
    for length in range(len(golden)):
        raises(BatchError, decode_f7, golden[:length])


def test_reading_without_values_of_each_size():
    for size in (1, 2, 4):
        golden = HEAD + b"\x00\x00\x00\x01" b"\x00\x05" b"\x00" b"\x00"  # fmt: skip
        golden += bytes((size,))
        assert decode_f7(golden)[0][3] == [(5, 0, size, b"")]
        assert interpret({1: UINT8, 2: INT16, 4: FLOAT32}[size], size, b"") == ()
