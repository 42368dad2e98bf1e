"""`vboard` and `repl` as a person runs them, at a terminal."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from tools import __main__ as command_line
from tools import ports, tree
from tools.build import PROJECT
from tools.vboard import flash, make_flash

VBOARD = """
import sys
from pathlib import Path
from tools import ports
from tools.vboard.command import command
ports.VBOARD_PORT = Path(sys.argv[2])
command(config=None, root=Path(sys.argv[1]))
"""
CONFIG = '{"mqtt": {"host": "127.0.0.1", "port": 1}}'


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, *command):
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=PROJECT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""

    def wait_for(self, text, timeout=30):
        deadline = time.monotonic() + timeout
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self._master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.text += os.read(self._master, 4096).decode()

    def wait_until_keys_go_through(self, timeout=30):
        """Wait until the command reads each key by itself, Ctrl-C included."""
        deadline = time.monotonic() + timeout
        while termios.tcgetattr(self._master)[3] & termios.ICANON:
            assert time.monotonic() < deadline, self.text
            time.sleep(0.01)

    def type(self, text):
        self.text = ""
        os.write(self._master, text.encode())

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal():
    """Start a command at a terminal; it is ended at the end of the test."""
    started = []

    def start(*command):
        started.append(Terminal(*command))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_vboard_runs_prints_its_port_and_ends_cleanly(terminal, tmp_path, monkeypatch, end):
    port_file, root = tmp_path / "port", tmp_path / "flash"
    root.mkdir()
    (root / "config.json").write_text(CONFIG)
    monkeypatch.setattr(ports, "VBOARD_PORT", port_file)
    board = terminal("-c", VBOARD, str(root), str(port_file))
    board.wait_for("millpond runs")
    port = ports.virtual_board()
    assert f"mpremote connect {port} resume repl" in board.text
    assert (tmp_path / "flash.lock").exists()
    board.process.send_signal(end)
    board.wait_for("virtual board switched off")
    assert board.process.wait(10) == 0
    assert not port_file.exists()
    assert not (tmp_path / "flash.lock").exists()
    assert ports.virtual_board() == ""
    assert (root / "config.json").read_text() == CONFIG


def test_second_vboard_with_one_flash_fails_at_once_and_another_flash_is_fine(
    terminal, tmp_path, monkeypatch
):
    port_file = tmp_path / "port"
    roots = [tmp_path / "flash", tmp_path / "other"]
    for root in roots:
        root.mkdir()
        (root / "config.json").write_text(CONFIG)
    monkeypatch.setattr(ports, "VBOARD_PORT", port_file)
    first = terminal("-c", VBOARD, str(roots[0]), str(port_file))
    first.wait_for("millpond runs")
    port = ports.virtual_board()
    second = terminal("-c", VBOARD, str(roots[0]), str(port_file))
    assert second.process.wait(20) == 1
    second.wait_for("give --root DIR")
    told = second.text.replace("\r\n", " ")
    assert (
        f"flash is in use by another virtual board (pid {first.process.pid}, port {port})" in told
    )
    assert ports.virtual_board() == port
    third = terminal("-c", VBOARD, str(roots[1]), str(port_file))
    third.wait_for("millpond runs")
    assert "make status PORT=/dev/" in third.text
    third.process.send_signal(signal.SIGINT)
    assert third.process.wait(10) == 0
    assert ports.virtual_board() == port


@pytest.mark.parametrize(
    "root", [PROJECT, PROJECT.parent, PROJECT / "lib", PROJECT / "firmware" / "new"]
)
def test_vboard_never_takes_sources_for_a_flash(root):
    assert "sources" in flash.reason_against(root)


def test_vboard_takes_a_copy_of_the_sources_for_none_even_once_deployed_to(tmp_path):
    for name in ("pyproject.toml", "deployed.json"):
        (tmp_path / name).write_text("{}")
    assert "sources" in flash.reason_against(tmp_path)


def test_vboard_takes_what_is_empty_new_or_was_a_flash(tmp_path):
    assert flash.reason_against(tmp_path / "new") == flash.reason_against(tmp_path) == ""
    (tmp_path / "config.json").write_text(CONFIG)
    assert flash.reason_against(tmp_path) == ""
    (tmp_path / "main.py").write_text("mine")
    assert flash.reason_against(tmp_path).startswith("it is not empty (main.py)")
    assert flash.reason_against(tmp_path / "main.py") == "it is not a directory"
    (tmp_path / "deployed.json").write_text("{}")
    assert flash.reason_against(tmp_path) == ""


def test_vboard_leaves_a_folder_with_a_main_of_ones_own_as_it_is(terminal, tmp_path):
    root = tmp_path / "mine"
    root.mkdir()
    (root / "main.py").write_text("mine")
    board = terminal("-c", VBOARD, str(root), str(tmp_path / "port"))
    board.wait_for("make vboard ROOT=DIR")
    assert board.process.wait(20) == 1
    assert [path.name for path in root.iterdir()] == ["main.py"]
    assert (root / "main.py").read_text() == "mine"


def test_a_flash_filled_in_part_is_known_to_be_one(tmp_path, monkeypatch):
    built, root = tmp_path / "built", tmp_path / "flash"
    built.mkdir()
    (built / "main.py").write_text("ours")

    def cut_short(_path):
        raise OSError("no space")

    monkeypatch.setattr(tree.Path, "read_bytes", cut_short)
    monkeypatch.setattr(tree, "digest", lambda _path: "0")
    with pytest.raises(OSError, match="no space"):
        tree.install(built, root)
    assert flash.reason_against(root) == ""


def test_vboard_does_not_show_what_a_deploy_says_to_the_board(terminal, tmp_path, monkeypatch):
    port_file, root = tmp_path / "port", tmp_path / "flash"
    root.mkdir()
    (root / "config.json").write_text(CONFIG)
    monkeypatch.setattr(ports, "VBOARD_PORT", port_file)
    board = terminal("-c", VBOARD, str(root), str(port_file))
    board.wait_for("millpond runs")
    (root / "main.py").write_text("print('old')\n")
    person = terminal("-m", "tools", "deploy", "--port", ports.virtual_board())
    assert person.process.wait(60) == 0
    person.wait_for("The program runs.")
    board.wait_for("rst: reset")
    assert "buffered data is lost" in person.text
    assert "(a tool is at the board's raw REPL)" in board.text
    for noise in ("raw REPL;", "Traceback", "EEXIST", "boot.py"):
        assert noise not in board.text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--heap", "3X"), "such as 512K"),
        (("--config", "/nonexist.json"), "the configuration /nonexist.json: No such file"),
    ],
)
def test_vboard_names_a_wrong_option(tmp_path, options, named):
    command = [sys.executable, "-m", "tools", "vboard", "--root", tmp_path / "flash", *options]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2)
    assert named in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "flash.lock").exists()


def test_vboard_without_configuration_uses_a_broker_on_this_computer(tmp_path):
    from tools.vboard.flash import configuration

    text = configuration(tmp_path, None)
    if not (PROJECT / "config.json").exists():
        assert '"host": "127.0.0.1"' in text
    (tmp_path / "config.json").write_text("{}")
    assert configuration(tmp_path, None) is None


def test_repl_stops_inspects_and_resumes_with_nothing_lost(terminal, make_board, tmp_path):
    board = make_board()
    make_flash(board.root, config=CONFIG, built=tmp_path / "built")
    board.hard_reset()
    board.wait_for("millpond runs")
    person = terminal("-m", "tools", "repl", "--port", board.port)
    person.wait_until_keys_go_through()
    person.type("\x03")
    person.wait_for(">>> ")
    person.type("held = counters()['held']; held > 0\r")
    person.wait_for("True")
    person.type("resume()\r")
    person.wait_for("millpond runs")
    person.type("\x03")
    person.wait_for(">>> ")
    person.type("counters()['held'] >= held, counters()['delivered']\r")
    person.wait_for("(True, 0)")
    person.type("\x1d")
    assert person.process.wait(10) == 0
    assert board.boots == 2


def test_every_command_names_a_module_that_offers_it():
    missing = [
        name
        for name, (module, _) in command_line.COMMANDS.items()
        if not hasattr(__import__(module, fromlist=["command"]), "command")
    ]
    assert missing == []
