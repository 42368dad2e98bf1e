"""Deploy to a virtual board through mpremote: what is copied, removed and left alone."""

import json
import os
import pty
import socket
import subprocess
import sys
import tty

import pytest

from tools import ports, tree
from tools.build import PROJECT
from tools.deploy import Lines, bring, deploy, needed_bytes
from tools.program import page_of_running
from tools.remote import BoardError, Remote
from tools.status import NOT_STARTED, RUNNING, STOPPED, status
from tools.vboard import make_flash

TREE = {
    "boot.py": "x = 0\n",
    "main.py": "print('millpond runs')\n",
    "firmware/app.py": "a = 1\n",
    "lib/deep/mod.py": "b = 2\n",
}


@pytest.fixture
def said():
    """What deploys have shown."""
    return []


@pytest.fixture
def show(said):
    return Lines(said.append)


@pytest.fixture
def built(tmp_path):
    """A built tree, small: `built("a.py", "b.py")` makes another without some of its files."""

    def make(*without, **changed):
        root = tmp_path / f"tree{len(list(tmp_path.iterdir()))}"
        for name, text in {**TREE, **changed}.items():
            if name not in without:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
        return root

    return make


def bring_to(board, root, show):
    with Remote(board.port) as remote:
        return bring(remote, root, show)


# -- what is copied and removed ------------------------------------------------------------------


def test_first_deploy_copies_all_and_runs_it(board, built, show, said):
    assert deploy(board.port, built(), show)
    assert tree.scan(board.root) == tree.scan(built())
    assert said[-2:] == ["4 copied, 0 up to date, 0 removed", "The program runs."]
    assert "copied main.py (23 bytes), 4 of 4" in said


def test_second_deploy_copies_nothing(board, built, show):
    bring_to(board, built(), show)
    before = {path: path.stat().st_mtime_ns for path in board.root.rglob("*.*")}
    todo = bring_to(board, built(), show)
    assert (todo.copy, todo.remove, len(todo.same)) == ([], [], 4)
    assert {path: path.stat().st_mtime_ns for path in board.root.rglob("*.*")} == before


def test_changed_file_alone_is_copied(board, built, show):
    bring_to(board, built(), show)
    todo = bring_to(board, built(**{"firmware/app.py": "a = 3\n"}), show)
    assert todo.copy == ["firmware/app.py"]
    assert (board.root / "firmware/app.py").read_text() == "a = 3\n"


def test_file_damaged_on_the_board_is_copied_again(board, built, show):
    bring_to(board, built(), show)
    (board.root / "main.py").write_text("")
    assert bring_to(board, built(), show).copy == ["main.py"]


def test_removed_module_disappears_with_its_empty_folder(board, built, show):
    bring_to(board, built(), show)
    assert bring_to(board, built("lib/deep/mod.py"), show).remove == ["lib/deep/mod.py"]
    assert not (board.root / "lib").exists()


def test_the_users_files_stay(board, built, show):
    (board.root / "lib").mkdir()
    mine = {"config.json": '{"a": 1}', "lib/mine.py": "m = 1\n", "notes.txt": "keep"}
    for name, text in mine.items():
        (board.root / name).write_text(text)
    bring_to(board, built(), show)
    bring_to(board, built("lib/deep/mod.py"), show)
    assert {name: (board.root / name).read_text() for name in mine} == mine


def test_source_that_shadows_a_compiled_module_is_removed(board, tmp_path, show):
    (board.root / "mod.py").write_text("old = 1\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "mod.mpy").write_bytes(b"compiled")
    assert bring_to(board, tmp_path / "tree", show).remove == ["mod.py"]
    assert not (board.root / "mod.py").exists()


def test_deploy_cut_short_is_made_good_by_the_next(board, built, show, monkeypatch):
    def fail(self, path, data, progress=None):
        if path == "main.py":
            raise BoardError("cut")
        return write(self, path, data, progress)

    write = Remote.write
    with monkeypatch.context() as patched:
        patched.setattr(Remote, "write", fail)
        with pytest.raises(BoardError, match="cut"):
            bring_to(board, built(), show)
    assert (board.root / "firmware/app.py").exists()
    bring_to(board, built("firmware/app.py"), show)
    assert not (board.root / "firmware").exists()
    assert (board.root / "main.py").exists()


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"main.py": 5}'])
def test_damaged_manifest_harms_nothing(board, built, show, damage):
    bring_to(board, built(), show)
    (board.root / tree.MANIFEST).write_bytes(damage)
    bring_to(board, built("lib/deep/mod.py"), show)
    assert (board.root / "lib/deep/mod.py").exists()
    assert tree.parse((board.root / tree.MANIFEST).read_bytes()) == tree.scan(
        built("lib/deep/mod.py")
    )


def test_running_program_is_stopped_first(make_board, built, show):
    board = make_board({"main.py": "while True:\n    pass\n"})
    assert deploy(board.port, built(), show)


