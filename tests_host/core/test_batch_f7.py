"""0xF7 batches, byte for byte as seed 004's table has them (SPEC §5)."""

from millpond.batch import BatchError, F7Writer, count_readings, decode, decode_f7, restamp
from millpond.reading import BOOL, FLOAT32, INT8, INT16, INT32, UINT8, UINT16, UINT32
from tests_host.core.batch_kit import FLOAT_237, START, clock_set, record, written
from tests_host.kit import no_alloc, raises

DEVICE_TYPE = 0x0102
SERIAL = 0xA3040506

# Worked out by hand from the table: two groups of 8 and 3 values.
GOLDEN = (
    b"\xf7" b"\x00\x00\x00\x02"
    b"\x65\xe2\x6c\x00" b"\x01\x02" b"\xa3\x04\x05\x06" b"\x00\x00\x00\x08"
    b"\x00\x01" b"\x00" b"\x01" b"\x01" b"\x01"
    b"\x00\x02" b"\x00" b"\x01" b"\x01" b"\xfe"
    b"\x00\x03" b"\x00" b"\x01" b"\x01" b"\xfe"
    b"\x00\x04" b"\x00" b"\x02" b"\x02" b"\xff\xfe" b"\x01\x00"
    b"\x00\x05" b"\x00" b"\x01" b"\x02" b"\xab\xcd"
    b"\x00\x06" b"\x00" b"\x01" b"\x04" b"\xff\xff\xff\xfe"
    b"\x00\x07" b"\x00" b"\x01" b"\x04" b"\xab\xcd\xef\x01"
    b"\x00\x2a" b"\x00" b"\x01" b"\x04" b"\x41\xbd\x99\x9a"
    b"\x65\xe2\x6c\x01" b"\x01\x02" b"\xa3\x04\x05\x06" b"\x00\x00\x00\x03"
    b"\xff\xfe" b"\x03"
    b"\x00\x08" b"\x00" b"\x03" b"\x01" b"\x01\x02\x03"
    b"\x00\x00" b"\xff"
)  # fmt: skip

GOLDEN_GROUPS = [
    (
        START,
        DEVICE_TYPE,
        SERIAL,
        [
            (1, 0, 1, b"\x01"),
            (2, 0, 1, b"\xfe"),
            (3, 0, 1, b"\xfe"),
            (4, 0, 2, b"\xff\xfe\x01\x00"),
            (5, 0, 2, b"\xab\xcd"),
            (6, 0, 4, b"\xff\xff\xff\xfe"),
            (7, 0, 4, b"\xab\xcd\xef\x01"),
            (42, 0, 4, FLOAT_237),
        ],
    ),
    (
        START + 1,
        DEVICE_TYPE,
        SERIAL,
        [(0xFFFE, 3, 0, b""), (8, 0, 1, b"\x01\x02\x03"), (0, 255, 0, b"")],
    ),
]


def golden_records():
    return [
        record(1, BOOL, True),
        record(2, INT8, -2),
        record(3, UINT8, 254),
        record(4, INT16, [-2, 256]),
        record(5, UINT16, 0xABCD),
        record(6, INT32, -2),
        record(7, UINT32, 0xABCDEF01),
        record(42, FLOAT32, 23.7),
        record(0xFFFE, FLOAT32, None, 1, 3),
        record(8, UINT8, (1, 2, 3), 1),
        record(0, BOOL, None, 1, 255),
    ]


def group(timestamp, number, values=b""):
    """A group's bytes, its numbers given as bytes."""
    return timestamp + b"\x01\x02" + b"\xa3\x04\x05\x06" + number + values


def test_seed_004_writer_is_bit_exact():
    writer = F7Writer(DEVICE_TYPE, SERIAL)
    assert written(writer, golden_records(), clock_set()) == GOLDEN
    assert writer.count == 11 and not writer.unstamped


def test_seed_004_reader_gives_every_field():
    assert decode_f7(GOLDEN) == GOLDEN_GROUPS
    assert decode(GOLDEN) == GOLDEN_GROUPS
    assert decode(memoryview(bytearray(GOLDEN))) == GOLDEN_GROUPS


def test_seed_004_fifty_float_readings_take_about_as_much_as_promised():
    # 5 + 14 + 50 x 9: one float32 reading is 9 bytes.
    records = [record(tag_id, FLOAT32, 23.7) for tag_id in range(50)]
    assert len(written(F7Writer(1, 1), records, clock_set())) == 469


