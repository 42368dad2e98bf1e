"""Runs the cases that need MicroPython's own asyncio, each in a MicroPython process of its own."""

import re
import subprocess

import pytest

from tests_host.conftest import HERE, micropython_command, micropython_env

FOLDER = HERE / "link"
CASES = [
    (path, name)
    for path in sorted(FOLDER.glob("cases_*.py"))
    for name in re.findall(r"^def (case_\w+)\(\):", path.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize(("path", "name"), CASES, ids=[name[5:] for _, name in CASES])
def test_inside_micropython(path, name):
    done = subprocess.run(
        [micropython_command(), str(HERE / "run_in_micropython.py"), str(path), name],
        env=micropython_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
