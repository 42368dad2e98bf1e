"""`python -m tools` where something is missing, and how the port of a board is found."""

import os
import subprocess
import sys

import pytest
import typer
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from tools import ports
from tools._core import ROOT


def test_without_the_environment_it_says_how_to_make_one():
    command = [sys.executable, "-S", "-m", "tools", "listen"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == ("typer is missing: run `make setup` and use .venv/bin/python -m tools\n")


@pytest.fixture
def no_vboard(tmp_path, monkeypatch):
    monkeypatch.setattr(ports, "VBOARD_PORT", tmp_path / "port")


def serial_port(device, description, hwid):
    port = ListPortInfo(device, skip_link_detection=True)
    port.description, port.hwid = description, hwid
    return port


def test_no_port_names_both_ways_and_lists_boards_only(no_vboard, monkeypatch):
    found = [serial_port("/dev/ttyS0", "n/a", "n/a")]
    monkeypatch.setattr(list_ports, "comports", lambda: found)
    text = ports.none_given()
    assert "no port given (PORT=...), and no board found" in text
    assert "start a virtual board with `make vboard`" in text
    assert "ttyS0" not in text
    found.append(serial_port("/dev/ttyUSB3", "CP2102", "USB VID:PID=10C4:EA60"))
    text = ports.none_given()
    assert "`make vboard`" in text
    assert "name your board's port" in text
    assert text.endswith("found:\n  /dev/ttyUSB3  CP2102")


def test_port_that_was_found_is_said_on_stderr_and_one_given_is_not(no_vboard, tmp_path, capsys):
    assert ports.given_or_found("/dev/x") == "/dev/x"
    assert capsys.readouterr().err == ""
    (tmp_path / "port").write_text(f"/dev/null {os.getpid()}\n")
    assert ports.given_or_found("") == "/dev/null"
    out, err = capsys.readouterr()
    assert (out, "/dev/null" in err) == ("", True)
    (tmp_path / "port").unlink()
    with pytest.raises(typer.Exit):
        ports.given_or_found("")
