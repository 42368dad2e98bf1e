"""Virtual boards for these tests, each stopped at the end of its test, and the real mpremote."""

import subprocess

import pytest

from tools.repl import mpremote_command
from tools.vboard import VirtualBoard


@pytest.fixture
def make_board(tmp_path_factory):
    """Make and start a board: `make_board({"main.py": "..."}, heap=...)`."""
    boards = []

    def make(files=(), **options):
        root = tmp_path_factory.mktemp("flash")
        for name, text in dict(files).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        board = VirtualBoard(root, **options)
        boards.append(board)
        return board.start()

    yield make
    for board in boards:
        board.stop()


@pytest.fixture
def board(make_board):
    """A board at its prompt, with nothing in flash."""
    board = make_board()
    board.wait_for(">>> $")
    return board


@pytest.fixture
def mpremote():
    """Run `mpremote connect PORT ...`; what it printed, after it ended with `code`."""

    def run(board, *arguments, code=0, timeout=30):
        command = [mpremote_command(), "connect", board.port, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        text = done.stdout + done.stderr
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{text}\n{board.output()}"
        return text

    return run
