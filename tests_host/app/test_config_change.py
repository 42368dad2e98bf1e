"""Changing one key of the configuration: by the same table, and safely in the file."""

import gc
import json
import os
import sys

from firmware import config, config_file, run_time, settings, strict_json
from firmware.settings import Config, ConfigError, nearest
from tests_host.kit import MICROPYTHON, WEBASSEMBLY, raises

BUILD = __file__.rpartition("tests_host/app/")[0] + "build"
NAME = "test-change-{}.json".format(sys.implementation.name)
PATH = BUILD + "/" + NAME
FILE = {
    "wifi": {"ssid": "barn", "password": 's\u00e9cret \\ " x'},
    "mqtt": {"user": "u", "password": "pa55", "host": "broker"},
    "batch": {"max_readings": 7, "max_age_ms": 9},
}


class InFolder:
    """The file PATH with `text`, gone at the end."""

    def __init__(self, text=None):
        try:
            os.mkdir(BUILD)
        except OSError:
            pass
        with open(PATH, "w") as file:
            file.write(json.dumps(FILE) if text is None else text)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for name in (PATH, PATH + ".new"):
            try:
                os.remove(name)
            except OSError:
                pass

    def text(self):
        with open(PATH) as file:
            return file.read()


class Os:
    """In the place of os: `rename` as given."""

    remove = staticmethod(os.remove)
    stat = staticmethod(os.stat)

    def __init__(self, rename):
        self.rename = rename


def loaded(**sections):
    return config.check(dict({"mqtt": {"host": "broker"}}, **sections))


def test_a_change_holds_at_once_and_explain_marks_it():
    kept = loaded(batch={"max_readings": 7})
    kept.change("log.level", "debug")
    kept.change("batch.max_readings", 50)
    assert kept["log.level"] == "debug" and kept["batch.max_readings"] == 50
    lines = []
    kept.explain(lines.append)
    marked = [line.split()[1] for line in lines if line[0] == "*"]
    assert marked == ["mqtt.host", "log.level"]


def test_a_wrong_value_is_told_in_the_words_of_the_table():
    kept = loaded()
    for value in (-1, 3600001, "5", 5.0, True, None, [], {}, 10**29):
        error = raises(ConfigError, kept.change, "batch.max_age_ms", value)
        assert error.startswith("batch.max_age_ms ")
        assert error.endswith(": a whole number from 0 to 3600000 expected")
    assert '"debug"' in raises(ConfigError, kept.change, "log.level", "loud")
    assert len(raises(ConfigError, kept.change, "log.level", 1000 * "x")) < 150
    assert kept["batch.max_age_ms"] == 5000 and kept["log.level"] == "info"


def test_only_settable_keys_may_be_changed():
    kept = loaded()
    for row in config.TABLE:
        key = row[0]
        if key in config.SETTABLE:
            kept.change(key, kept[key])
        else:
            error = raises(ConfigError, kept.change, key, kept[key])
            assert error == key + ": no command may change it; that takes config.json and a reset"


def test_an_unknown_key_is_told_with_the_nearest():
    kept = loaded()
    for wrong, right in (
        ("batch.maxreadings", "batch.max_readings"),
        ("plant.period", "plant.period_ms"),
        ("send.rate", "send.rate_limit"),
        ("log.lvel", "log.level"),
    ):
        error = raises(ConfigError, kept.change, wrong, 1)
        assert error == wrong + ": unknown key, did you mean " + right + "?"
    assert len(raises(ConfigError, kept.change, 300 * "k", 1)) < 100


def test_settable_keys_can_be_checked_by_themselves_and_applied():
    assert set(run_time._APPLY) == set(config.SETTABLE)
    others = [row[0] for row in config._AT_LEAST] + [row[2] for row in config._AT_LEAST]
    for pair in config._NEEDS:
        others += pair
    others += ["batch.encoding", "intake.slot_bytes", "ring.page_bytes"]
    assert not set(others) & set(config.SETTABLE)


def test_save_writes_the_key_keeps_the_rest_and_reads_back():
    with InFolder() as folder:
        kept = config.load(PATH)
        kept.change("batch.max_age_ms", 1000)
        assert json.loads(folder.text()) == FILE
        kept.change("log.level", "error", True)
        kept.change("batch.max_readings", 8, True)
        again = json.loads(folder.text())
        assert again["wifi"] == FILE["wifi"] and again["mqtt"] == FILE["mqtt"]
        assert again["log"] == {"level": "error"} and again["batch"] == {
            "max_readings": 8,
            "max_age_ms": 9,
        }
        assert config.load(PATH)["wifi.password"] == FILE["wifi"]["password"]
        assert NAME + ".new" not in os.listdir(BUILD)
        lines = folder.text().split("\n")
        assert lines[0] == "{" and lines[1] == '  "wifi": {' and len(lines) == 19


