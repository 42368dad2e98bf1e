"""The configuration: what passes, what each mistake is called, and what is never shown."""

from firmware.config import BOOL, CHOICE, INT, TABLE, TEXT, check, expected
from firmware.settings import ConfigError
from millpond.message_queue import OVERFLOWS
from tests_host.kit import raises


def tree(**keys):
    """Nested objects from keyword arguments such as mqtt_port=1; mqtt.host is always there."""
    found = {"mqtt": {"host": "broker"}}
    for key, value in keys.items():
        section, _, name = key.partition("_")
        found.setdefault(section, {})[name] = value
    return found


def tree_of(key, value):
    return tree(**{key.replace(".", "_", 1): value})


def problems(tree_):
    return raises(ConfigError, check, tree_).split("\n")


def problem(tree_):
    lines = problems(tree_)
    assert len(lines) == 1, lines
    return lines[0]


def explained(config):
    lines = []
    config.explain(lines.append)
    return lines


# What passes


def test_a_host_is_enough_and_all_else_has_its_default():
    config = check({"mqtt": {"host": "broker"}})
    assert config["mqtt.host"] == "broker"
    for key, default, _, _, _ in TABLE:
        if default is not None:
            assert config[key] == default and type(config[key]) is type(default), key


def test_what_is_given_is_used():
    config = check(tree(mqtt_port=8883, intake_overflow="oldest", plant_enabled=False))
    assert config["mqtt.port"] == 8883
    assert config["intake.overflow"] == "oldest"
    assert config["plant.enabled"] is False
    assert config["mqtt.keepalive_s"] == 60


def test_a_key_that_is_not_in_the_table_is_not_in_the_configuration():
    raises(KeyError, lambda: check(tree())["mqtt.hots"])


def test_every_key_is_there_once_as_section_and_name_with_a_help_line():
    keys = [row[0] for row in TABLE]
    assert len(set(keys)) == len(keys)
    for key, _, kind, _, help_line in TABLE:
        assert len(key.split(".")) == 2, key
        assert kind in (INT, TEXT, BOOL, CHOICE), key
        assert len(help_line) > 5 and "\n" not in help_line, key
        for ending, unit in (("_s", "s"), ("_ms", "ms"), ("bytes", "bytes")):
            if key.endswith(ending):
                assert unit in help_line.replace(";", ",").replace(",", " ").split(" "), key


# Wrong values


def test_whole_numbers_are_held_to_their_range_at_both_ends():
    rows = [row for row in TABLE if row[2] == INT]
    assert len(rows) > 20
    for row in rows:
        key, limits = row[0], row[3]
        for wrong in (limits[0] - 1, limits[1] + 1):
            line = "{} {}: a whole number from {} to {} expected".format(key, wrong, *limits)
            assert line in problems(tree_of(key, wrong)), (key, wrong)
        for right in limits:
            assert expected(row) not in str(check_or_error(tree_of(key, right))), (key, right)


def check_or_error(tree_):
    try:
        check(tree_)
    except ConfigError as error:
        return error
    return ""


def test_only_whole_numbers_are_whole_numbers():
    for wrong, shown in (
        (True, "true"),
        (False, "false"),
        ("1883", '"1883"'),
        (None, "null"),
        ([1883], "[...]"),
        ({"a": 1}, "{...}"),
    ):
        line = "mqtt.port {}: a whole number from 1 to 65535 expected".format(shown)
        assert problem(tree(mqtt_port=wrong)) == line
    assert problem(tree(mqtt_port=1883.0)).startswith("mqtt.port 1883")


def test_only_true_and_false_are_true_or_false():
    for wrong, shown in ((1, "1"), (0, "0"), ("true", '"true"'), (None, "null")):
        line = "mqtt.clean_session {}: true or false expected".format(shown)
        assert problem(tree(mqtt_clean_session=wrong)) == line


def test_a_choice_names_all_choices():
    line = problem(tree(intake_overflow="drop"))
    assert line == 'intake.overflow "drop": "displace", "reject" or "oldest" expected'
    assert problem(tree(batch_encoding=0)) == 'batch.encoding 0: "f7" or "json" expected'
    assert problem(tree(batch_encoding="")) == 'batch.encoding "": "f7" or "json" expected'


def test_text_is_counted_in_utf8_bytes():
    assert check(tree(device_name="é" * 16))["device.name"] == "é" * 16
    assert "printable text of 1 to 32 bytes" in problem(tree(device_name="é" * 16 + "x"))
    assert "printable text of 1 to 32 bytes" in problem(tree(device_name=""))
    for wrong in (1, True, None, ["a"]):
        assert problem(tree(device_name=wrong)).startswith("device.name ")


