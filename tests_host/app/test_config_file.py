"""The configuration file: each way it can be wrong, in one line, with the place in the JSON."""

import os
import sys

from firmware import config, settings
from firmware.config import load
from firmware.settings import ConfigError
from firmware.strict_json import parse
from tests_host.kit import raises

BUILD = __file__.rpartition("tests_host/app/")[0] + "build"
FILE = "{}/test-config-{}.json".format(BUILD, sys.implementation.name)

_ERRNO = "an OSError of the WebAssembly port has Emscripten's number, not errno's"
NOT_ON_32_BIT = {
    "test_a_missing_file_says_how_to_make_one": _ERRNO,
    "test_the_checker_leaves_memory_with_the_file_read": _ERRNO,
}


def write(content):
    try:
        os.mkdir(BUILD)
    except OSError:
        pass
    with open(FILE, "wb") as file:
        file.write(content)


def loaded(content):
    """What `load` makes of a file with this content (bytes)."""
    write(content)
    try:
        return load(FILE)
    finally:
        os.remove(FILE)


def load_problem(content):
    line = raises(ConfigError, loaded, content)
    assert line.startswith(FILE + ": "), line
    return line[len(FILE) + 2 :]


def test_a_right_file_is_loaded():
    config = loaded('\ufeff{"mqtt": {"host": "br\\u00f6ker", "port": 1}}\r\n'.encode())
    assert config["mqtt.host"] == "bröker" and config["mqtt.port"] == 1


def test_a_missing_file_says_how_to_make_one():
    line = raises(ConfigError, load, BUILD + "/nothing-here.json")
    assert line.startswith(BUILD + "/nothing-here.json: there is no such file")
    assert "config.example.json" in line and "mqtt.host" in line and "\n" not in line


def test_an_unreadable_file_is_one_line():
    folder = BUILD.rpartition("/")[0]
    line = raises(ConfigError, load, folder)
    assert line.startswith(folder + ": it cannot be read (") and "\n" not in line


def test_a_file_that_is_too_large_is_not_read_whole():
    right = b'{"mqtt": {"host": "broker"}}'
    assert loaded(right + b" " * (8192 - len(right)))["mqtt.host"] == "broker"
    assert load_problem(right + b" " * (8193 - len(right))) == "over 8192 bytes"


def test_each_line_of_an_error_begins_with_the_path():
    lines = raises(ConfigError, loaded, b'{"mqtt": {"port": 0}}').split("\n")
    assert len(lines) == 2
    assert all([line.startswith(FILE + ": mqtt.") for line in lines]), lines


def test_an_error_leaves_the_file_as_it_is():
    content = b'{"mqtt": {"host": 7}}'
    write(content)
    raises(ConfigError, load, FILE)
    with open(FILE, "rb") as file:
        assert file.read() == content
    os.remove(FILE)


def test_no_mistake_in_the_json_shows_a_password():
    for broken in (b'{"mqtt": {"password": hunter2}}', b'{"mqtt": {"password": "hunter2}}'):
        assert "hunter2" not in load_problem(broken)