def test_save_keeps_what_a_person_has_changed_in_the_file_since():
    with InFolder() as folder:
        kept = config.load(PATH)
        with open(PATH, "w") as file:
            file.write('{"mqtt": {"host": "elsewhere"}, "log": {"level": "debug"}}')
        kept.change("plant.period_ms", 500, True)
        assert json.loads(folder.text()) == {
            "mqtt": {"host": "elsewhere"},
            "log": {"level": "debug"},
            "plant": {"period_ms": 500},
        }


def test_save_into_a_file_that_is_wrong_changes_nothing():
    for text in ("{", '{"mqtt": {}}', "[]", '{"mqtt": {"host": "b"}, "log": 5}'):
        with InFolder() as folder:
            kept = config.load(PATH)
            with open(PATH, "w") as file:
                file.write(text)
            error = raises(ConfigError, kept.change, "plant.period_ms", 500, True)
            assert error.startswith(PATH + ": ") and kept["plant.period_ms"] == 1000
            assert folder.text() == text and NAME + ".new" not in os.listdir(BUILD)


def test_save_that_cannot_be_written_leaves_the_old_file_whole():
    with InFolder() as folder:
        kept = config.load(PATH)
        os.mkdir(PATH + ".new")
        try:
            error = raises(ConfigError, kept.change, "plant.period_ms", 500, True)
        finally:
            os.rmdir(PATH + ".new")
        assert "it cannot be written" in error
        assert json.loads(folder.text()) == FILE and kept["plant.period_ms"] == 1000


def test_a_file_that_cannot_be_written_is_told_why():
    for number, why in ((28, "no room is left for it"), (30, "the file system is read-only")):

        def refuses(_from, _to, number=number):
            raise OSError(number, "")

        with InFolder() as folder:
            kept = config.load(PATH)
            config_file.os = Os(refuses)
            try:
                error = raises(ConfigError, kept.change, "plant.period_ms", 500, True)
            finally:
                config_file.os = os
            assert error == "{}: it cannot be written ({})".format(PATH, why)
            assert json.loads(folder.text()) == FILE and NAME + ".new" not in os.listdir(BUILD)


def test_where_the_renaming_fails_half_way_the_new_file_is_kept():
    def half_way(_from, to):
        os.remove(to)
        raise OSError(5, "")

    with InFolder():
        kept = config.load(PATH)
        config_file.os = Os(half_way)
        try:
            raises(ConfigError, kept.change, "plant.period_ms", 500, True)
        finally:
            config_file.os = os
        assert config.load(PATH)["plant.period_ms"] == 500


def test_a_change_that_a_power_cut_left_between_the_two_files_is_finished():
    with InFolder() as folder:
        os.rename(PATH, PATH + ".new")
        assert config.load(PATH)["batch.max_readings"] == 7
        assert json.loads(folder.text()) == FILE and NAME + ".new" not in os.listdir(BUILD)
        with open(PATH + ".new", "w") as file:
            file.write('{"mqtt": {"ho')  # cut while it was written: the old file counts
        assert config.load(PATH)["batch.max_readings"] == 7
        config.load(PATH).change("batch.max_readings", 8, True)
        assert config.load(PATH)["batch.max_readings"] == 8
        assert NAME + ".new" not in os.listdir(BUILD)


def test_the_checker_leaves_memory_after_a_change():
    kept = Config({"log.level": "info"}, ("log.level",), ())
    was_there = {}
    for name in ("firmware.config", "firmware.config_file"):
        was_there[name] = sys.modules.pop(name, None)
    kept.change("log.level", "debug")
    assert "firmware.config" not in sys.modules and "firmware.config_file" not in sys.modules
    for name in was_there:
        if was_there[name]:
            sys.modules[name] = was_there[name]
            setattr(sys.modules["firmware"], name.split(".")[1], was_there[name])
    assert settings.shown(kept["log.level"]) == '"debug"'


def test_letters_from_outside_are_not_kept_in_memory():
    """MicroPython keeps each character that is taken out of a str, for ever."""
    if not MICROPYTHON or WEBASSEMBLY:
        return
    kept = loaded()

    def hostile(first, last):
        for n in range(first, last, 40):
            letters = b"".join([strict_json._utf8(code) for code in range(n, n + 40)])
            escapes = b"".join([b"\\u%04x" % code for code in range(n + 8000, n + 8040)])
            for text in (letters, escapes):
                value = strict_json.parse(b'"' + text + b'"')
                raises(ConfigError, kept.change, "log.level", value)
                raises(ConfigError, kept.change, value, 5)
                settings.printable(value)
            for code in range(n, n + 40):
                settings.nearest(strict_json._utf8(code).decode(), ("log.level",))
        gc.collect()
        return gc.mem_alloc()

    before = hostile(0x3000, 0x3028)
    assert hostile(0x3028, 0x3028 + 4000) - before < 2000


def test_nearest():
    ops = ("flush", "reboot", "set", "status")
    assert [nearest(word, ops) for word in ("fush", "rebot", "stat", "sett", "get", "")] == [
        "flush", "reboot", "status", "set", "set", "set",
    ]  # fmt: skip
