"""The 32-bit interpreter of the tests: what one request does to it, no other request meets."""

import subprocess
import sys

import pytest

from tools.build import PROJECT
from tools.micropython32 import Failure, MicroPython32


@pytest.fixture(scope="module")
def python():
    interpreter = MicroPython32()
    yield interpreter
    interpreter.close()


def test_small_ints_end_at_2_to_the_30_and_blocks_are_of_16_bytes(python):
    grows = "n = {}; gc.collect(); before = gc.mem_alloc(); n += 1; print(gc.mem_alloc() - before)"
    assert python.run({}, ["import gc", grows.format("2**30 - 2")]) == "0"
    assert python.run({}, ["import gc", grows.format("2**30 - 1")]) == "32"


def test_steps_share_an_interpreter_and_requests_do_not(python):
    assert python.run({}, ["n = 7; print('one')", "print(n)"]) == "one\n7"
    with pytest.raises(Failure, match="NameError"):
        python.run({}, ["print(n)"])


def test_memory_is_collected_between_steps(python):
    steps = [
        "import gc; before = gc.mem_alloc()",
        "bytearray(100000); gc.collect(); print(gc.mem_alloc() - before >= 100000)",
        "gc.collect()",
        "print(gc.mem_alloc() - before < 10000)",
    ]
    assert python.run({}, steps) == "True\nTrue"


def test_files_and_folders_are_there_and_nothing_else(python, tmp_path):
    (tmp_path / "room" / "__pycache__").mkdir(parents=True)
    (tmp_path / "room" / "made.py").write_text("def f():\n    raise ValueError('mill')\n")
    (tmp_path / "one.py").write_text("n = 5")
    files = {tmp_path / "room": "/a/room", tmp_path / "one.py": "/b/one.py"}
    steps = ["import os, sys; sys.path[:0] = ['/a', '/b']", "from one import n; print(n)"]
    assert python.run(files, [*steps, "print(os.listdir('/a/room'))"]) == "5\n['made.py']"
    with pytest.raises(Failure, match='File "/a/room/made.py", line 2, in f\nValueError: mill'):
        python.run(files, [*steps, "from room.made import f; f()"])
    with pytest.raises(Failure, match="ImportError"):
        python.run({}, ["import one"])


def test_a_hang_is_ended_with_what_it_printed(python):
    with pytest.raises(Failure, match=r"(?s)^turning.*no end of it \(limit 1 s\)"):
        python.run({}, ["print('turning')\nwhile True: pass"], timeout_s=1)
    assert python.run({}, ["print('next')"]) == "next"


def test_an_end_of_node_is_that_request_s_alone(python):
    with pytest.raises(Failure, match=r"(?s)^leaving.*Node ended with code 3"):
        python.run({}, ["import js\nprint('leaving')\njs.process.exit(3)"])
    assert python.run({}, ["print('next')"]) == "next"


def test_a_recursion_without_end_is_that_request_s_alone(python):
    with pytest.raises(Failure, match="RuntimeError"):
        python.run({}, ["def f():\n    return f()\nf()"])
    assert python.run({}, ["print('next')"]) == "next"


def test_without_the_package_it_is_said_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROPYTHON32", str(tmp_path))
    with pytest.raises(Failure, match=r"no 32-bit MicroPython in .*run `make setup`"):
        MicroPython32().run({}, [])


def test_each_logic_test_has_three_items_and_a_reason_where_one_is_skipped():
    command = [sys.executable, "-m", "pytest", "-rs", "-v", "tests_host/app/test_config_file.py"]
    command += ["-k", "missing_file or leaves_the_file"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    name = "test_config_file.py::test_an_error_leaves_the_file_as_it_is"
    for item in (name, f"{name}[micropython]", f"{name}[micropython32]"):
        assert f"{item} PASSED" in done.stdout
    assert "5 passed, 1 skipped" in done.stdout
    assert "Emscripten's number" in done.stdout
