"""tools.records and `python -m tools decode`: right values, and a reason for what is malformed."""

import json
import math
import struct

import pytest
import typer
from typer.testing import CliRunner

from tests_host.host.payloads import NOW, announcement, one_of_each, payload
from tools import decode
from tools.records import Decoder, parse_tags, parse_topic, readings_of

BOTH = pytest.mark.parametrize("encoding", ["f7", "json"])
SEED = bytes.fromhex("f7 00000001 65e26c00 0007 00000063 00000001 002a 00 01 04 41bd999a")

app = typer.Typer()
app.command()(decode.command)


def run(*arguments, stdin=None):
    done = CliRunner().invoke(app, list(map(str, arguments)), input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def stored(tmp_path, data, name="batch"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def fed(what, data, prefix="pond"):
    return Decoder(prefix).feed(f"{prefix}/mill/{what}", data, NOW + 1.5)


# -- records -------------------------------------------------------------------------------------


@BOTH
def test_readings_have_names_units_and_scaled_values(encoding):
    readings = readings_of(one_of_each(encoding), parse_tags(announcement()))
    shown = [(r["id"], r["name"], r["value"], r["unit"], r["ts"]) for r in readings]
    assert shown == [
        (1, "temp0", 23.7, "degC", NOW),
        (2, "level", -120.5, "mm", NOW),
        (3, "run", True, "", NOW),
        (4, "phase", [1, 2, 3], "", NOW),
        (1, "temp0", None, "degC", NOW),
    ]
    assert readings[2]["value"] is True
    assert [r.get("status") for r in readings] == [None, None, None, None, 9]


def test_scaled_integers_have_no_binary_dust():
    tags = parse_tags(announcement([[1, "a", "uint16", "", 0.1], [2, "b", "uint32", "", 1]]))
    data = payload([(1, "uint16", 237, 0), (2, "uint32", 4294967295, 0)])
    assert [r["value"] for r in readings_of(data, tags)] == [23.7, 4294967295]


@pytest.mark.parametrize("value", [0.1, 1.01, 16777217.0, 3.4028234e38, -1e-45, 123456.789])
def test_floats_are_as_short_as_float32_is(value):

    tags = parse_tags(announcement())
    (reading,) = readings_of(payload([(1, "float32", value, 0)]), tags)
    assert struct.pack(">f", reading["value"]) == struct.pack(">f", value)
    assert len(repr(reading["value"])) <= 15


@BOTH
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_float_that_is_no_number_has_no_value(encoding, value):
    (reading,) = readings_of(
        payload([(1, "float32", value, 0)], encoding), parse_tags(announcement())
    )
    assert reading["value"] is None
    json.loads(json.dumps(reading), parse_constant=pytest.fail)


def test_a_tag_not_announced_is_raw():
    (reading,) = readings_of(payload([(9, "uint16", 258, 0)]), {})
    assert (reading["name"], reading["value"], reading["raw"]) == (None, None, "0102")
    (reading,) = readings_of(payload([(9, "uint16", 258, 0)], "json"), {})
    assert (reading["value"], "raw" in reading) == (258, False)


def test_decoder_uses_the_announcement_of_each_device():
    decoder = Decoder("pond")
    other = announcement([[1, "depth", "float32", "m", 0.1]])
    decoder.feed("pond/mill/tags", announcement(), NOW)
    decoder.feed("pond/weir/tags", other, NOW)
    data = payload([(1, "float32", 2.5, 0)])
    records = [decoder.feed(f"pond/{name}/data", data, NOW + 1)[0] for name in ("mill", "weir")]
    assert [(r["device"], r["name"]) for r in records] == [("mill", "temp0"), ("weir", "depth")]
    assert list(records[0]) == ["device", "id", "name", "value", "unit", "ts", "received"]
    assert records[0]["received"] == NOW + 1


def test_reports_and_alerts_have_a_type():
    assert fed("status", b'{"state":"online"}') == [
        {"type": "status", "device": "mill", "received": NOW + 1.5, "data": {"state": "online"}}
    ]
    assert fed("health", b'{"held":3}')[0]["data"] == {"held": 3}
    (alert,) = fed("alert", b'{"ts":12,"name":"hot","text":"too hot","x":1}')
    assert (alert["type"], alert["ts"], alert["name"]) == ("alert", 12, "hot")
    assert fed("else", b"123")[0] | {"received": 0} == {
        "type": "other", "device": "mill", "received": 0, "topic": "pond/mill/else", "length": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("what", "data", "reason"),
    [
        ("data", b"", "JSON"),
        ("data", SEED[:-1], "the batch ends at 27"),
        ("data", b"[[[", "not JSON"),
        ("data", b"[" * 100000, "not JSON"),
        ("data", b"\xff\xfe", "not JSON"),
        ("tags", b"[]", "object expected"),
        ("tags", b"{}", "tags"),
        ("tags", announcement([[1, "a", "float32", "m"]]), "unit, scale"),
        ("tags", announcement([[70000, "a", "float32", "m", 1]]), "70000"),
        ("tags", announcement([[1, "a", "float64", "m", 1]]), "float64"),
        ("tags", announcement([[1, "a", "int8", "m", 0]]), "scale 0"),
        ("tags", announcement([[1, 5, "int8", "m", 1]]), "text"),
        ("status", b"offline", "Expecting value"),
        ("health", b"[" * 100000, "nested too deep"),
        ("health", b"\xff", "decode"),
        ("alert", b'{"name":"x"}', "ts None"),
    ],
)
def test_malformed_is_a_record_with_its_reason_and_counted(what, data, reason):
    decoder = Decoder("pond")
    (record,) = decoder.feed(f"pond/mill/{what}", data, NOW)
    assert (record["type"], record["topic"]) == ("malformed", f"pond/mill/{what}")
    assert reason in record["reason"]
    assert record["begins"] == data[:32].hex()
    assert decoder.malformed == {"mill": 1}


def test_a_retained_message_can_be_taken_back():
    decoder = Decoder("pond")
    decoder.feed("pond/mill/tags", announcement(), NOW)
    assert decoder.feed("pond/mill/tags", b"", NOW)[0]["tags"] == []
    assert decoder.feed("pond/mill/status", b"", NOW)[0]["data"] == {}
    assert decoder.tags["mill"] == {}
    assert not decoder.malformed


def test_a_bad_announcement_leaves_the_old_one():
    decoder = Decoder("pond")
    decoder.feed("pond/mill/tags", announcement(), NOW)
    decoder.feed("pond/mill/tags", b"{", NOW)
    assert decoder.tags["mill"][1].name == "temp0"


def test_a_value_that_is_not_of_its_announced_type_is_malformed_alone():
    decoder = Decoder("pond")
    decoder.feed("pond/mill/tags", announcement(), NOW)
    data = payload([(1, "int16", 5, 0), (3, "bool", False, 0)])
    bad, empty, good = decoder.feed("pond/mill/data", data, NOW)
    assert bad["type"] == "malformed"
    assert "tag 1 (temp0): value size 2" in bad["reason"]
    assert (empty["id"], empty["value"]) == (1, None)
    assert (good["id"], good["value"]) == (3, False)


def test_topics():
    assert parse_topic("pond", "pond/mill/data") == ("mill", "data")
    assert parse_topic("a/b", "a/b/mill/data") == ("mill", "data")
    assert parse_topic("pond", "pond/mill/a/b") == ("mill", "a/b")
    for other in ("pond/mill", "ponds/mill/data", "pond//data", "pond/mill/", "x"):
        assert parse_topic("pond", other) is None
        assert Decoder("pond").feed(other, b"", NOW) == []


# -- the command ---------------------------------------------------------------------------------


@BOTH
def test_command_prints_groups_names_and_values(encoding, tmp_path):
    tags = stored(tmp_path, announcement(), "tags.json")
    code, out, err = run(stored(tmp_path, one_of_each(encoding)), "--tags", tags)
    assert (code, err) == (0, "")
    head, _, group, _, *rows = out.splitlines()
    assert head.endswith("bytes: 1 group, 5 readings")
    assert group.startswith("group 1: 2024-03-02T00:00:00Z")
    assert ("device type 7, serial 99" in group) == (encoding == "f7")
    assert [row.split() for row in rows] == [
        ["1", "temp0", "ok", "23.7", "degC"],
        ["2", "level", "ok", "-120.5", "mm"],
        ["3", "run", "ok", "on"],
        ["4", "phase", "ok", "[1,", "2,", "3]"],
        ["1", "temp0", "9", "-"],
    ]


def test_without_tags_it_says_once_how_to_give_them(tmp_path):
    code, _, err = run(stored(tmp_path, one_of_each()))
    assert (code, err.count("--tags FILE"), len(err.splitlines())) == (0, 1, 1)


def test_command_shows_hex_where_the_type_is_unknown(tmp_path):
    code, out, _ = run(stored(tmp_path, SEED))
    assert code == 0
    assert out.splitlines()[-1].split() == ["42", "ok", "raw", "41bd999a"]


def test_command_says_that_the_clock_was_unknown(tmp_path):
    _, out, _ = run(stored(tmp_path, one_of_each(unix=None)))
    assert "group 1: start+0s" in out


def test_command_names_a_value_of_the_wrong_type(tmp_path):
    tags = stored(tmp_path, announcement([[42, "t", "int16", "", 1]]), "tags.json")
    code, out, _ = run(stored(tmp_path, SEED), "--tags", tags)
    assert code == 0
    assert "(tag 42 (t): value size 4: 2 expected for int16)" in out


PLAIN = SEED.hex()
XXD = "\n".join(
    f"{n:08x}: {SEED[n : n + 16].hex(' ', 2):<39}  " + "." * len(SEED[n : n + 16])
    for n in range(0, len(SEED), 16)
)
HEXDUMP = "\n".join(
    [
        *(
            f"{n:08x}  {SEED[n : n + 8].hex(' ')}  {SEED[n + 8 : n + 16].hex(' ')}  |........|"
            for n in range(0, len(SEED), 16)
        ),
        f"{len(SEED):08x}",
    ]
)


@pytest.mark.parametrize(
    "text",
    [PLAIN, PLAIN.upper(), SEED.hex(" "), SEED.hex(":"), XXD, HEXDUMP, "0xf7, 0x00" + PLAIN[4:]],
)
def test_command_reads_hex_text(text):
    code, out, _ = run("-", stdin=text + "\n")
    assert code == 0, text
    assert "0xF7 batch, 28 bytes: 1 group, 1 reading" in out


def test_command_reads_json_as_hex():
    code, out, _ = run("-", stdin=one_of_each("json").hex())
    assert code == 0
    assert out.startswith("JSON batch")


@pytest.mark.parametrize("cut", range(1, len(SEED)))
def test_command_refuses_every_truncation(cut, tmp_path):
    code, out, err = run(stored(tmp_path, SEED[:cut]))
    assert (code, out) == (1, "")
    assert "malformed: " in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (SEED[:-1], "value at 19: the batch ends at 27"),
        (b"[{]", "char 2"),
        (b"{}", "array of objects"),
        (b" \n", "empty"),
        (b"f700\nhello\n", "line 2 is 'hello'"),
        (b"f70", "line 1 is 'f70'"),
        (b"\x1b[31m", "line 1 is '?[31m'"),
    ],
)
def test_command_says_where_it_is_malformed(data, line, tmp_path):
    code, out, err = run(stored(tmp_path, data))
    assert (code, out) == (1, "")
    assert line in err


def test_command_names_files_that_cannot_be_read(tmp_path):
    code, _, err = run(tmp_path / "none")
    assert (code, "none: No such file" in err) == (1, True)
    code, _, err = run(stored(tmp_path, SEED), "--tags", stored(tmp_path, b"[]", "tags"))
    assert (code, "tags: not a tags message: a JSON object expected" in err) == (1, True)
    code, _, err = run(stored(tmp_path, SEED), "--tags", stored(tmp_path, SEED, "tags"))
    assert (code, "tags: not a tags message: no text" in err) == (1, True)
