"""JSON batches: an array of seed 004's objects (SPEC §5), the same bytes on both interpreters."""

import json
from struct import unpack_from

from millpond.batch import BatchError, JsonWriter, count_readings, decode, interpret, restamp
from millpond.batch_reader import decode_json
from millpond.reading import BOOL, FLOAT32, INT8, INT16, INT32, UINT8, UINT16, UINT32
from tests_host.core.batch_kit import START, clock_set, record, written
from tests_host.kit import no_alloc, raises

GOLDEN = (
    b'[{"id":42,"values":[23.7],"ts":1709337600}'
    b',{"id":1,"values":[true,false],"ts":1709337600}'
    b',{"id":2,"values":[-2],"ts":1709337600}'
    b',{"id":3,"values":[254],"ts":1709337600}'
    b',{"id":4,"values":[-2,256],"ts":1709337601}'
    b',{"id":5,"values":[43981],"ts":1709337601}'
    b',{"id":6,"values":[-2147483648],"ts":1709337601}'
    b',{"id":65535,"values":[4294967295],"ts":1709337601}'
    b',{"id":7,"status":3,"ts":1709337602}]'
)

GOLDEN_GROUPS = [
    (
        START,
        None,
        None,
        [
            (42, 0, 0, (23.7,)),
            (1, 0, 0, (True, False)),
            (2, 0, 0, (-2,)),
            (3, 0, 0, (254,)),
        ],
    ),
    (
        START + 1,
        None,
        None,
        [
            (4, 0, 0, (-2, 256)),
            (5, 0, 0, (43981,)),
            (6, 0, 0, (-2147483648,)),
            (65535, 0, 0, (4294967295,)),
        ],
    ),
    (START + 2, None, None, [(7, 3, 0, ())]),
]


def golden_records():
    return [
        record(42, FLOAT32, 23.7),
        record(1, BOOL, [True, False]),
        record(2, INT8, -2),
        record(3, UINT8, 254),
        record(4, INT16, [-2, 256], 1),
        record(5, UINT16, 43981, 1),
        record(6, INT32, -2147483648, 1),
        record(65535, UINT32, 4294967295, 1),
        record(7, FLOAT32, None, 2, 3),
    ]


def float_text(value):
    """How the writer prints one float32."""
    batch = written(JsonWriter(), [record(1, FLOAT32, value)], clock_set())
    return batch[len(b'[{"id":1,"values":[') : -len(b'],"ts":1709337600}]')].decode()


def test_seed_004_writer_gives_the_seeds_objects():
    writer = JsonWriter()
    assert written(writer, golden_records(), clock_set()) == GOLDEN
    assert writer.count == 9 and not writer.unstamped


def test_reader_gives_the_shape_of_the_binary_reader():
    assert decode_json(GOLDEN) == GOLDEN_GROUPS
    assert decode(GOLDEN) == GOLDEN_GROUPS
    assert decode(memoryview(b"\n " + GOLDEN)) == GOLDEN_GROUPS
    assert decode_json(b"[]") == []


def test_writer_can_be_used_again_and_starts_afresh():
    writer = JsonWriter(1, 2)
    written(writer, [record(1, UINT8, 1)], clock_set(0))
    assert writer.unstamped
    assert written(writer, golden_records(), clock_set()) == GOLDEN
    assert not writer.unstamped
    assert written(writer, [], clock_set()) == b"[]"
    assert writer.count == 0


def test_floats_have_as_few_digits_as_give_the_float32_back():
    cases = (
        (23.7, "23.7"),
        (0.1, "0.1"),
        (-0.5, "-0.5"),
        (0.0, "0"),
        (100.0, "100"),
        (123456.7, "123456.7"),
        (9999999.0, "9999999"),
        (16777216.0, "16777216"),
        (1 / 3, "0.33333334"),
        (1e10, "1e+10"),
        (1e-5, "1e-05"),
        (3.4028234663852886e38, "3.4028235e+38"),
    )
    for value, text in cases:
        assert float_text(value) == text, value


