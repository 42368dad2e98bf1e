"""`python -m tools demo`: passes where all is well, fails where it isn't, and leaves nothing."""

import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from firmware import config
from tools import demo
from tools._core import ROOT
from tools.audit import Verdict
from tools.backlog import Backlog, sparkline
from tools.demo_show import Drained, Show

DEMO = [sys.executable, "-m", "tools", "demo"]
KEYS = {
    "produced", "delivered", "duplicates", "dropped", "lost", "in_order", "outage_s", "max_backlog",
}  # fmt: skip
LIMIT_S = 100

app = typer.Typer()
app.command()(demo.command)


def run_here(monkeypatch, tmp_path, *arguments):
    """Run the command in this process, in a folder of its own."""
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, list(map(str, ("--home", tmp_path / "demo", *arguments))))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


# -- the whole of it -----------------------------------------------------------------------------


def test_demo_json_accounts_for_every_item_over_two_outages(tmp_path):
    began = time.monotonic()
    done = subprocess.run(
        [*DEMO, "--json", "--seconds", "25", "--home", tmp_path],
        cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert set(result) == KEYS
    assert result["lost"] == 0
    assert result["in_order"] is True
    assert result["produced"] == result["delivered"] + result["dropped"] > 1000
    assert result["dropped"] == 0  # the ring has room for outages of this length
    assert result["duplicates"] > 0  # an acknowledgement was taken away
    assert result["max_backlog"] > 200
    first, second = demo.cut_lengths(25)
    assert first + second <= result["outage_s"] < first + second + 3
    assert took < 60
    assert done.stderr.count("✓") == 9
    assert max(map(len, done.stderr.splitlines())) <= 80
    drained = re.findall(r"link back: in [\d.]+ s; (\d+) held \+ (\d+) new items", done.stderr)
    assert len(drained) == 2
    assert int(drained[0][0]) > 100
    assert "Every item accounted for" in done.stderr


LOSSY = """
from firmware.outlet import Outlet
_reading, _count = Outlet.reading, [0]
def _lossy(self, tag_id, value, status=0):
    _count[0] += 1
    if _count[0] != 300:
        _reading(self, tag_id, value, status)
Outlet.reading = _lossy
_main(globals())
"""


def test_demo_fails_when_the_firmware_loses_one_reading(monkeypatch, tmp_path):
    make_flash = demo.make_flash

    def make_lossy_flash(flash, **kwargs):
        make_flash(flash, **kwargs)
        main = flash / "main.py"
        text = main.read_text()
        assert "\n_main(globals())\n" in text
        main.write_text(text.replace("\n_main(globals())\n", LOSSY))

    monkeypatch.setattr(demo, "make_flash", make_lossy_flash)
    done = run_here(monkeypatch, tmp_path, "--json", "--seconds", 20)
    assert done.exit_code == 1
    assert json.loads(done.stdout.splitlines()[-1])["lost"] == 1
    assert "1 items lost" in done.stderr
    assert "look at demo/received.jsonl" in done.stderr


def test_demo_names_the_step_that_fails_and_why(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "board_config", lambda port: {"mqtt": {"port": port}})
    done = run_here(monkeypatch, tmp_path, "--seconds", 20)
    assert done.exit_code == 1
    assert "FAILED at step 3/9 virtual board" in done.stdout
    assert "mqtt.host" in done.stdout
    assert "look at demo/console.log" in done.stdout
    assert "mqtt.host" in (tmp_path / "demo" / "console.log").read_text()


def test_demo_fails_when_the_link_is_not_really_cut(monkeypatch, tmp_path):
    monkeypatch.setattr(demo.Proxy, "refuse", lambda _self: None)
    done = run_here(monkeypatch, tmp_path, "--seconds", 20)
    assert done.exit_code == 1
    assert "FAILED at step 5/9 link cut" in done.stdout
    assert "link down and at least" in done.stdout


@pytest.mark.parametrize(
    ("end", "code", "last"), [(signal.SIGTERM, 143, ""), (signal.SIGINT, 130, "demo stopped\n")]
)
def test_demo_ends_cleanly_when_it_is_stopped(tmp_path, end, code, last):
    command = [*DEMO, "--home", tmp_path]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
    watchdog = threading.Timer(LIMIT_S, process.kill)
    watchdog.start()
    with process.stdout:
        for line in process.stdout:
            if "✓ 3/9" in line:
                break
        children = children_of(process.pid)
        assert len(children) >= 2  # the broker and MicroPython
        os.killpg(process.pid, end)  # as a terminal does
        assert process.stdout.read().endswith(last)
    assert process.wait(LIMIT_S) == code
    assert not (tmp_path / "lock").exists()
    watchdog.cancel()
    assert not [pid for pid in children if alive(pid)]


def children_of(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True)
    return [int(child) for child in listed.stdout.split() if alive(int(child))]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("--seconds", 5), "20"), (("--seconds", "soon"), "--seconds"), (("--fast",), "--fast")],
)
def test_wrong_arguments_are_named(arguments, named):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 2
    assert named in done.stderr


