"""The simulation, on both interpreters: SEEDS seeds (2,000), and what it would find.

The seeds go to four processes, two at a time; MicroPython has a third of them.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests_host.conftest import micropython_command
from tests_host.sim.breaks import BREAKS

ROOT = Path(__file__).resolve().parents[2]
SEEDS = int(os.environ.get("SEEDS") or 2000)
_MICROPYTHON_SHARE = 3
_HEAP_SLACK = 8192  # a word on the stack may keep alive what is done with


def cpython(*arguments: object) -> subprocess.CompletedProcess:
    """Play seeds on CPython."""
    return _run([sys.executable, "-m", "tests_host.sim", *map(str, arguments)])


def micropython(*arguments: object) -> subprocess.CompletedProcess:
    """Play seeds in MicroPython."""
    path = ".frozen:lib:.:.deps"
    command = [micropython_command(), "-X", "heapsize=16M", "tests_host/sim/__main__.py"]
    return _run([*command, *map(str, arguments)], MICROPYPATH=path)


def _run(command: list[str], **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.timeout(600 * max(1, SEEDS // 2000))
def test_what_is_produced_is_delivered_or_counted_whatever_happens():
    most = SEEDS - SEEDS // _MICROPYTHON_SHARE
    parts = [
        (cpython, 0, most // 2 - 1),
        (cpython, most // 2, most - 1),
        (micropython, most, (most + SEEDS) // 2 - 1),
        (micropython, (most + SEEDS) // 2, SEEDS - 1),
    ]
    with ThreadPoolExecutor(2) as pool:
        played = list(pool.map(lambda part: part[0](*part[1:]), parts))
    for done, (_, first, last) in zip(played, parts, strict=True):
        assert done.returncode == 0, done.stdout
        assert f"{last - first + 1} seeds played, 0 failed" in done.stdout
    for done in played[2:]:
        grown = re.search(r"heap grew by (-?\d+) bytes", done.stdout)
        assert grown and int(grown[1]) < _HEAP_SLACK, done.stdout


@pytest.mark.parametrize("where", [cpython, micropython])
def test_histories_that_once_went_wrong_go_well(where):
    done = where("known")
    assert done.returncode == 0 and done.stdout.count(": well") >= 2, done.stdout


def test_a_seed_is_the_same_history_on_both_interpreters():
    here, there = cpython(0, 30, "digest"), micropython(0, 30, "digest")
    digests = re.findall(r"^\d+ \[\d+\]$", here.stdout, re.MULTILINE)
    assert len(digests) == 31
    assert digests == re.findall(r"^\d+ \[\d+\]$", there.stdout, re.MULTILINE)


def test_the_readme_says_in_how_many_ways_the_firmware_is_damaged():
    assert f"{len(BREAKS)} ways to damage the firmware" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", BREAKS)
def test_damage_is_found_and_told_with_how_to_see_it_again(name):
    done = cpython(0, 300, name)
    assert done.returncode == 1, done.stdout
    assert re.search(rf"^again: \S+ -m tests_host.sim (\d+) \1 {name}$", done.stdout, re.MULTILINE)
    assert "the shortest history that fails: " in done.stdout
