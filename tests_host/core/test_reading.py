"""Readings: the record (big-endian, seed 004) and the meaning of raw values."""

from array import array

from millpond.batch_reader import BatchError, interpret
from millpond.message import ProtocolError
from millpond.reading import (
    BOOL,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    KIND_SIZES,
    RECORD_HEAD,
    UINT8,
    UINT16,
    UINT32,
    is_record,
    kind_of,
    pack_reading,
)
from tests_host.kit import no_alloc, raises

FILL = b"\xee" * 40


def packed(*args, **kwargs):
    """The bytes that pack_reading wrote at 3, with nothing written around them."""
    buf = bytearray(FILL)
    length = pack_reading(buf, 3, *args, **kwargs)
    assert buf[:3] == FILL[:3] and buf[3 + length :] == FILL[3 + length :]
    return bytes(buf[3 : 3 + length])


def test_seed_004_record_is_big_endian_for_every_kind():
    head = b"\x01\x02\x00\x03\x04\x05\x00"
    cases = (
        (BOOL, True, b"\x00\x01\x01"),
        (INT8, -2, b"\x01\x01\xfe"),
        (UINT8, 254, b"\x02\x01\xfe"),
        (INT16, -2, b"\x03\x01\xff\xfe"),
        (UINT16, 0xABCD, b"\x04\x01\xab\xcd"),
        (INT32, -2, b"\x05\x01\xff\xff\xff\xfe"),
        (UINT32, 0xABCDEF01, b"\x06\x01\xab\xcd\xef\x01"),
        (FLOAT32, 23.7, b"\x07\x01\x41\xbd\x99\x9a"),
        (FLOAT32, 1, b"\x07\x01\x3f\x80\x00\x00"),
    )
    for kind, value, tail in cases:
        assert packed(0x0102, kind, value, 0x030405) == head + tail, kind


def test_record_holds_several_values_of_a_list_tuple_or_array():
    expected = b"\x00\x07\x00\x00\x00\x09\x00\x03\x03\x00\x01\xff\xff\x01\x00"
    values = [1, -1, 256]
    for several in (values, tuple(values), array("h", values)):
        assert packed(7, INT16, several, 9) == expected
    assert packed(7, UINT8, [5], 9) == packed(7, UINT8, 5, 9)


def test_record_with_a_status_has_no_values():
    assert packed(7, FLOAT32, None, 9, 3) == b"\x00\x07\x00\x00\x00\x09\x03\x07\x00"


def test_values_at_the_limits_of_their_kind_and_one_beyond():
    limits = (
        (BOOL, 0, 1),
        (INT8, -128, 127),
        (UINT8, 0, 255),
        (INT16, -32768, 32767),
        (UINT16, 0, 65535),
        (INT32, -2147483648, 2147483647),
        (UINT32, 0, 4294967295),
    )
    for kind, lowest, highest in limits:
        size = KIND_SIZES[kind]
        for value in (lowest, highest):
            raw = packed(1, kind, value, 0)[RECORD_HEAD:]
            assert interpret(kind, size, raw) == (value,)
        for value in (lowest - 1, highest + 1):
            text = raises(ValueError, packed, 1, kind, value, 0)
            assert str(value) in text and str(lowest) in text and str(highest) in text


def test_float_limits_infinities_and_nan():
    largest = 3.4028234663852886e38
    infinity = float("inf")
    for value in (largest, -largest, infinity, -infinity):
        assert interpret(FLOAT32, 4, packed(1, FLOAT32, value, 0)[9:]) == (value,)
    got = interpret(FLOAT32, 4, packed(1, FLOAT32, float("nan"), 0)[9:])[0]
    assert got != got
    for value in (3.5e38, -3.5e38, 10**40, -(10**400)):
        raises(ValueError, packed, 1, FLOAT32, value, 0)


def test_bad_input_names_value_and_limit_and_leaves_the_buffer_as_it_was():
    cases = (
        (ValueError, (65536, UINT8, 1, 0), "65536"),
        (ValueError, (-1, UINT8, 1, 0), "-1"),
        (ValueError, (1, 8, 1, 0), "8"),
        (ValueError, (1, -1, 1, 0), "-1"),
        (ValueError, (1, UINT8, 1, 1000000000), "1000000000"),
        (ValueError, (1, UINT8, 1, -1), "-1"),
        (ValueError, (1, UINT8, 1, 0, 256), "256"),
        (ValueError, (1, UINT8, [1, 300], 0), "300"),
        (ValueError, (1, UINT8, [300, 1], 0), "300"),
        (ValueError, (1, UINT8, [], 0), "0 values"),
        (ValueError, (1, UINT8, [0] * 256, 0), "256 values"),
        (ValueError, (1, UINT32, [0] * 8, 0), "41 bytes"),
        (TypeError, (1, UINT8, 1.5, 0), "1.5"),
        (TypeError, (1, UINT8, "1", 0), "1"),
        (TypeError, (1, UINT8, None, 0), "None"),
        (TypeError, (1, FLOAT32, "1", 0), "1"),
        (TypeError, (1, FLOAT32, [1.0, None], 0), "None"),
    )
    for kind, args, word in cases:
        buf = bytearray(FILL)
        assert word in raises(kind, pack_reading, buf, 0, *args), args
        assert buf == FILL
    raises(ValueError, pack_reading, bytearray(FILL), -1, 1, UINT8, 1, 0)


