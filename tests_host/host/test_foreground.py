"""What `vboard` shows of its board's console, and what it says at the start."""

import json

import pytest
import typer

from tools.loopback import free_port
from tools.vboard import banner as banners
from tools.vboard.command import heap_size
from tools.vboard.flash import configuration
from tools.vboard.foreground import Foreground

RAW = "\r\nraw REPL; CTRL-B to exit\r\n>"
SESSION = f"{RAW}OK12 abcdef boot.py\r\n\x04\x04>OKTraceback\r\nOSError: 17\r\n\x04>\r\n"
INSTEAD = "(a tool is at the board's raw REPL)\n"
PROMPT = "MicroPython 1a2b on 2026-07-05; linux version\r\nType help\r\n>>> "


def shown(text, size):
    foreground = Foreground()
    return "".join(foreground.feed(text[n : n + size]) for n in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\r\nb", "a\nb"),
        (f"a\r\n{SESSION}{PROMPT}", f"a\n\n{INSTEAD}{PROMPT}"),
        (f">>> {SESSION}\r\nrst: reset\r\nboot", f">>> \n{INSTEAD}rst: reset\nboot"),
        (f"{RAW}OK{RAW}OKmillpond runs; s\r\nINFO", f"\n{INSTEAD}millpond runs; s\nINFO"),
        (f"{SESSION}{PROMPT}{SESSION}", f"\n{INSTEAD}{PROMPT}\n{INSTEAD}"),
        ("print('raw REPL; CTRL-B to exit')\r\n", "print('raw REPL; CTRL-B to exit')\n"),
    ],
)
def test_raw_repl_sessions_are_one_line_and_the_rest_is_shown(text, wanted, size):
    got = shown(text, size).replace(" - there, by make repl; here Ctrl-C switches it off", "")
    assert got == wanted.replace("\r", "")


def test_prompt_without_line_end_is_shown_at_once():
    foreground = Foreground()
    assert foreground.feed(">>> ") == ">>> "
    assert foreground.feed("ra") == "ra"
    assert foreground.feed("\r\nra") == "\n"
    assert foreground.feed("t") == "rat"


@pytest.mark.parametrize("port", ["/dev/pts/0", "/dev/pts/12345"])
def test_banner_is_aligned_and_fits_80_columns(tmp_path, port):
    lines = banners.banner(port, tmp_path, False).splitlines()
    rows = [line for line in lines if line.startswith("  ")]
    starts = {
        line.index(text) for line, text in zip(rows, ("its status", "its REPL"), strict=False)
    }
    assert len(starts) == 1
    assert max(map(len, lines)) <= 80
    assert f"make status PORT={port} " in rows[0]
    assert "PORT=" not in banners.banner(port, tmp_path, True).splitlines()[1]


def test_banner_names_the_broker_and_how_to_start_one(tmp_path):
    port = free_port()
    mqtt = {"host": "127.0.0.1", "port": port, "prefix": "my pond"}
    (tmp_path / "config.json").write_text(json.dumps({"mqtt": mqtt}))
    text = banners.banner("/dev/pts/0", tmp_path, True)
    assert f"looks for its broker at 127.0.0.1:{port}" in text
    assert "CONFIG=file" in text
    assert f"listen --port {port} --prefix 'my pond'" in text
    assert "No broker answers there." in text
    if banners.mosquitto_path():
        assert f"mosquitto -p {port}" in text


def test_banner_does_not_ask_for_a_broker_that_answers_or_has_a_name(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(banners, "accepts", lambda *where: asked.append(where) or True)
    for host in ("127.0.0.1", "broker.example"):
        (tmp_path / "config.json").write_text(json.dumps({"mqtt": {"host": host}}))
        text = banners.banner("/dev/pts/0", tmp_path, True)
        assert f"{host}:1883" in text
        assert "No broker" not in text
    assert asked == [(1883, "127.0.0.1")]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mqtt": 1}', '{"mqtt": {"port": 1}}'])
def test_banner_leaves_a_wrong_configuration_to_the_board(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    assert "broker" not in banners.banner("/dev/pts/0", tmp_path, True)


def test_the_programs_keys_are_said_to_be_those_of_its_repl():
    said = "millpond runs; s shows its status, Ctrl-C stops it and leads to the REPL\r\n"
    assert shown(said, 7).endswith("REPL - there, by make repl; here Ctrl-C switches it off\n")


def test_banner_repeats_no_wrong_port_as_advice(tmp_path):
    text = '{"mqtt": {"host": "127.0.0.1", "port": 188300}}'
    (tmp_path / "config.json").write_text(text)
    assert "188300" not in banners.banner("/dev/pts/0", tmp_path, True)


@pytest.mark.parametrize(
    ("more", "option"),
    [({"ca_file": "ca.pem"}, "--ca {}/ca.pem"), ({"tls_verify": False}, "--insecure")],
)
def test_banner_names_what_tls_asks_of_listen_and_no_plain_broker(tmp_path, more, option):
    mqtt = {"host": "127.0.0.1", "port": free_port(), "tls": True, **more}
    (tmp_path / "config.json").write_text(json.dumps({"mqtt": mqtt}))
    text = banners.banner("/dev/pts/0", tmp_path, True)
    assert f"listen --port {mqtt['port']} {option.format(tmp_path)}" in text
    assert "mosquitto -p" not in text


@pytest.mark.parametrize("text", ["32K", "512k", "2M", "600000"])
def test_heap_sizes(text):
    assert heap_size(text) == text


@pytest.mark.parametrize("text", ["3X", "", "K", "1K", "-5M", "2G", "99999M", "1.5M"])
def test_wrong_heap_size_is_told_the_accepted_form(text):
    with pytest.raises(typer.BadParameter, match="such as 512K or 2M"):
        heap_size(text)


def test_configuration_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(OSError, match=r"the configuration .*none\.json: No such file"):
        configuration(tmp_path, tmp_path / "none.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(OSError, match="not a text file"):
        configuration(tmp_path, tmp_path / "binary")