def test_floats_read_back_as_the_same_float32():
    for bits in range(1, 0x7F800000, 0x00314159):
        raw = bits.to_bytes(4, "big")
        value = unpack_from(">f", raw, 0)[0]
        one = record(1, FLOAT32, value)
        assert one[9:] == raw
        batch = written(JsonWriter(), [one], clock_set())
        got = interpret(FLOAT32, 0, decode_json(batch)[0][3][0][3])
        assert record(1, FLOAT32, got[0])[9:] == raw, value


def test_nan_and_infinity_become_null():
    values = [float("nan"), float("inf"), float("-inf"), 1.0]
    batch = written(JsonWriter(), [record(1, FLOAT32, values)], clock_set())
    assert batch == b'[{"id":1,"values":[null,null,null,1],"ts":1709337600}]'
    assert decode_json(batch)[0][3] == [(1, 0, 0, (None, None, None, 1))]


def test_writer_knows_what_fits_and_changes_nothing_when_it_does_not():
    clock = clock_set()
    one = record(1, UINT8, 1)
    status = record(1, UINT8, None, 0, 7)
    first = len(b'[{"id":1,"values":[1],"ts":1709337600}]')
    cases = (
        ([], one, first),
        ([one], one, first + len(b',{"id":1,"values":[1],"ts":1709337600}')),
        ([one], status, first + len(b',{"id":1,"status":7,"ts":1709337600}')),
    )
    for before, last, exact in cases:
        alone = written(JsonWriter(), before, clock)
        for limit in range(len(alone), exact + 2):
            buf = bytearray(b"\xee" * 120)
            writer = JsonWriter()
            writer.begin(buf, 10, limit)
            for item in before:
                assert writer.add(item, 0, clock)
            fits = writer.add(last, 0, clock)
            assert fits == (limit >= exact), (limit, exact)
            length = writer.end()
            assert length == (exact if fits else len(alone))
            if not fits:
                assert buf[10 : 10 + length] == alone and writer.count == len(before)
            json.loads(buf[10 : 10 + length].decode())
            assert buf[:10] == b"\xee" * 10
            assert buf[10 + length :] == b"\xee" * (110 - length)


def test_bad_arguments_of_begin_name_value_and_limit():
    writer = JsonWriter()
    buf = bytearray(20)
    for at, limit in ((0, 1), (-1, 10), (11, 10), (0, 21)):
        raises(ValueError, writer.begin, buf, at, limit)
    assert buf == bytearray(20)


def test_count_readings_of_every_shape_allocates_nothing():
    def count():
        return count_readings(GOLDEN, 0, len(GOLDEN))

    assert no_alloc(count) == 9
    shifted = b"}}}" + GOLDEN + b"}}}" * 30
    assert count_readings(shifted, 3, len(GOLDEN)) == 9
    assert count_readings(b"[]", 0, 2) == 0
    shortest = [record(0, UINT8, None, 0, 1) for _ in range(30)]
    for records in (shortest, shortest + golden_records() + shortest):
        batch = written(JsonWriter(), records, clock_set(), 4000)
        assert count_readings(batch, 0, len(batch)) == len(records)


def test_unstamped_batch_is_ten_wide_and_gets_its_unix_times_in_place():
    unknown = clock_set(0)
    writer = JsonWriter()
    one = [record(42, FLOAT32, 23.7, 12)]
    assert written(writer, one, unknown) == b'[{"id":42,"values":[23.7],"ts":        12}]'
    assert writer.unstamped
    batch = bytearray(written(writer, golden_records(), unknown))
    assert [group[0] for group in decode_json(batch)] == [0, 1, 2]
    restamp(batch, 0, len(batch), unknown)
    assert [group[0] for group in decode_json(batch)] == [0, 1, 2]
    restamp(batch, 0, len(batch), clock_set())
    assert batch == GOLDEN
    restamp(batch, 0, len(batch), clock_set(START + 77))
    assert batch == GOLDEN


