"""boot.py and main.py: every way to start, and to end at the REPL (SPEC §9)."""

import pytest

from tools.build import PROJECT

PROMPT = r">>> $"
SETTINGS = "class ConfigError(ValueError):\n    pass\n"
PROGRAM = """
class App:
    config = {{"watchdog.hardware_timeout_s": {timeout}}}
def start(namespace):
    namespace["app"] = App()
    {body}
"""


@pytest.fixture
def start(make_board):
    """A board with the real boot.py and main.py, and a firmware that does `body`."""

    def make(body, timeout=0, **files):
        files |= {
            "boot.py": (PROJECT / "boot.py").read_text(),
            "main.py": (PROJECT / "main.py").read_text().replace("PAUSE_S = 10", "PAUSE_S = 1"),
            "firmware/settings.py": SETTINGS,
            "firmware/console.py": PROGRAM.format(body=body, timeout=timeout),
        }
        return make_board(files)

    return make


def test_program_runs_and_its_names_are_at_the_repl(start):
    board = start("print('started'); namespace['answer'] = 42")
    board.wait_for("started")
    board.wait_for(PROMPT)
    board.type("answer\r")
    board.wait_for(r"42\r\n")


def test_safe_mode_starts_nothing(start):
    board = start("print('started')", safe_mode="")
    board.wait_for(r"millpond not started: safe mode.*\r\n(.*\r\n)*>>> $")
    assert "started'" not in board.output()
    mark = board.mark()
    board.type("import os, machine; os.remove('safe_mode'); machine.reset()\r")
    board.wait_for("started", since=mark)


def test_wrong_configuration_is_one_line_each_at_the_repl(start):
    body = "from firmware.settings import ConfigError; raise ConfigError('a: wrong\\nb: missing')"
    board = start(body, timeout=30)
    board.wait_for(
        r"millpond not started: a: wrong\r\nmillpond not started: b: missing\r\nMicroPython"
    )
    assert "Traceback" not in board.output()
    board.wait_for(PROMPT)
    assert board.boots == 1


def test_failure_shows_its_traceback_and_stays_at_the_repl(start):
    board = start("1 / 0")
    board.wait_for(r"millpond failed:\r\nTraceback(.*\r\n)*.*firmware/console.py(.*\r\n)*ZeroDiv")
    board.wait_for(PROMPT)
    assert board.boots == 1


def test_failure_with_the_watchdog_on_resets_after_a_pause(start):
    board = start("1 / 0", timeout=30)
    board.wait_for(r"ZeroDivisionError(.*\r\n)*reset in 1 s.*\r\n\r\nrst: reset\r\nmillpond")
    assert board.boots == 2


def test_ctrl_c_in_that_pause_leads_to_the_repl(start):
    board = start("1 / 0", timeout=30)
    board.wait_for("reset in 1 s")
    board.type("\x03")
    board.wait_for(PROMPT)
    assert board.boots == 1


def test_ctrl_c_during_the_start_leads_to_the_repl(start):
    board = start("print('up')\n    while True: pass")
    board.wait_for("up")
    board.type("\x03")
    board.wait_for(r"millpond not started: interrupted by Ctrl-C\r\nMicroPython")


def test_system_exit_goes_no_further(start):
    board = start("raise SystemExit")
    board.wait_for(r"millpond ended: .*sys.exit\(\)\r\nMicroPython")
    board.wait_for(PROMPT)
    assert board.boots == 1


def test_firmware_that_is_not_there_says_so(make_board):
    board = make_board({"main.py": (PROJECT / "main.py").read_text()})
    board.wait_for(r"millpond failed:\r\n(.*\r\n)*ImportError: .*firmware")
    board.wait_for(PROMPT)