def test_packing_small_ints_and_boxed_floats_allocates_nothing():
    buf = bytearray(40)
    value = 23.7
    several = [1, 2, 3]
    big = 0xABCDEF01

    def pack_some():
        pack_reading(buf, 0, 1, INT16, -5, 100)
        pack_reading(buf, 0, 1, FLOAT32, value, 100)
        pack_reading(buf, 0, 1, BOOL, True, 100)
        pack_reading(buf, 0, 1, UINT8, several, 100)
        pack_reading(buf, 0, 1, UINT32, big, 100)
        pack_reading(buf, 0, 1, UINT8, None, 100, 4)
        return is_record(buf, 0, 9)

    assert no_alloc(pack_some)


def test_is_record_accepts_exactly_whole_records():
    whole = packed(1, UINT16, [1, 2], 5)
    assert is_record(whole, 0, len(whole))
    assert is_record(b"x" + whole, 1, len(whole))
    for length in range(len(whole)):
        assert not is_record(whole, 0, length)
    assert not is_record(whole + b"\0", 0, len(whole) + 1)
    assert is_record(packed(1, UINT16, None, 5, 9), 0, 9)


def test_is_record_refuses_what_a_writer_cannot_use():
    whole = packed(1, UINT16, [1, 2], 5)
    for at, byte in ((2, 0x3C), (6, 1), (7, 8), (7, 255), (8, 0), (8, 1)):
        broken = bytearray(whole)
        broken[at] = byte
        assert not is_record(broken, 0, len(broken)), at
    assert not is_record(b"\0\1\0\0\0\5\0\4\0", 0, 9)


def test_kinds_are_found_by_name():
    names = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
    assert [kind_of(name) for name in names] == list(range(8))
    text = raises(ValueError, kind_of, "double")
    assert "double" in text and "float32" in text


def test_interpret_raw_values_by_announced_kind():
    assert interpret(BOOL, 1, b"\x00\x01\x02") == (False, True, True)
    assert interpret(INT8, 1, b"\xfe\x7f") == (-2, 127)
    assert interpret(UINT8, 1, b"\xfe") == (254,)
    assert interpret(INT16, 2, b"\xff\xfe\x01\x00") == (-2, 256)
    assert interpret(UINT16, 2, b"\xff\xfe") == (65534,)
    assert interpret(INT32, 4, b"\xff\xff\xff\xfe") == (-2,)
    assert interpret(UINT32, 4, b"\xff\xff\xff\xfe") == (4294967294,)
    assert interpret(FLOAT32, 4, b"\x3f\x80\x00\x00\xbf\x00\x00\x00") == (1.0, -0.5)
    assert interpret(FLOAT32, 4, b"") == ()
    assert isinstance(interpret(BOOL, 1, b"\x01")[0], bool)


def test_interpret_refuses_what_does_not_match_the_announcement():
    assert issubclass(BatchError, ProtocolError)
    text = raises(BatchError, interpret, FLOAT32, 2, b"\0\0")
    assert "2" in text and "4" in text and "float32" in text
    raises(BatchError, interpret, UINT8, 4, b"\0\0\0\0")
    raises(BatchError, interpret, UINT16, 2, b"\0\0\0")
    raises(ValueError, interpret, 8, 1, b"\0")


def test_interpret_values_from_json():
    assert interpret(INT16, 0, (1, -2)) == (1, -2)
    assert interpret(BOOL, 0, (True, False, 0, 1)) == (True, False, False, True)
    assert isinstance(interpret(BOOL, 0, (1,))[0], bool)
    assert interpret(FLOAT32, 0, (1, 2.5)) == (1.0, 2.5)
    assert isinstance(interpret(FLOAT32, 0, (1,))[0], float)
    nan = interpret(FLOAT32, 0, (None,))[0]
    assert nan != nan
    wrong = (
        (INT8, 128),
        (UINT8, -1),
        (UINT8, 1.0),
        (UINT8, None),
        (UINT8, True),
        (FLOAT32, True),
        (FLOAT32, 10**400),
        (BOOL, 2),
        (BOOL, None),
    )
    for kind, value in wrong:
        raises(BatchError, interpret, kind, 0, (value,))