def test_each_text_is_held_to_its_length_at_both_ends():
    for row in TABLE:
        if row[2] != TEXT:
            continue
        key, (fewest, most, _) = row[0], row[3]
        assert expected(row) in str(check_or_error(tree_of(key, "x" * (most + 1)))), key
        assert expected(row) not in str(check_or_error(tree_of(key, "x" * most))), key
        if fewest:
            assert expected(row) in str(check_or_error(tree_of(key, ""))), key


def test_what_a_topic_or_a_host_must_not_hold_is_refused():
    for key, forbidden in (("device.name", "+#/\0"), ("mqtt.prefix", "+#\0"), ("mqtt.host", "/: ")):
        for letter in forbidden:
            line = problem(tree_of(key, "a" + letter + "b"))
            assert line.startswith(key + " ") and "expected" in line, line
    assert check(tree(mqtt_prefix="site/hall"))["mqtt.prefix"] == "site/hall"
    assert check(tree(device_name="hall 3, °C"))["device.name"] == "hall 3, °C"


def test_control_characters_are_refused_and_the_message_stays_one_line():
    line = problem(tree(wifi_ssid="a\nb"))
    assert line == 'wifi.ssid "a?b": printable text of 0 to 32 bytes expected'


def test_a_long_value_is_cut_in_the_message():
    line = problem(tree(device_name="x" * 300))
    assert '"' + "x" * 40 + '..."' in line
    assert len(line) < 150


def test_a_missing_host_is_named():
    line = problem({})
    assert line.startswith("mqtt.host: missing, printable text of 1 to 253 bytes")


# Unknown keys


def test_an_unknown_key_names_the_nearest_known():
    for wrong, right in (
        ("mqtt.prot", "mqtt.port"),
        ("mqtt.hots", "mqtt.host"),
        ("mqtt.keepalive", "mqtt.keepalive_s"),
        ("mqtt.Port", "mqtt.port"),
        ("mqtt.ssid", "wifi.ssid"),
        ("wifi.pasword", "wifi.password"),
        ("mqtt.pasword", "mqtt.password"),
        ("ring.byte", "ring.bytes"),
        ("batch.max_reading", "batch.max_readings"),
    ):
        line = "{}: unknown key, did you mean {}?".format(wrong, right)
        assert problem(tree_of(wrong, 1)) == line, (wrong, problem(tree_of(wrong, 1)))


def test_Q6_the_rules_of_overflow_are_the_queues():
    assert [row[3] for row in TABLE if row[0] == "intake.overflow"] == [OVERFLOWS]


def test_an_unknown_section_names_the_nearest_known():
    given = {"mqtt": {"host": "broker"}, "wfi": {"ssid": "x", "password": "y"}}
    assert problem(given) == "wfi: unknown section, did you mean wifi?"


def test_a_key_outside_its_section_is_led_home():
    given = {"mqtt": {"host": "broker"}, "port": 1883}
    assert problem(given) == "port: unknown key, did you mean mqtt.port?"
    given = {"mqtt": {"host": "broker"}, "mqtt.port": 1883}
    assert problem(given) == 'mqtt.port: write {"mqtt": {"port": ...}}'


def test_a_section_and_the_whole_must_be_objects():
    for wrong in (1, "x", None, [], True):
        given = {"mqtt": {"host": "broker"}, "ring": wrong}
        assert problem(given) == "ring: an object {...} expected"
    assert problems([])[0] == "an object of sections {...} expected, not [...]"
    assert problems(None)[0] == "an object of sections {...} expected, not null"
    assert problems(3)[0].startswith("an object of sections {...} expected, not ")


def test_name_servers_are_addresses():
    for dns in ("192.0.2.53", "192.0.2.53:5353, 198.51.100.1", ""):
        check({"mqtt": {"host": "b"}, "network": {"dns": dns}})
    for dns in ("dns.example", "192.0.2.53:0", "192.0.2.53:x", "192.0.2.53:65536", "1.2.3"):
        said = raises(ConfigError, check, {"mqtt": {"host": "b"}, "network": {"dns": dns}})
        assert said == "network.dns {}: an address such as 192.0.2.53 expected".format(dns)


def test_a_time_server_that_is_none_is_named():
    for ntp in (":123", "a.test:x", "a.test:65536"):
        said = raises(ConfigError, check, {"mqtt": {"host": "b"}, "network": {"ntp": ntp}})
        assert said == "network.ntp {}: name or name:port expected".format(ntp)