def test_writer_can_be_used_again_and_starts_afresh():
    writer = F7Writer(DEVICE_TYPE, SERIAL)
    written(writer, [record(1, UINT8, 1)], clock_set(0))
    assert writer.unstamped
    assert written(writer, golden_records(), clock_set()) == GOLDEN
    assert not writer.unstamped
    assert written(writer, [], clock_set()) == b"\xf7\0\0\0\0"
    assert writer.count == 0


def test_readings_are_grouped_by_consecutive_seconds_and_never_reordered():
    records = [record(tag_id, UINT8, 0, second) for tag_id, second in enumerate((5, 5, 6, 5))]
    groups = decode_f7(written(F7Writer(1, 2), records, clock_set()))
    seen = [(group[0] - START, [value[0] for value in group[3]]) for group in groups]
    assert seen == [(5, [0, 1]), (6, [2]), (5, [3])]


def test_writer_knows_what_fits_and_changes_nothing_when_it_does_not():
    clock = clock_set()
    one = record(1, UINT32, 1)
    later = record(1, UINT32, 1, 1)
    status = record(1, UINT32, None, 0, 7)
    batch_head, group_head, value = 5, 14, 9
    cases = (
        ([], one, batch_head + group_head + value),
        ([one], one, batch_head + group_head + 2 * value),
        ([one], later, batch_head + 2 * group_head + 2 * value),
        ([one], status, batch_head + group_head + value + 3),
    )
    for before, last, exact in cases:
        alone = written(F7Writer(1, 2), before, clock)
        for limit in range(len(alone), exact + 2):
            buf = bytearray(b"\xee" * 100)
            writer = F7Writer(1, 2)
            writer.begin(buf, 10, limit)
            for item in before:
                assert writer.add(item, 0, clock)
            fits = writer.add(last, 0, clock)
            assert fits == (limit >= exact), (limit, exact)
            length = writer.end()
            assert length == (exact if fits else len(alone))
            if not fits:
                assert buf[10 : 10 + length] == alone and writer.count == len(before)
            assert buf[:10] == b"\xee" * 10
            assert buf[10 + length :] == b"\xee" * (90 - length)


def test_bad_arguments_of_the_writer_name_value_and_limit():
    for args in ((65536, 0), (-1, 0), (0, 4294967296), (0, -1)):
        raises(ValueError, F7Writer, *args)
    assert "65536" in raises(ValueError, F7Writer, 65536, 0)
    writer = F7Writer(1, 2)
    buf = bytearray(20)
    for at, limit in ((0, 4), (-1, 10), (11, 10), (0, 21)):
        raises(ValueError, writer.begin, buf, at, limit)
    assert buf == bytearray(20)


def test_writing_counting_and_restamping_allocate_nothing():
    writer = F7Writer(1, 2)
    buf = bytearray(200)
    records = (
        record(1, FLOAT32, 23.7),
        record(1, INT16, [1, 2], 1),
        record(1, INT16, None, 1, 1),
    )
    unknown = clock_set(0)
    known = clock_set()
    # MicroPython allocates for a call of a closure over more than five variables.

    def use():
        writer.begin(buf, 0, 200)
        for one in records:
            writer.add(one, 0, unknown)
        length = writer.end()
        restamp(buf, 0, length, known)
        return count_readings(buf, 0, length)

    assert no_alloc(use) == 3


def test_count_readings_of_every_shape():
    clock = clock_set()
    assert count_readings(GOLDEN, 0, len(GOLDEN)) == 11
    shifted = b"xyz" + GOLDEN + b"\0\0\0\0" * 9
    assert count_readings(shifted, 3, len(GOLDEN)) == 11
    assert count_readings(b"\xf7\0\0\0\0", 0, 5) == 0
    only_statuses = [record(1, UINT8, None, second, 9) for second in range(5)]
    batch = written(F7Writer(1, 2), only_statuses, clock)
    assert count_readings(batch, 0, len(batch)) == 5


def test_counting_and_restamping_end_whatever_the_bytes_are():
    clock = clock_set()
    for at in range(5, len(GOLDEN)):
        broken = bytearray(GOLDEN)
        broken[at] = 0xFF
        count_readings(broken, 0, len(broken))
        restamp(broken, 0, len(broken), clock)
        assert len(broken) == len(GOLDEN)
    huge = b"\xf7\0\0\0\1" + group(b"\0\0\0\1", b"\xff\xff\xff\xff", b"\0\1\0\1")
    buf = bytearray(huge + b"\x11" * 20)
    restamp(buf, 0, len(huge), clock)
    assert buf[len(huge) :] == b"\x11" * 20