def test_restamping_reads_every_number_of_seconds():
    for seconds in (0, 9, 10, 999, 123456789, 999999999):
        batch = bytearray(written(JsonWriter(), [record(1, UINT8, 1, seconds)], clock_set(0)))
        restamp(batch, 0, len(batch), clock_set())
        assert decode_json(batch)[0][0] == START + seconds


def test_consecutive_objects_of_one_timestamp_are_a_group():
    records = [record(tag_id, UINT8, 0, second) for tag_id, second in enumerate((5, 5, 6, 5))]
    groups = decode_json(written(JsonWriter(), records, clock_set()))
    seen = [(group[0] - START, [value[0] for value in group[3]]) for group in groups]
    assert seen == [(5, [0, 1]), (6, [2]), (5, [3])]


def test_reader_refuses_a_batch_cut_short_anywhere_and_trailing_bytes():
    for length in range(len(GOLDEN)):
        raises(BatchError, decode, GOLDEN[:length])
    for extra in (b"x", b"]", GOLDEN):
        raises(BatchError, decode, GOLDEN + extra)


def test_reader_refuses_what_is_no_array_of_readings():
    good = b'[{"id":1,"values":[1],"ts":1}]'
    assert decode_json(good) == [(1, None, None, [(1, 0, 0, (1,))])]
    wrong = (
        b'{"id":1,"values":[1],"ts":1}',
        b"1",
        b"null",
        b"[1]",
        b"[null]",
        b"[[1,2,3]]",
        b'[{"id":1,"values":[1]}]',
        b'[{"id":1,"values":[1],"ts":1,"x":1}]',
        b'[{"id":1,"values":[1],"status":1,"ts":1}]',
        b'[{"id":1,"value":[1],"ts":1}]',
        b'[{"id":65536,"values":[1],"ts":1}]',
        b'[{"id":-1,"values":[1],"ts":1}]',
        b'[{"id":1.0,"values":[1],"ts":1}]',
        b'[{"id":true,"values":[1],"ts":1}]',
        b'[{"id":"1","values":[1],"ts":1}]',
        b'[{"id":null,"values":[1],"ts":1}]',
        b'[{"id":1,"values":[1],"ts":-1}]',
        b'[{"id":1,"values":[1],"ts":4294967296}]',
        b'[{"id":1,"values":[1],"ts":1.5}]',
        b'[{"id":1,"values":1,"ts":1}]',
        b'[{"id":1,"values":"1","ts":1}]',
        b'[{"id":1,"values":{"1":1},"ts":1}]',
        b'[{"id":1,"values":["1"],"ts":1}]',
        b'[{"id":1,"values":[[1]],"ts":1}]',
        b'[{"id":1,"values":[{}],"ts":1}]',
        b'[{"id":1,"values":[NaN],"ts":1}]',
        b'[{"id":1,"values":[Infinity],"ts":1}]',
        b'[{"id":1,"values":[1e999],"ts":1}]',
        b'[{"id":1,"values":[' + b"1," * 255 + b'1],"ts":1}]',
        b'[{"id":1,"status":0,"ts":1}]',
        b'[{"id":1,"status":256,"ts":1}]',
        b'[{"id":1,"status":null,"ts":1}]',
        b'[{"id":1,"status":"\xff","ts":1}]',
        b"[" * 100000,
        b'{"a":' * 20000,
        b"\xff\xfe",
        b"",
    )
    for batch in wrong:
        raises(BatchError, decode, batch)


def test_every_single_bit_flip_gives_an_error_or_a_valid_batch():
    errors = 0
    for at in range(len(GOLDEN)):
        for bit in range(8):
            flipped = bytearray(GOLDEN)
            flipped[at] ^= 1 << bit
            try:
                for timestamp, _, _, values in decode(flipped):
                    assert 0 <= timestamp < 2**32
                    for tag_id, status, size, raw in values:
                        assert 0 <= tag_id < 65536 and size == 0
                        assert (status == 0) == (len(raw) > 0)
            except BatchError:
                errors += 1
    # Every byte that is no digit, and the upper bits of every digit.
    assert errors > 5 * len(GOLDEN)