def test_TLS_needs_its_files():
    def problems(**mqtt):
        mqtt["host"] = "b"
        return raises(ConfigError, check, {"mqtt": mqtt})

    assert problems(tls=True) == (
        "mqtt.ca_file: needed to verify the broker, or set mqtt.tls_verify to false"
    )
    assert problems(ca_file="ca.pem") == "mqtt.ca_file: of no use without mqtt.tls"
    assert problems(tls=True, ca_file="a", cert_file="c") == (
        "mqtt.cert_file: of no use without mqtt.key_file"
    )
    assert problems(tls=True, ca_file="a", key_file="c") == (
        "mqtt.key_file: of no use without mqtt.cert_file"
    )
    check({"mqtt": {"host": "b", "tls": True, "tls_verify": False}})
    check({"mqtt": {"host": "b", "tls": True, "ca_file": "a", "cert_file": "c", "key_file": "k"}})


def test_all_problems_are_named_one_line_each_in_the_tables_order():
    given = {
        "zzz": {},
        "mqtt": {"port": 0, "qos": 3, "hots": "broker"},
        "device": {"name": ""},
    }
    lines = problems(given)
    starts = [line.split(":")[0] for line in lines]
    assert starts == [
        "mqtt.hots",
        "zzz",
        'device.name ""',
        "mqtt.host",
        "mqtt.port 0",
        "mqtt.qos 3",
    ]


# What holds between keys


def test_R8_the_ring_holds_at_least_three_pages():
    line = problem(tree(ring_bytes=12287, ring_page_bytes=4096))
    assert line == "ring.bytes 12287: at least 12288 expected (3 * ring.page_bytes)"
    assert check(tree(ring_bytes=12288, ring_page_bytes=4096))["ring.bytes"] == 12288


def test_the_longest_wait_is_not_below_the_first():
    line = problem(tree(mqtt_backoff_min_s=30, mqtt_backoff_max_s=29))
    assert line == "mqtt.backoff_max_s 29: at least 30 expected (mqtt.backoff_min_s)"
    check(tree(mqtt_backoff_min_s=30, mqtt_backoff_max_s=30))


def test_a_batch_of_the_largest_reading_fits_in_a_page():
    f7 = tree(ring_page_bytes=2048, intake_slot_bytes=2017)
    assert problem(f7).startswith("ring.page_bytes 2048: at least 2049 expected (")
    check(tree(ring_page_bytes=2048, intake_slot_bytes=2016))
    json = tree(ring_page_bytes=3167, intake_slot_bytes=512, batch_encoding="json")
    assert problem(json).startswith("ring.page_bytes 3167: at least 3168 expected (")
    check(tree(ring_page_bytes=3168, intake_slot_bytes=512, batch_encoding="json"))


def test_a_password_needs_its_user():
    assert problem(tree(mqtt_password="x")) == "mqtt.password: of no use without mqtt.user"
    assert problem(tree(wifi_password="x")) == "wifi.password: of no use without wifi.ssid"
    check(tree(mqtt_password="x", mqtt_user="u", wifi_password="y", wifi_ssid="s"))


def test_what_is_wrong_by_itself_is_named_once():
    assert problem(tree(ring_page_bytes=10**6)).startswith("ring.page_bytes 1000000: a whole")
    assert problem(tree(batch_encoding="f8")).startswith('batch.encoding "f8"')


# Passwords


def test_no_error_shows_a_password():
    for wrong in ("hunter2" * 100, "hunter2\n", ["hunter2"], {"hunter2": 1}):
        for key in ("mqtt.password", "wifi.password"):
            line = "\n".join(problems(tree_of(key, wrong)))
            assert key + " (hidden): " in line and "hunter2" not in line, line
    assert "hunter2" not in problem(tree(mqtt_pasword="hunter2"))
    assert "hunter2" not in problem({"mqtt": {"host": "broker"}, "wifi": "hunter2"})
    assert "hunter2" not in problem(tree(mqtt_password="hunter2"))
    assert "hunter2" not in problem(tree(mqtt_host="mqtt://me:hunter2@broker"))


def test_explain_tells_only_whether_there_is_a_password():
    lines = explained(check(tree(mqtt_password="hunter2", mqtt_user="me")))
    text = "\n".join(lines)
    assert "hunter2" not in text
    assert [line.split() for line in lines if "password" in line] == [
        ["wifi.password", "(none)"],
        ["*", "mqtt.password", "(set)"],
    ]


def test_explain_prints_every_key_in_order_and_marks_what_differs():
    lines = explained(check(tree(mqtt_port=8883, plant_enabled=False, device_type=1)))
    assert len(lines) == len(TABLE)
    for line, row in zip(lines, TABLE):
        assert line[2:].split()[0] == row[0]
    marked = [line.split()[1:] for line in lines if line[0] == "*"]
    assert marked == [["mqtt.host", '"broker"'], ["mqtt.port", "8883"], ["plant.enabled", "false"]]


def test_characters_that_a_broker_refuses_are_refused():
    for letter in "\x07\x7f\x85\ufffe\uffff":
        text = raises(ConfigError, check, {"mqtt": {"host": "h"}, "device": {"name": "a" + letter}})
        assert "device.name" in text, letter