def test_two_at_once_in_one_folder_are_kept_apart(monkeypatch, tmp_path):
    home = tmp_path / "demo"
    home.mkdir()
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (home / "console.log").touch()
        done = run_here(monkeypatch, tmp_path)
        assert done.exit_code == 1
        assert "another demonstration uses" in done.stdout.replace("\n", "")
        assert (home / "console.log").exists()


def test_an_unknown_broker_is_named(monkeypatch, tmp_path):
    done = run_here(monkeypatch, tmp_path, "--broker", "emqx")
    assert done.exit_code == 1
    assert "'emqx'" in done.stdout


# -- its parts -----------------------------------------------------------------------------------


def test_the_boards_configuration_is_a_valid_one():
    checked = config.check(demo.board_config(1883))
    assert checked["mqtt.prefix"] == "demo"
    assert checked["log.status_s"] == 1


@pytest.mark.parametrize("seconds", [20, 45, 60, 600])
def test_both_outages_are_long_enough_and_fit(seconds):
    first, second = demo.cut_lengths(seconds)
    assert 3 < first < second  # the second is found out by a 2 s deadline
    assert first + second < seconds - 8


def test_backlog_reads_status_lines_cut_anywhere():
    text = (
        "[pond] link up queue 0/128 ring 2% held 3\r\nother held 99\r\nLink DOWN x held 240 y\r\n"
    )
    for size in range(1, len(text) + 1):
        backlog = Backlog()
        for n in range(0, len(text), size):
            backlog.feed(text[n : n + size], n)
        assert [(s.link_up, s.held) for s in backlog.samples] == [(True, 3), (False, 240)]
    backlog.feed("link up held 5", 7)
    assert len(backlog.samples) == 2
    assert (backlog.most(), backlog.most(since=0.5), backlog.since(0)) == (240, 0, [])


def test_sparkline():
    assert sparkline([0, 1, 2, 4, 8], 10) == "▁▁▂▄█"
    assert sparkline([8, 1, 2], 2) == "▄█"
    assert sparkline([0, 0], 5) == "▁▁"
    assert sparkline([], 5) == ""


def shown(verdict, terminal=False):
    out = io.StringIO()
    show = Show(Console(file=out, force_terminal=terminal, width=80), 2)
    with show.step("first") as step:
        step.note("working")
        step.result("worked")
    show.table(verdict, [1.5, 2.25], 77, Drained(90, 4, 0.0125, 77))
    return out.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_show_steps_and_table(terminal):
    good = Verdict(20, 18, 3, {"stolen": 2}, 0, 0, True)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown(good, terminal))
    assert "✓ 1/2 first: worked" in text
    rows = [line.replace("│", " ").split() for line in text.splitlines()]
    assert ["produced", "20", "readings,", "alerts,", "health", "messages"] in rows
    assert ["dropped", "2"] in rows
    assert "90 │ in 4 messages (batches, alerts), 12 ms" in text
    assert ["stolen", "2"] in rows
    assert ["order", "kept", "yes"] in rows
    assert ["link", "cut", "1.5", "s", "+", "2.2", "s"] in rows
    assert "Every item accounted for" in text
    bad = Verdict(20, 17, 0, {}, 0, 3, False, ["3 items lost"])
    assert "NOT accounted for" in shown(bad)


def test_show_prints_changes_at_most_once_a_second():
    out = io.StringIO()
    with Show(Console(file=out, width=80), 1).step("x") as step:
        for n in range(100):
            step.note(f"note {n}")
    assert "note" not in out.getvalue()


def test_summary_has_exactly_the_promised_keys():
    verdict = Verdict(20, 18, 3, {"stolen": 2}, 0, 0, True)
    result = demo.Result(outages=[1.25, 2.0], max_backlog=77)
    assert demo.summary(verdict, result) == {
        "produced": 20, "delivered": 18, "duplicates": 3, "dropped": 2, "lost": 0,
        "in_order": True, "outage_s": 3.2, "max_backlog": 77,
    }  # fmt: skip