def test_make_flash_does_what_a_deploy_does(board, built, tmp_path):
    tree.install(built(), tmp_path / "flash")
    (tmp_path / "flash" / "config.json").write_text("{}")
    todo = tree.install(built("firmware/app.py"), tmp_path / "flash")
    assert todo.remove == ["firmware/app.py"]
    assert sorted(tree.scan(tmp_path / "flash")) == [
        "boot.py",
        "config.json",
        "lib/deep/mod.py",
        "main.py",
    ]
    assert not (tmp_path / "flash" / "firmware").exists()


# -- what can go wrong ---------------------------------------------------------------------------


def test_board_without_space_is_left_as_it_was(make_board, built, show):
    board = make_board({"big.bin": "x" * 40000}, flash_bytes=49152)
    with pytest.raises(BoardError, match="no space: 20 KB are needed, 4 KB are free"):
        bring_to(board, built(), show)
    assert sorted(tree.scan(board.root)) == ["big.bin"]


def test_needed_bytes_counts_blocks_what_is_replaced_and_one_file_twice():
    assert needed_bytes({}, {}) == 0
    assert needed_bytes({"a": 1}, {}) == 2 * 4096
    assert needed_bytes({"a": 5000, "b": 100}, {"a": 4097, "c": 9000}) == (2 + 1 - 2 + 2) * 4096
    assert needed_bytes({"a": 10}, {"a": 90000}) == 0


def test_nonexistent_port(show, built):
    with pytest.raises(BoardError, match="/dev/nowhere: no such port"):
        deploy("/dev/nowhere", built(), show)


def test_busy_port(board, built, show):
    with Remote(board.port), pytest.raises(BoardError, match="in use by another program"):
        deploy(board.port, built(), show)


def test_board_that_fails_says_why(board):
    with Remote(board.port) as remote:
        remote.restart()
        with pytest.raises(BoardError, match="ZeroDivisionError: divide by zero"):
            remote.exec("1/0")
        with pytest.raises(BoardError, match="writing no/such: No such file"):
            remote.write("no/such", b"x")


def test_board_switched_off_in_the_middle(board):
    with Remote(board.port) as remote:
        remote.restart()
        board.stop()
        with pytest.raises(BoardError):
            remote.exec("print(1)")


# -- start ---------------------------------------------------------------------------------------


def test_program_that_does_not_start_is_reported(board, built, show, said):
    (board.root / "config.json").write_text("{}")
    trees = built(**{"main.py": "print('millpond not started: mqtt.host: missing')\n"})
    assert not deploy(board.port, trees, show)
    assert "millpond not started: mqtt.host: missing" in said[-1]


def test_board_without_configuration_says_how_to_make_one(board, built, show, said):
    assert deploy(board.port, built(**{"main.py": "print('no config')\n"}), show)
    assert f"mpremote connect {board.port} cp config.json :config.json" in said[-1]
    assert not (board.root / "config.json").exists()


# -- the command line, with the real firmware ----------------------------------------------------


def tools(*arguments, **environment):
    """Run `python -m tools`; its exit code and what it printed."""
    command = [sys.executable, "-m", "tools", *arguments]
    env = {name: text for name, text in os.environ.items() if name != "PORT"} | environment
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout + done.stderr


def test_no_port_lists_those_that_are_there(board, tmp_path, monkeypatch):
    code, text = tools("deploy")
    assert code == 2
    assert "no port given" in text
    monkeypatch.setattr(ports, "VBOARD_PORT", tmp_path / "port")
    (tmp_path / "port").write_text(f"{board.port} {os.getpid()}")
    assert f"{board.port}  virtual board" in ports.none_given()
    (tmp_path / "port").write_text(f"{board.port} 999999999")
    assert ports.virtual_board() == ""


