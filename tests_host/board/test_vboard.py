"""The virtual board, as mpremote and a person at its serial port meet it (SPEC §9)."""

import os
import subprocess
import time

import pytest

from tools.repl import mpremote_command
from tools.vboard import VirtualBoard, VirtualBoardError

BOOT = "print('boot', __name__)\n"
MAIN = "print('main')\nx = 1\n"
PROMPT = r">>> $"
READS_KEYS = """
import sys, micropython
micropython.kbd_intr(-1)
print('running')
keys = b''
while keys[-1:] != b'\\x03':
    keys += sys.stdin.buffer.read(1)
micropython.kbd_intr(3)
print('keys', keys)
"""


def say(board, line, pattern):
    """Type a line at the REPL and wait for what it answers."""
    mark = board.mark()
    board.type(line + "\r")
    return board.wait_for(pattern, since=mark)


# -- files ---------------------------------------------------------------------------------------


def test_fs_ls_shows_names_and_sizes(make_board, mpremote):
    board = make_board({"a.txt": "12345", "lib/b.txt": ""})
    text = mpremote(board, "fs", "ls")
    assert "5 a.txt" in text
    assert "0 lib/" in text


def test_cp_there_and_back_relative_and_absolute(board, mpremote, tmp_path):
    data = bytes(range(256)) * 20
    (tmp_path / "here.bin").write_bytes(data)
    mpremote(board, "cp", str(tmp_path / "here.bin"), ":there.bin")
    assert (board.root / "there.bin").read_bytes() == data
    mpremote(board, "cp", str(tmp_path / "here.bin"), ":/absolute.bin")
    assert (board.root / "absolute.bin").read_bytes() == data
    mpremote(board, "cp", ":there.bin", str(tmp_path / "back.bin"))
    assert (tmp_path / "back.bin").read_bytes() == data


def test_cp_r_copies_a_tree_and_skips_what_is_equal(board, mpremote, tmp_path):
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "one.py").write_text("value = 1\n")
    (tmp_path / "lib" / "deep" / "two.py").write_text("value = 2\n")
    mpremote(board, "cp", "-r", str(tmp_path / "lib"), ":")
    assert (board.root / "lib" / "deep" / "two.py").read_text() == "value = 2\n"
    assert mpremote(board, "cp", "-r", str(tmp_path / "lib"), ":").count("Up to date") == 2
    assert mpremote(board, "exec", "import one, deep.two; print(one.value, deep.two.value)") == (
        "1 2\n"
    )


def test_the_hosts_files_are_invisible(board, mpremote):
    assert mpremote(board, "exec", "import os; print(os.listdir('/'), os.getcwd())") == "[] /\n"


def test_df_shows_a_flash_of_2_MB(board, mpremote):
    assert "2097152" in mpremote(board, "df")


def test_full_flash_raises_ENOSPC(make_board, mpremote, tmp_path):
    board = make_board({"full.bin": "x" * 40960}, flash_bytes=40960)
    (tmp_path / "more").write_text("more")
    assert "ENOSPC" in mpremote(board, "cp", str(tmp_path / "more"), ":more", code=1)
    assert not (board.root / "more").exists()


# -- resets --------------------------------------------------------------------------------------


def test_power_on_runs_boot_then_main_then_the_repl(make_board):
    board = make_board({"boot.py": BOOT, "main.py": MAIN})
    board.wait_for(r"boot __main__\r\nmain\r\nMicroPython .*\r\nType .*\r\n>>> $")


def test_exec_resets_and_resume_exec_does_not(make_board, mpremote):
    board = make_board({"boot.py": BOOT, "main.py": MAIN})
    board.wait_for(PROMPT)
    mpremote(board, "resume", "exec", "x += 1")
    assert mpremote(board, "resume", "exec", "print(x)") == "2\n"
    assert board.boots == 1
    assert mpremote(board, "exec", "print('x' in globals())") == "False\n"
    assert board.boots == 2


def test_soft_reset_at_the_repl_runs_boot_and_main_again(make_board):
    board = make_board({"boot.py": BOOT, "main.py": MAIN})
    board.wait_for(PROMPT)
    mark = board.mark()
    board.type("\x04")
    board.wait_for(r"MPY: soft reboot\r\nboot __main__\r\nmain\r\n.*\r\n.*\r\n>>> $", since=mark)
    say(board, "import machine; machine.reset_cause() == machine.SOFT_RESET", "True")


