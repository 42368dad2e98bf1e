"""Imports point one way: tools and tests -> firmware -> the core; within the core, downwards."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CORE = ROOT / "lib" / "millpond"

# What a room must not import from.
FORBIDDEN = {
    "lib/millpond": {"firmware", "tools", "tests_host", "asyncio", "socket", "machine", "network"},
    "firmware": {"tools", "tests_host"},
}

# Each module of the core stands on a floor and imports only from floors below its own.
FLOORS = (
    {"limits", "packet_ids", "page_lists"},
    {"clock", "dispatch", "guard", "message", "index_rings"},
    {"pacer", "queue_check", "queue_stats", "reading", "ring_check"},
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


@pytest.mark.parametrize("room", FORBIDDEN)
def test_no_room_imports_against_the_direction(room):
    assert files(room)
    for path in files(room):
        tops = {name.split(".")[0] for name in imported(path)}
        assert not tops & FORBIDDEN[room], path


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
