"""Configuration: one table of keys, and the check that a config.json must pass.

TABLE is the only place that knows the keys: `load` and `check` hold a file against it, the
README's table and config.example.json are printed from it. A row is

    key, default (None: must be given), kind, limits, help with the unit

where the key is `section.name`, found in the file as {"section": {"name": value}}, and `limits`
are INT (lowest, highest), TEXT (fewest bytes, most bytes, forbidden characters), CHOICE (the
choices), BOOL None. What holds between keys stands in the tables after it.

`load` only reads, but for a change that a power cut has left half done. It answers with a Config in
which every key has a value that passed, or with a ConfigError that tells a person all that is
wrong, one line each. No password appears in an error. A board loads through `settings.load`, which
takes this module out of memory again.
"""

import os
from errno import ENOENT

from firmware import strict_json
from firmware.address import is_name_server, is_time_server, listed
from firmware.log import LEVELS
from firmware.settings import Config, ConfigError, is_secret, printable, shown
from firmware.spelling import meant

INT = "int"
TEXT = "text"
BOOL = "bool"
CHOICE = "choice"

TABLE = (
    ("device.name", "millpond-1", TEXT, (1, 32, "+#/"), "Name of the board, unique at its broker"),
    ("device.type", 1, INT, (0, 65535), "Device type, sent in every batch"),
    ("device.serial", 1, INT, (0, 4294967295), "Serial number, sent in every batch"),
    ("wifi.ssid", "", TEXT, (0, 32, ""), "Wi-Fi network; empty = none"),
    ("wifi.password", "", TEXT, (0, 64, ""), "Wi-Fi password; empty = open network"),
    ("network.dns", "", TEXT, (0, 128, ""), "Name servers, addresses; empty = the network's"),
    ("network.ntp", "pool.ntp.org", TEXT, (0, 128, " /,"), "Time server of a board; empty = none"),
    ("mqtt.host", None, TEXT, (1, 253, "/: "), "Broker: name or IPv4 address"),
    ("mqtt.port", 1883, INT, (1, 65535), "Broker: TCP port"),
    ("mqtt.tls", False, BOOL, None, "TLS; the port is mostly 8883 then"),
    ("mqtt.ca_file", "", TEXT, (0, 64, ""), "TLS: certificates of those who may sign the broker's"),
    ("mqtt.tls_verify", True, BOOL, None, "TLS: only to a broker whose certificate is in order"),
    ("mqtt.tls_name", "", TEXT, (0, 253, "/ "), "TLS: name in that; empty = mqtt.host"),
    ("mqtt.cert_file", "", TEXT, (0, 64, ""), "TLS: certificate of this board; empty = none"),
    ("mqtt.key_file", "", TEXT, (0, 64, ""), "TLS: its private key"),
    ("mqtt.user", "", TEXT, (0, 256, ""), "User at the broker; empty = none"),
    ("mqtt.password", "", TEXT, (0, 512, ""), "Password at the broker; empty = none"),
    ("mqtt.prefix", "millpond", TEXT, (1, 64, "+#"), "First level of every topic"),
    ("mqtt.keepalive_s", 60, INT, (0, 65535), "MQTT keepalive, s; 0 = off"),
    ("mqtt.clean_session", False, BOOL, None, "Ask the broker to forget the last session"),
    ("mqtt.qos", 1, INT, (0, 2), "QoS of readings"),
    ("mqtt.connect_timeout_s", 10, INT, (1, 300), "Deadline of each step of a connect, s"),
    ("mqtt.ack_timeout_s", 20, INT, (1, 600), "Reconnect when no acknowledgement came for, s"),
    ("mqtt.max_retries", 5, INT, (1, 100), "Drop what the broker closes on so often in a row"),
    ("mqtt.backoff_min_s", 1, INT, (1, 3600), "First wait before a reconnect, s"),
    ("mqtt.backoff_max_s", 120, INT, (1, 3600), "Longest wait before a reconnect, s"),
    ("send.rate_limit", 0, INT, (0, 1000), "Messages/s at most; 0 = as fast as acknowledged"),
    ("intake.slots", 64, INT, (32, 4096), "Messages that wait to be packed"),
    ("intake.slot_bytes", 96, INT, (64, 4096), "Largest reading or alert, bytes"),
    ("intake.topics", 16, INT, (8, 256), "Different topics"),
    (
        "intake.overflow",
        "displace",
        CHOICE,
        ("displace", "reject", "oldest"),
        "A full intake drops: lowest priority, the new one, or the oldest if none is lower",
    ),
    ("ring.bytes", 24576, INT, (6144, 4194304), "Memory for what waits to be sent, bytes"),
    ("ring.page_bytes", 2048, INT, (2048, 65536), "Page: largest message, bytes"),
    ("ring.max_age_s", 0, INT, (0, 2592000), "Drop what has waited longer than, s; 0 = never"),
    ("batch.encoding", "f7", CHOICE, ("f7", "json"), "Form of readings on the wire"),
    ("batch.max_readings", 50, INT, (1, 1000), "Readings in a batch at most"),
    ("batch.max_age_ms", 5000, INT, (0, 3600000), "Longest wait for a batch to fill, ms"),
    ("watchdog.delivery_timeout_s", 120, INT, (1, 86400), "Reconnect without a delivery for, s"),
    ("watchdog.check_period_s", 10, INT, (1, 3600), "Period of that check, s"),
    ("watchdog.hardware_timeout_s", 30, INT, (0, 600), "Reset when a task hangs for, s; 0 = off"),
    ("health.period_s", 60, INT, (1, 86400), "Period of the health message, s"),
    ("commands.enabled", True, BOOL, None, "Obey commands that come on the cmd topic"),
    ("plant.enabled", True, BOOL, None, "Simulated plant"),
    ("plant.period_ms", 1000, INT, (10, 3600000), "Plant: period of its readings, ms"),
    ("plant.alert_every_s", 300, INT, (0, 86400), "Plant: an alert at least every, s; 0 = off"),
    ("board.enabled", True, BOOL, None, "Readings of the board about itself"),
    ("board.period_ms", 10000, INT, (100, 3600000), "Board: period of its readings, ms"),
    ("log.level", "info", CHOICE, LEVELS, "What is logged"),
    ("log.status_s", 60, INT, (0, 86400), "Period of the status line on the console, s; 0 = off"),
)