JSON_MISTAKES = (
    (b"", 1, 1, "a value expected"),
    (b" \n ", 2, 2, "a value expected"),
    (b'{\n  "mqtt": {\n    "port": oops\n  }\n}', 3, 13, "a value expected"),
    (b'{\n  "mqtt": {}\n  "ring": {}\n}', 3, 3, "',' or '}' expected"),
    (b'{\n  "a": 1,\n}', 2, 9, "',' before '}' is one too many"),
    (b'{"a": [1, 2,\n]}', 1, 12, "',' before ']' is one too many"),
    (b'{"a": 1,, "b": 2}', 1, 9, "a key in double quotes expected"),
    (b'{"a": 1\n', 2, 1, "',' or '}' expected"),
    (b'{"a": [1 2]}', 1, 10, "',' or ']' expected"),
    (b'{"a": [1}', 1, 9, "',' or ']' expected"),
    (b'{"a" 1}', 1, 6, "':' expected"),
    (b"{a: 1}", 1, 2, "a key in double quotes expected"),
    (b"{'a': 1}", 1, 2, "a key in double quotes expected; texts stand in double quotes"),
    (b"{\"a\": 'b'}", 1, 7, "a value expected; texts stand in double quotes"),
    (b'{"a": 1 // one\n}', 1, 9, "',' or '}' expected; there are no comments in JSON"),
    (b'# b\n{"a": 1}', 1, 1, "a value expected; there are no comments in JSON"),
    (b'{"a": True}', 1, 7, "a value expected; true, false and null are written small"),
    (b'{\n"a": "b,\n"c": 1}', 2, 6, "this text has no closing quote on its line"),
    (b'{"a": "b', 1, 7, "this text has no closing quote on its line"),
    (b'{"a": "b\tc"}', 1, 9, "a control character must be written as an escape"),
    (b'{"a": "\\q"}', 1, 8, "unknown escape in a text"),
    (b'{"a": "\\u12g4"}', 1, 8, "unknown escape in a text"),
    (b'{"a": "\\u', 1, 8, "unknown escape in a text"),
    (b'{"a": "\\u12', 1, 8, "unknown escape in a text"),
    (b'{"a": "\\ud83d"}', 1, 8, "half of a surrogate pair: write the character itself"),
    (b'{"a": 01}', 1, 8, "',' or '}' expected"),
    (b'{"a": -}', 1, 8, "a digit expected"),
    (b'{"a": 1.}', 1, 9, "a digit expected"),
    (b'{"a": 1e}', 1, 9, "a digit expected"),
    (b'{"a": +1}', 1, 7, "a value expected"),
    (b'{"a": .5}', 1, 7, "a value expected"),
    (b'{"a": NaN}', 1, 7, "a value expected; true, false and null are written small"),
    (b'{"a": 1234567890123456789012345678901}', 1, 7, "a number of at most 30 characters expected"),
    (b'{"a": 1}\n}', 2, 1, "nothing more expected"),
    (b'{"a": 1}\n\0', 2, 1, "nothing more expected"),
    (b'{"a": 1,\n "a": 2}', 2, 2, "this key is here a second time"),
    (b"[" * 20, 1, 10, "at most 8 levels expected"),
    (b'{"a": "\xc3\xa9", b}', 1, 12, "a key in double quotes expected"),
    (b'{"a": 1,\n "b": "caf\xe9"}', 2, 1, "UTF-8 expected"),
)


class Reads:
    """In the place of `open`: notes how much is asked for."""

    asked = None

    def __call__(self, path, mode):
        self._file = open(path, mode)  # noqa: SIM115
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._file.close()

    def read(self, size):
        self.asked = size
        return self._file.read(size)


def test_reading_takes_no_more_memory_than_the_file_has():
    reads = config.open = Reads()
    try:
        content = b'{"mqtt": {"host": "broker"}}'
        assert loaded(content)["mqtt.host"] == "broker"
        assert reads.asked == len(content) + 1
        assert "over 8192 bytes" in raises(ConfigError, loaded, bytes(100000))
        assert reads.asked == 8193
    finally:
        del config.open


def test_mistakes_in_the_json_are_named_by_line_and_column():
    for content, line, column, what in JSON_MISTAKES:
        found = load_problem(content)
        assert found == "line {}, column {}: {}".format(line, column, what), (content, found)


def test_bytes_that_are_UTF_8_to_MicroPython_alone_are_refused():
    for bad in (
        b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80",
        b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80", b"\xf7\xbf\xbf\xbf", b"\xc2", b"\x80", b"\xe2\x98",
    ):  # fmt: skip
        assert "UTF-8 expected" in raises(ValueError, parse, b'["' + bad + b'"]'), bad
    for good in (
        b"\xc2\x80", b"\xdf\xbf", b"\xe0\xa0\x80", b"\xec\xbf\xbf", b"\xed\x9f\xbf",
        b"\xee\x80\x80", b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf",
    ):  # fmt: skip
        assert parse(b'["' + good + b'"]') == [good.decode()], good


def test_the_values_of_right_json():
    for text, value in (
        (b"[]", []),
        (b" {}\n", {}),
        (b"[1, -0, -12, 1e2, 2.5, -1.25e-2, 0.5E+1]", [1, 0, -12, 100.0, 2.5, -0.0125, 5.0]),
        (b"[true,false,null]", [True, False, None]),
        (b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u20ac"', '"\\/\b\f\n\r\tA€'),
        ('{"ä": {"b": ["c", {}]}}'.encode(), {"ä": {"b": ["c", {}]}}),
    ):
        assert parse(text) == value, text
    assert [type(one) for one in parse(b"[1, 1.0, true]")] == [int, float, bool]


def test_the_checker_leaves_memory_with_the_file_read():
    names = ("firmware.config", "firmware.spelling", "firmware.strict_json")
    kept = {name: sys.modules.pop(name) for name in names}
    package = sys.modules["firmware"]
    try:
        with_file = lambda: settings.load(BUILD + "/nothing-here.json")  # noqa: E731
        assert "no such file" in raises(ConfigError, with_file)
        for name in names:
            assert name not in sys.modules and not hasattr(package, name.split(".")[1]), name
    finally:
        for name in names:
            sys.modules[name] = kept[name]
            setattr(package, name.split(".")[1], kept[name])
    raises(ConfigError, with_file)
    assert sys.modules["firmware.config"] is kept["firmware.config"]
