"""The build: what is in the tree, and the gate that each device file must pass."""

import shutil

import pytest

from tools import build as builder
from tools import tree
from tools.build import BuildError, build


@pytest.fixture
def project(tmp_path):
    """A small project with everything a build needs."""
    files = {
        "boot.py": "print('boot')\n",
        "main.py": "import firmware.app\nimport umqtt.simple\nprint(firmware.app.NAME)\n",
        "firmware/__init__.py": "",
        "firmware/app.py": "from millpond.core import NAME\n",
        "lib/millpond/__init__.py": "",
        "lib/millpond/core.py": "NAME = 'from the core'\n",
        ".deps/umqtt/simple.py": "class MQTTClient:\n    pass\n",
        "config.example.json": "{}\n",
        "config.json": '{"wifi": {"password": "secret"}}\n',
    }
    for name, text in files.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def gate(project, name, text):
    """What the build says to a device file `name` that holds `text`."""
    (project / name).write_text(text)
    with pytest.raises(BuildError) as caught:
        build(project / "out", project=project)
    assert not (project / "out").exists()
    return str(caught.value)


def test_tree_holds_compiled_modules_and_the_two_sources(project):
    manifest = build(project / "out", project=project)
    assert sorted(manifest) == [
        "boot.py",
        "config.example.json",
        "firmware/__init__.mpy",
        "firmware/app.mpy",
        "lib/millpond/__init__.mpy",
        "lib/millpond/core.mpy",
        "lib/umqtt/simple.mpy",
        "main.py",
    ]
    assert manifest == tree.scan(project / "out")


def test_tree_of_sources_on_demand(project):
    manifest = build(project / "out", project=project, source=True)
    assert "lib/millpond/core.py" in manifest
    assert not [path for path in manifest if path.endswith(".mpy")]


def test_build_removes_what_was_there(project):
    build(project / "out", project=project)
    (project / "lib/millpond/core.py").rename(project / "lib/millpond/heart.py")
    manifest = build(project / "out", project=project)
    assert "lib/millpond/core.mpy" not in manifest
    assert not (project / "out/lib/millpond/core.mpy").exists()


@pytest.mark.parametrize("source", [False, True])
def test_tree_runs_on_a_board(project, make_board, source):
    build(project / "out", project=project, source=source)
    board = make_board()
    shutil.copytree(project / "out", board.root, dirs_exist_ok=True)
    board.hard_reset()
    board.wait_for("boot\r\nfrom the core\r\n")


def test_traceback_of_a_compiled_module_names_its_source_file_and_line(project, make_board):
    (project / "lib/millpond/core.py").write_text("# the core\nNAME = 1 // 0\n")
    build(project / "out", project=project)
    board = make_board()
    shutil.copytree(project / "out", board.root, dirs_exist_ok=True)
    board.hard_reset()
    board.wait_for(r'File "lib/millpond/core.py", line 2, in <module>\r\nZeroDivisionError')


def test_gate_names_file_and_line_of_a_syntax_error(project):
    assert gate(project, "firmware/app.py", "x = 1\ny = 2 +\nz = 3\n") == (
        "firmware/app.py:2: SyntaxError: invalid syntax"
    )


def test_gate_refuses_positional_only_arguments(project):
    assert gate(project, "lib/millpond/core.py", "def f(a, /):\n    return a\n").startswith(
        "lib/millpond/core.py:1: SyntaxError"
    )


@pytest.mark.parametrize("name", ["boot.py", "main.py"])
def test_gate_holds_for_what_is_not_compiled(project, name):
    text = "match 1:\n    case 1:\n        pass\n"
    assert gate(project, name, text).startswith(f"{name}:1: SyntaxError")


def test_gate_holds_for_a_build_of_sources(project):
    (project / "main.py").write_text("def f(a, /): pass\n")
    with pytest.raises(BuildError, match=r"main\.py:1: SyntaxError"):
        build(project / "out", project=project, source=True)


def test_gate_reports_every_file_at_once(project):
    (project / "boot.py").write_text("1 +\n")
    text = gate(project, "firmware/app.py", "class\n")
    assert [line.split(":")[0] for line in text.splitlines()] == ["boot.py", "firmware/app.py"]


def test_missing_device_library_says_what_to_do(project):
    (project / ".deps/umqtt/simple.py").unlink()
    with pytest.raises(BuildError, match=r"\.deps/umqtt/simple\.py: missing; run `make setup`"):
        build(project / "out", project=project)


def test_missing_main_is_reported(project):
    (project / "main.py").unlink()
    with pytest.raises(BuildError, match=r"main\.py: missing"):
        build(project / "out", project=project)


def test_every_device_file_of_this_project_passes_the_gate(tmp_path):
    manifest = build(tmp_path / "out")
    names = {path.rpartition(".")[0] for path in manifest}
    assert {name.rpartition(".")[0] for name in builder.device_files()} <= names