# What a command may change while the program runs (firmware/run_time.py); nothing here stands in
# the tables below, so that each can be checked by itself.
SETTABLE = (
    "send.rate_limit", "ring.max_age_s", "batch.max_readings", "batch.max_age_ms",
    "watchdog.delivery_timeout_s", "watchdog.check_period_s", "health.period_s",
    "plant.period_ms", "plant.alert_every_s", "board.period_ms", "log.level",
)  # fmt: skip

# The second is at least so many times the first.
_AT_LEAST = (
    ("mqtt.backoff_min_s", 1, "mqtt.backoff_max_s"),
    ("ring.page_bytes", 3, "ring.bytes"),
)
# The first is of no use without the second.
_NEEDS = (
    ("mqtt.password", "mqtt.user"),
    ("wifi.password", "wifi.ssid"),
    ("mqtt.ca_file", "mqtt.tls"),
    ("mqtt.cert_file", "mqtt.tls"),
    ("mqtt.cert_file", "mqtt.key_file"),
    ("mqtt.key_file", "mqtt.cert_file"),
)
# A batch of the largest reading fits in a page: bytes beside its values, and for each of theirs.
_BATCH_BYTES = {"f7": (32, 1), "json": (96, 6)}

LARGEST_FILE = 8192
NEW = ".new"  # behind the name of a file that is about to take its place
_LONGEST_SHOWN = 40
_NO_FILE = "{}: there is no such file; make it from config.example.json, with your mqtt.host"
_JSON_NAMES = {list: "[...]", dict: "{...}", type(None): "null"}


def load(path="config.json"):
    """The Config that the file at `path` makes; ConfigError for whatever is wrong with it.

    Each line of the error begins with the path; JSON that is none is named by line and column.
    """
    _finish_change(path)
    text = read(path)
    try:
        tree = strict_json.parse(text)
    except ValueError as error:
        raise ConfigError("{}: {}".format(path, error))
    config = check(tree, path + ": ")
    config.path = path
    return config


def _finish_change(path):
    """Where the old file is gone and the new one, which was whole by then, not yet in its place."""
    try:
        os.stat(path)
    except OSError:
        try:
            os.rename(path + NEW, path)
        except OSError:
            pass


def check(tree, source=""):
    """The Config of nested objects {"mqtt": {"host": "broker", ...}, ...}.

    ConfigError names every key that is wrong, with its value and limit, or for an unknown one the
    nearest known, one line each; `source` is put before each line.
    """
    problems = []
    given = _flat(tree, problems)
    values = {}
    for row in TABLE:
        key, default = row[0], row[1]
        value = given.get(key, default)
        if key not in given and default is None:
            problems.append("{}: missing, {} expected".format(key, expected(row)))
        elif fits(row, value):
            values[key] = value
        else:
            problems.append(misfit(row, value))
    _check_together(values, problems)
    if problems:
        raise ConfigError("\n".join([source + problem for problem in problems]))
    changed = tuple([row[0] for row in TABLE if values[row[0]] != row[1]])
    return Config(values, tuple([row[0] for row in TABLE]), changed)


def expected(row):
    """What a row's value must be, in words: "a whole number from 1 to 65535"."""
    _, _, kind, limits, _ = row
    if kind == INT:
        return "a whole number from {} to {}".format(limits[0], limits[1])
    if kind == BOOL:
        return "true or false"
    if kind == CHOICE:
        quoted = ['"{}"'.format(choice) for choice in limits]
        return ", ".join(quoted[:-1]) + " or " + quoted[-1]
    fewest, most, forbidden = limits
    text = "printable text of {} to {} bytes".format(fewest, most)
    return text + (' without any of "{}"'.format(forbidden) if forbidden else "")