def test_unstamped_batch_gets_its_unix_times_in_place():
    unknown = clock_set(0)
    writer = F7Writer(DEVICE_TYPE, SERIAL)
    batch = bytearray(written(writer, golden_records(), unknown))
    assert writer.unstamped
    assert [group[0] for group in decode_f7(batch)] == [0, 1]
    restamp(batch, 0, len(batch), unknown)
    assert [group[0] for group in decode_f7(batch)] == [0, 1]
    restamp(batch, 0, len(batch), clock_set())
    assert batch == GOLDEN
    restamp(batch, 0, len(batch), clock_set(START + 77))
    assert batch == GOLDEN


def test_batch_begun_before_the_time_was_known_and_ended_after():
    clock = clock_set(0)
    buf = bytearray(100)
    writer = F7Writer(1, 2)
    writer.begin(buf, 0, 100)
    assert writer.add(record(1, UINT8, 1, 100), 0, clock)
    clock.set_unix(START)
    assert writer.add(record(2, UINT8, 2, 101), 0, clock)
    assert writer.unstamped
    length = writer.end()
    assert [group[0] for group in decode_f7(buf[:length])] == [100, START + 101]
    restamp(buf, 0, length, clock)
    assert [group[0] for group in decode_f7(buf[:length])] == [START + 100, START + 101]


def test_reader_takes_empty_batches_empty_groups_and_values_without_any():
    assert decode_f7(b"\xf7\0\0\0\0") == []
    empty = b"\xf7\0\0\0\2" + group(b"\0\0\0\1", b"\0\0\0\0") + group(b"\0\0\0\2", b"\0\0\0\0")
    assert decode_f7(empty) == [(1, DEVICE_TYPE, SERIAL, []), (2, DEVICE_TYPE, SERIAL, [])]
    none = b"\xf7\0\0\0\1" + group(b"\xff\xff\xff\xff", b"\0\0\0\1", b"\0\x09\0\0\2")
    assert decode_f7(none) == [(0xFFFFFFFF, DEVICE_TYPE, SERIAL, [(9, 0, 2, b"")])]


def test_reader_refuses_a_batch_cut_short_anywhere_and_trailing_bytes():
    for length in range(len(GOLDEN)):
        text = raises(BatchError, decode_f7, GOLDEN[:length])
        assert "the batch ends at" in text or "are left" in text or "at least 5" in text
    only = b"\xf7\0\0\0\1" + group(b"\0\0\0\1", b"\0\0\0\1", b"\0\1\0\2\4" + bytes(8))
    assert decode_f7(only)[0][3] == [(1, 0, 4, bytes(8))]
    for length in range(len(only) - 8, len(only)):
        assert "the batch ends at" in raises(BatchError, decode_f7, only[:length])
    for extra in (b"\0", b"\xf7", GOLDEN):
        assert "after the last group" in raises(BatchError, decode_f7, GOLDEN + extra)


def test_reader_refuses_other_beginnings_and_sizes():
    assert "0" in raises(BatchError, decode_f7, b"")
    assert "246" in raises(BatchError, decode_f7, b"\xf6" + GOLDEN[1:])
    for size in (0, 3, 5, 8, 255):
        value = b"\0\1\0\1" + bytes((size,)) + bytes(255)
        text = raises(
            BatchError,
            decode_f7,
            b"\xf7\0\0\0\1" + group(b"\0\0\0\1", b"\0\0\0\1", value[: 5 + size]),
        )
        assert "size {}".format(size) in text


def test_reader_believes_no_number_that_the_bytes_cannot_hold():
    lots = b"\xff\xff\xff\xff"
    text = raises(BatchError, decode_f7, b"\xf7" + lots + bytes(28))
    assert "4294967295 groups" in text and "28" in text
    text = raises(BatchError, decode_f7, b"\xf7\0\0\0\1" + group(b"\0\0\0\1", lots, bytes(30)))
    assert "4294967295 values" in text and "30" in text
    text = raises(BatchError, decode_f7, b"\xf7\0\0\0\3" + 2 * group(b"\0\0\0\1", b"\0\0\0\0"))
    assert "3 groups" in text and "28" in text


def test_every_single_bit_flip_gives_an_error_or_another_valid_batch():
    valid = 0
    for at in range(len(GOLDEN)):
        for bit in range(8):
            flipped = bytearray(GOLDEN)
            flipped[at] ^= 1 << bit
            try:
                groups = decode_f7(flipped)
            except BatchError:
                continue
            assert groups != GOLDEN_GROUPS
            valid += 1
    # What is only data: timestamps and devices, tag ids, values, and the two statuses, where no
    # one flip gives 0.
    assert valid == 8 * (2 * 10 + 11 * 2 + 24 + 2)