def test_soft_reset_in_the_raw_repl_runs_boot_and_not_main(make_board):
    board = make_board({"boot.py": BOOT, "main.py": MAIN})
    board.wait_for(PROMPT)
    mark = board.mark()
    board.type("\x01\x04")
    board.wait_for(
        r"raw REPL; CTRL-B to exit\r\n>OK\r\nMPY: soft reboot\r\nboot __main__\r\n"
        r"raw REPL; CTRL-B to exit\r\n>$",
        since=mark,
    )


def test_mpremote_soft_reset_then_repl_state_is_new(make_board, mpremote):
    board = make_board({"main.py": MAIN})
    board.wait_for(PROMPT)
    mpremote(board, "soft-reset")
    assert mpremote(board, "resume", "exec", "print('x' in globals())") == "False\n"


def test_what_was_typed_ahead_outlives_a_soft_reset(make_board):
    board = make_board({"main.py": MAIN})
    board.wait_for(PROMPT)
    mark = board.mark()
    board.type("\x04x + 41\r")
    board.wait_for(r"main\r\n(.*\r\n)*>>> x \+ 41\r\n42\r\n", since=mark)


def test_hard_reset_forgets_what_was_typed_ahead(make_board):
    board = make_board({"main.py": "import time\nprint('up')\ntime.sleep(60)\n"})
    board.wait_for("up")
    board.type("print('typed')\r")
    mark = board.mark()
    board.hard_reset()
    board.wait_for("rst: reset\r\nup", since=mark)
    board.type("\x03")
    board.wait_for(PROMPT, since=mark)
    say(board, "1 + 1", "2\r\n")
    assert "typed" not in board.output(mark)


def test_machine_reset_is_a_hard_reset(board, mpremote):
    mark = board.mark()
    mpremote(board, "reset")
    board.wait_for(r"rst: reset\r\n(.*\r\n)*>>> $", since=mark)
    say(board, "import machine; machine.reset_cause() == machine.HARD_RESET", "True")


def test_exception_in_boot_skips_main(make_board):
    board = make_board({"boot.py": "def f():\n    1 / 0\nf()\n", "main.py": MAIN})
    board.wait_for(PROMPT)
    assert "main\r\n" not in board.output()
    wanted = (
        'call last):\r\n  File "boot.py", line 3, in <module>\r\n  File "boot.py", line 2, in f'
    )
    assert wanted in board.output()


def test_system_exit_in_main_is_a_soft_reset(make_board):
    board = make_board({"main.py": "import machine, sys\nprint(machine.reset_cause())\nsys.exit()"})
    board.wait_for(r"1\r\nMPY: soft reboot\r\n5\r\nMPY: soft reboot\r\n5")


# -- Ctrl-C --------------------------------------------------------------------------------------


def test_ctrl_c_interrupts_main_and_keeps_its_names(make_board):
    board = make_board({"main.py": "x = 7\nprint('up')\nwhile True:\n    x += 0\n"})
    board.wait_for("up")
    mark = board.mark()
    board.type("\x03")
    board.wait_for(r"File \"main.py\", line [234].*\r\nKeyboardInterrupt: \r\n", since=mark)
    board.wait_for(PROMPT, since=mark)
    assert "launcher" not in board.output()
    say(board, "x + 1", "8\r\n")


def test_ctrl_c_is_a_character_while_kbd_intr_is_off(make_board):
    board = make_board({"main.py": READS_KEYS})
    board.wait_for("running")
    board.type("ab\x03")
    board.wait_for(r"keys b'ab\\x03'")
    board.wait_for(PROMPT)


def test_ctrl_c_interrupts_again_after_kbd_intr_is_on(make_board):
    board = make_board({"main.py": READS_KEYS + "while True:\n    pass\n"})
    board.wait_for("running")
    board.type("\x03")
    board.wait_for("keys")
    board.type("\x03")
    board.wait_for("KeyboardInterrupt")


def test_what_follows_a_character_ctrl_c_is_left_to_the_repl(make_board):
    board = make_board({"main.py": READS_KEYS})
    board.wait_for("running")
    board.type("\x03print(6 * 7)\r")
    board.wait_for(r">>> print\(6 \* 7\)\r\n42")


def test_many_ctrl_c_at_once_do_no_harm(make_board):
    board = make_board({"main.py": "x = 7\nprint('up')\nwhile True:\n    x += 0\n"})
    board.wait_for("up")
    for _ in range(20):
        board.type("\x03\x03\x03")
    mark = board.mark()
    say(board, "x", r"7\r\n")
    assert board.boots == 1
    assert "MicroPython ended" not in board.output(mark)


def test_ctrl_c_at_the_prompt_clears_the_line(board):
    mark = board.mark()
    board.type("nonsense\x03")
    board.wait_for(r"nonsense\r\n>>> $", since=mark)