def read(path):
    """The bytes of the file at `path`; ConfigError when there are none to be had."""
    try:
        # What is asked for is taken in one piece, however little there is to read.
        size = min(os.stat(path)[6], LARGEST_FILE)
        with open(path, "rb") as file:
            text = file.read(size + 1)
    except OSError as error:
        if error.errno == ENOENT:
            raise ConfigError(_NO_FILE.format(path))
        raise ConfigError("{}: it cannot be read ({})".format(path, error))
    if len(text) > LARGEST_FILE:
        raise ConfigError("{}: over {} bytes".format(path, LARGEST_FILE))
    return text


def _flat(tree, problems):
    """The values of `tree` by dotted key, known keys only."""
    if type(tree) is not dict:
        problems.append("an object of sections {...} expected, not " + _type_name(tree))
        return {}
    keys = [row[0] for row in TABLE]
    sections = [key.split(".")[0] for key in keys]
    given = {}
    for section in sorted(tree):
        names = tree[section]
        if type(names) is dict and section in sections:
            for name in sorted(names):
                key = section + "." + name
                if key in keys:
                    given[key] = names[name]
                else:
                    problems.append(_unknown("key", key, keys))
        elif section in sections:
            problems.append("{}: an object {{...}} expected".format(section))
        elif section in keys:
            problems.append("{}: write {}".format(section, _nested(section)))
        else:
            known = sections if type(names) is dict else keys
            problems.append(_unknown("section" if known is sections else "key", section, known))
    return given


def misfit(row, value):
    """What is wrong with a value that does not fit, in words."""
    return "{} {}: {} expected".format(row[0], _shown(row[0], value), expected(row))


def fits(row, value):
    """Whether a row's key may have this value."""
    _, _, kind, limits, _ = row
    if kind == BOOL:
        return type(value) is bool
    if kind == INT:
        return type(value) is int and limits[0] <= value <= limits[1]
    if type(value) is not str:
        return False
    if kind == CHOICE:
        return value in limits
    fewest, most, forbidden = limits
    if not fewest <= len(value.encode()) <= most:
        return False
    return not any([_is_unprintable(letter) or letter in forbidden for letter in value])


def _is_unprintable(letter):
    """Control characters and non-characters, for which a broker closes the connection."""
    return letter < " " or "\x7f" <= letter <= "\x9f" or ord(letter) & 0xFFFE == 0xFFFE


def _check_together(values, problems):
    """What holds between keys, where each of them is right by itself."""
    for low, times, high in _AT_LEAST:
        if low in values and high in values and values[high] < times * values[low]:
            least = "{} * {}".format(times, low) if times > 1 else low
            problems.append(_too_small(high, values[high], times * values[low], least))
    for key, needed in _NEEDS:
        if key in values and needed in values and values[key] and not values[needed]:
            problems.append("{}: of no use without {}".format(key, needed))
    for server in listed(values.get("network.dns", "")):
        if not is_name_server(server):
            problems.append("network.dns {}: an address such as 192.0.2.53 expected".format(server))
    server = values.get("network.ntp", "")
    if server and not is_time_server(server):
        problems.append("network.ntp {}: name or name:port expected".format(server))
    if values.get("mqtt.tls") and values.get("mqtt.tls_verify") and not values.get("mqtt.ca_file"):
        problems.append(
            "mqtt.ca_file: needed to verify the broker, or set mqtt.tls_verify to false"
        )
    page, slot = values.get("ring.page_bytes"), values.get("intake.slot_bytes")
    encoding = values.get("batch.encoding")
    if page and slot and encoding:
        head, each = _BATCH_BYTES[encoding]
        if page < head + each * slot:
            why = "the largest reading that intake.slot_bytes allows, as " + encoding
            problems.append(_too_small("ring.page_bytes", page, head + each * slot, why))


def _too_small(key, value, least, why):
    return "{} {}: at least {} expected ({})".format(key, value, least, why)


def _shown(key, value):
    """A value on one line; hides passwords, also one inside a URL, and cuts what is long."""
    if is_secret(key):
        return "(hidden)"
    if type(value) in _JSON_NAMES:
        return _JSON_NAMES[type(value)]
    if type(value) is not str:
        return shown(value)
    url = value.find("://")
    text = value[: url + 3 if url >= 0 else _LONGEST_SHOWN]
    return printable(shown(text if len(text) == len(value) else text + "..."))


def _type_name(value):
    return _shown("", value) if type(value) in _JSON_NAMES else "text, a number or true/false"


def _nested(key):
    section, name = key.split(".")
    return '{{"{}": {{"{}": ...}}}}'.format(section, name)


def _unknown(what, name, known):
    return "{}: unknown {}, did you mean {}?".format(name, what, meant(name, known))