def nobody_listens():
    """A port of this computer at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def config():
    """A configuration whose broker is not there."""
    return json.dumps({"mqtt": {"host": "127.0.0.1", "port": nobody_listens()}})


def test_deploy_command_runs_the_firmware(board, config):
    (board.root / "config.json").write_text(config)
    code, text = tools("deploy", "--port", board.port)
    assert code == 0, text
    assert "The program runs." in text
    assert (board.root / "config.json").read_text() == config
    boots = board.boots
    code, text = tools("deploy", PORT=board.port)
    assert code == 0
    assert "all up to date; not reset, buffered data kept" in text
    assert board.boots == boots


def test_status_prints_the_page_and_lets_the_program_go_on(make_board, tmp_path, config):
    board = make_board()
    make_flash(board.root, config=config, built=tmp_path / "built")
    board.hard_reset()
    board.wait_for("millpond runs")
    mark = board.mark()
    first, state = status(board.port)
    assert state == RUNNING
    second, state = status(board.port)
    assert state == RUNNING
    assert produced(second) >= produced(first) > 0
    assert board.boots == 2
    assert "stopped" not in board.output(mark)


def test_status_stops_and_resumes_a_program_that_knows_no_key(make_board):
    board = make_board({"main.py": DEAF})
    board.wait_for("millpond runs")
    page, state = status(board.port)
    assert (page.strip(), state) == ("1 produced", RUNNING)
    page, state = status(board.port)
    assert (page.strip(), state) == ("2 produced", RUNNING)


def test_status_is_not_deceived_by_an_old_page():
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    with Remote(os.ttyname(theirs)) as remote:
        os.write(ours, b"--- status\r\nold\r\n--- end\r\n")
        assert page_of_running(remote) is None
    with os.fdopen(ours, "rb", buffering=2) as keys:  # a pty hands bytes on in its own time
        assert keys.read(2) == b"s\x7f"
    os.close(theirs)


def test_status_of_a_program_that_was_not_started_says_why(make_board, tmp_path):
    board = make_board()
    make_flash(board.root, config='{"mqtt": {"port": 0}}', built=tmp_path / "built")
    board.hard_reset()
    board.wait_for("millpond not started: .*\r\n(.*\r\n)*>>> $")
    page, state = status(board.port)
    assert state == NOT_STARTED
    assert "mqtt.port" in page
    code, text = tools("status", "--port", board.port)
    assert code == 0
    assert "mqtt.port" in text
    assert "resume()" not in text


def test_status_leaves_a_stopped_program_stopped(make_board, tmp_path, config):
    board = make_board()
    make_flash(board.root, config=config, built=tmp_path / "built")
    board.hard_reset()
    board.wait_for("millpond runs")
    board.type("\x03")
    board.wait_for(r"millpond is stopped.*\r\n(.*\r\n)*>>> $")
    page, state = status(board.port)
    assert "produced" in page
    assert state == STOPPED


DEAF = """
import sys, micropython
app, count = None, 0
def counters():
    return {'held': 3}
def status():
    print(count, 'produced')
def resume():
    global count
    count += 1
    micropython.kbd_intr(-1)
    print('millpond runs')
    while sys.stdin.buffer.read(1) != b'\\x03':
        pass
    micropython.kbd_intr(3)
    print('millpond is stopped')
resume()
"""


@pytest.fixture
def running(make_board, built, show):
    """A board that runs a program with the tree `built` in flash, and that tree."""
    board, root = make_board(), built(**{"main.py": DEAF})
    assert deploy(board.port, root, show)
    return board, root


def test_deploy_of_what_is_there_keeps_the_program_and_its_data(running, show, said):
    board, root = running
    boots, mark = board.boots, board.mark()
    assert deploy(board.port, root, show)
    assert said[-1] == "4 files, all up to date; not reset, buffered data kept."
    board.wait_for("millpond runs", since=mark)
    assert board.boots == boots
    assert status(board.port)[0].strip() == "2 produced"


def test_deploy_leaves_a_stopped_program_stopped(running, show, said):
    board, root = running
    boots = board.boots
    board.type("\x03")
    board.wait_for(r"millpond is stopped(.*\r\n)*>>> $")
    assert deploy(board.port, root, show)
    assert "resume() at the REPL" in said[-1]
    assert board.boots == boots
    assert status(board.port)[1] == STOPPED


def test_deploy_resets_on_demand_and_says_what_is_lost(running, show, said):
    board, root = running
    boots = board.boots
    assert deploy(board.port, root, show, reset=True)
    assert "Files that differ: 0. A reset follows; buffered data is lost: 3 items." in said
    assert said[-1] == "The program runs."
    assert board.boots > boots


def test_deploy_of_a_change_resets_and_says_what_is_lost(running, built, show, said):
    board, _ = running
    boots = board.boots
    assert deploy(board.port, built(**{"main.py": DEAF, "firmware/app.py": "a = 9\n"}), show)
    assert "Files that differ: 1. A reset follows; buffered data is lost: 3 items." in said
    assert board.boots > boots


def test_deploy_mends_a_damaged_manifest_without_a_reset(running, show):
    board, root = running
    boots = board.boots
    (board.root / tree.MANIFEST).write_bytes(b"{")
    assert deploy(board.port, root, show)
    assert tree.parse((board.root / tree.MANIFEST).read_bytes()) == tree.scan(root)
    assert board.boots == boots


def test_deploy_starts_a_program_that_is_not_in_memory(board, built, show, said):
    root = built()
    assert deploy(board.port, root, show)
    board.wait_for(">>> $")
    boots = board.boots
    assert deploy(board.port, root, show)
    assert said[-2:] == ["0 copied, 4 up to date, 0 removed", "The program runs."]
    assert board.boots > boots


def test_deploy_provokes_no_traceback_on_the_board(running, built, show):
    board, _ = running
    mark = board.mark()
    deploy(board.port, built(**{"main.py": DEAF, "firmware/new.py": "n = 1\n"}), show)
    assert "Traceback" not in board.output(mark)


def test_status_of_a_board_without_the_program(board):
    with pytest.raises(BoardError, match="not in the board's memory"):
        status(board.port)


def produced(page):
    """The number of items produced, from a status page."""
    words = page.split()
    return int(words[words.index("produced") - 1])