def test_mpremote_interrupts_what_an_earlier_one_left_running(board, mpremote):
    mpremote(board, "exec", "--no-follow", "n = 1\nwhile True: n += 1")
    assert mpremote(board, "resume", "exec", "print(n > 1)") == "True\n"


def test_nothing_typed_ahead_is_lost(board):
    mark = board.mark()
    board.type("".join(f"n{i} = {i}\r" for i in range(50)) + "n0 + n49\r")
    board.wait_for(r"\r\n49\r\n>>> $", since=mark)


# -- the serial port -----------------------------------------------------------------------------


def test_handshake_is_reliable_whatever_runs(make_board, mpremote):
    """mpremote against a program in each of its moments, the start included."""
    board = make_board({"main.py": "n = 0\nwhile True:\n    n += 1\n    print('line', n)\n"})
    for _ in range(8):
        board.hard_reset()
        assert mpremote(board, "exec", "print('n' in globals())") == "False\n"
        assert mpremote(board, "resume", "exec", "print(40 + 2)") == "42\n"


def test_a_program_that_prints_runs_on_while_nobody_listens(make_board, mpremote):
    code = "i = 0\nwhile i < 3000:\n    print('0123456789' * 6)\n    i += 1\nprint('through')\n"
    board = make_board({"main.py": code})
    board.wait_for("through", timeout=30)
    assert mpremote(board, "resume", "exec", "print(i)") == "3000\n"


def test_output_is_complete_for_a_slow_reader(board):
    command = [mpremote_command(), "connect", board.port, "exec"]
    command.append("for i in range(6000): print('%06d' % i)")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        text = client.stdout.read().decode()
    assert text == "".join(f"{i:06d}\r\n" for i in range(6000))


