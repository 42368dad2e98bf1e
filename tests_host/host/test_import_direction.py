"""Imports point one way: tools and tests -> firmware -> the core; within the core, downwards."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CORE = ROOT / "lib" / "millpond"

# What the core may import beside itself, and which of its modules may import what else.
OUTSIDE = {"array", "micropython", "struct"}
EXCEPTIONS = {"batch_reader": {"json"}, "guard": {"_thread"}}

# Each module of the core stands on a floor and imports only from floors below its own.
FLOORS = (
    {"limits", "packet_ids", "page_lists"},
    {"clock", "dispatch", "guard", "message"},
    {"index_rings", "pacer", "queue_check", "queue_stats", "reading", "ring_check"},
    {"batch_f7", "batch_json", "batch_reader", "paged_ring", "message_queue", "watchdog"},
    {"batch", "health", "sender"},
    {"ledger"},
    {"packer"},
)


def imported(path: Path) -> set[str]:
    """The dotted names that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(path)}


def test_the_core_imports_itself_and_three_modules_of_the_language():
    assert files("lib/millpond")
    for path in files("lib/millpond"):
        assert tops(path) <= OUTSIDE | {"millpond"} | EXCEPTIONS.get(path.stem, set()), path
    for module, names in EXCEPTIONS.items():
        assert names <= tops(CORE / f"{module}.py"), f"{module} needs no exception"


def test_the_firmware_imports_neither_tools_nor_tests():
    assert files("firmware")
    for path in files("firmware"):
        assert not tops(path) & {"tools", "tests_host"}, path


def test_what_the_tools_take_of_the_configuration_needs_no_micropython():
    """A host's Python has no such module; the tests have a stand-in for it, and would not tell."""
    done = subprocess.run(
        [sys.executable, "-c", "import firmware.config"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_every_core_module_has_a_floor():
    modules = {path.stem for path in CORE.glob("*.py")} - {"__init__"}
    assert modules == set().union(*FLOORS)


def test_the_core_imports_only_downwards():
    for floor, modules in enumerate(FLOORS):
        below = set().union(*FLOORS[:floor])
        for module in modules:
            names = imported(CORE / f"{module}.py")
            within = {name.split(".")[1] for name in names if name.startswith("millpond.")}
            # These are brought in by who is proved, when `check` is called.
            assert within - {"queue_check", "ring_check"} <= below, module