def test_a_second_client_is_refused(board, mpremote):
    command = [mpremote_command(), "connect", board.port, "exec", "import time; time.sleep(30)"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        board.wait_for(r"raw REPL(.|\n)*raw REPL; CTRL-B to exit\r\n>R")
        assert "in use" in mpremote(board, "exec", "1", code=1)
    finally:
        first.kill()
        first.wait()
    assert mpremote(board, "exec", "print(1)") == "1\n"


def test_stop_leaves_no_process(make_board):
    board = make_board({"main.py": "while True:\n    pass\n"})
    board.wait_for("rst")
    pid = board.pid
    assert os.path.exists(f"/proc/{pid}")
    board.stop()
    assert not os.path.exists(f"/proc/{pid}")
    assert not board.alive
    with pytest.raises(RuntimeError):
        board.wait_for("never")


def test_a_board_that_cannot_start_says_so(tmp_path):
    with pytest.raises(VirtualBoardError, match="MemoryError"):
        VirtualBoard(tmp_path, heap="8K").start()
    with pytest.raises(VirtualBoardError, match="not a directory"):
        VirtualBoard(tmp_path / "nowhere")


def test_a_crash_of_micropython_is_a_hard_reset(make_board):
    board = make_board({"main.py": "print('up')\nwhile True:\n    pass\n"})
    board.wait_for("up")
    mark = board.mark()
    os.kill(board.pid, 11)
    board.wait_for(r"MicroPython ended with code -11\r\n\r\nrst: reset\r\nup", since=mark)


# -- machine -------------------------------------------------------------------------------------


def test_watchdog_not_fed_resets_the_board(make_board):
    board = make_board(
        {
            "main.py": "import machine\nprint('cause', machine.reset_cause())\n"
            "if machine.reset_cause() == machine.PWRON_RESET:\n"
            "    machine.WDT(timeout=300)\n    while True: pass\n"
        }
    )
    board.wait_for(r"cause 1\r\n\r\nrst: watchdog\r\ncause 3")


def test_watchdog_fed_lets_the_program_run(make_board):
    code = "import machine, time\nw = machine.WDT(timeout=400)\n"
    code += "for _ in range(16):\n    w.feed()\n    time.sleep_ms(50)\nprint('fed')\n"
    board = make_board({"main.py": code + "while True: pass\n"})
    board.wait_for("fed")
    assert "watchdog" not in board.output()
    board.wait_for("rst: watchdog")


def test_watchdog_outlives_a_soft_reset(board):
    say(board, "import machine; w = machine.WDT(timeout=1500)", PROMPT)
    mark = board.mark()
    board.type("\x04")
    board.wait_for(r"soft reboot\r\n(.*\r\n)*>>> \r\nrst: watchdog", since=mark)


def test_watchdog_made_again_takes_the_new_time_out(board):
    say(board, "import machine, time; w = machine.WDT(timeout=200); w = machine.WDT()", PROMPT)
    say(board, "time.sleep_ms(600); print('alive')", r"\nalive")


def test_watchdog_refuses_what_an_esp32_refuses(board):
    say(board, "import machine; machine.WDT(timeout=0)", "ValueError: WDT timeout too short")
    say(board, "machine.WDT(1)", "ValueError")


def test_timer_calls_back_periodically_until_deinit(make_board):
    code = """
import machine, time
ticks = []
timer = machine.Timer(-1)
timer.init(period=20, mode=machine.Timer.PERIODIC, callback=lambda t: ticks.append(t is timer))
while len(ticks) < 5: time.sleep_ms(1)
timer.deinit()
count = len(ticks)
time.sleep_ms(100)
print(all(ticks), len(ticks) - count)
once = []
machine.Timer(0, period=10, mode=machine.Timer.ONE_SHOT, callback=once.append)
time.sleep_ms(100)
for i in range(10): pass
print(len(once))
"""
    make_board({"main.py": code}).wait_for(r"True [01]\r\n1\r\n")


def test_machine_has_what_an_esp32_has(board):
    say(board, "import machine; len(machine.unique_id()), machine.freq()", r"\(6, 160000000\)")
    say(board, "machine.freq(1)", "ValueError")
    say(board, "machine.Timer(9)", "ValueError: invalid Timer number")


# -- network -------------------------------------------------------------------------------------

CONNECT = """
import network, time
w = network.WLAN(network.STA_IF)
print(w.active(), w.isconnected(), w.status() == network.STAT_IDLE, w.ifconfig()[0])
try:
    w.connect('net', 'secret')
except OSError as e:
    print(e)
w.active(True)
w.connect('net', 'secret')
print(w.status() == network.STAT_CONNECTING)
try:
    w.connect('net', 'secret')
except OSError as e:
    print(e)
while not w.isconnected(): time.sleep_ms(5)
print(w.status() == network.STAT_GOT_IP, w.ifconfig()[0], w.config('ssid'), w.status('rssi') < 0)
"""


def test_wifi_connects_as_on_an_esp32(make_board):
    board = make_board({"main.py": CONNECT})
    board.wait_for(
        r"False False True 0.0.0.0\r\nWifi Not Started\r\nTrue\r\nWifi Internal Error\r\n"
        r"True 127.0.0.1 net True\r\n"
    )


def test_wifi_goes_and_comes_back(make_board):
    board = make_board({"main.py": CONNECT})
    board.wait_for(PROMPT)
    board.set_wifi("down")
    wait = "while w.isconnected() == {}: time.sleep_ms(1)\r"
    say(board, wait.format(True), PROMPT)
    say(board, "w.status() == network.STAT_CONNECTING", "True")
    board.set_wifi("ok")
    say(board, wait.format(False), PROMPT)
    say(board, "w.status() == network.STAT_GOT_IP", "True")


@pytest.mark.parametrize(
    ("state", "status"), [("no_ap", "NO_AP_FOUND"), ("wrong_password", "WRONG_PASSWORD")]
)
def test_wifi_refused_shows_the_reason_once_it_gives_up(board, state, status):
    board.set_wifi(state)
    say(board, "import network, time; w = network.WLAN(); w.active(True)", PROMPT)
    say(board, "w.config(reconnects=2); w.connect('net', 'secret')", PROMPT)
    say(board, "w.status() == network.STAT_CONNECTING", "True")
    say(board, "while w.status() == network.STAT_CONNECTING: time.sleep_ms(5)\r", PROMPT)
    say(board, f"w.status() == network.STAT_{status}", "True")
    say(board, "w.isconnected()", "False")


def test_the_wifi_state_holds_over_a_reset(board):
    board.set_wifi("no_ap")
    mark = board.mark()
    board.type("\x04")
    board.wait_for(PROMPT, since=mark + 5)
    say(board, "import network; w = network.WLAN(); w.active(True); w.scan()", r"\[\]")


# -- what the stand-ins must not disturb ---------------------------------------------------------


def test_micropython_imports_work_as_on_a_board(board, mpremote):
    code = (
        "import micropython, asyncio, sys; from micropython import const; print(const(4), sys.path)"
    )
    assert mpremote(board, "exec", code) == "4 ['', '.frozen', '/lib']\n"


def test_the_board_starts_in_a_moment(board):
    """A reset takes tenths of a second; the tests' own speed hangs on it."""
    begin = time.monotonic()
    mark = board.mark()
    board.hard_reset()
    board.wait_for(PROMPT, since=mark)
    assert time.monotonic() - begin < 5
