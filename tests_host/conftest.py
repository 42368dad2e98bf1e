"""Runs each logic test twice: on CPython as usual, and again inside the MicroPython unix port.

A logic test stands in one of LOGIC_FOLDERS and is a plain function without arguments. The second
run is a pytest item of its own, `test_name[micropython]`, in a fresh MicroPython process.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests_host"
LOGIC_FOLDERS = (HERE / "core", HERE / "app")
MICROPYTHON_TIMEOUT_S = 60


def micropython_command() -> str:
    """The MicroPython to test with: $MICROPYTHON, or the one in the project's environment."""
    return os.environ.get("MICROPYTHON", str(ROOT / ".venv" / "bin" / "micropython"))


def micropython_env() -> dict[str, str]:
    """The environment that makes the repository's modules importable inside MicroPython."""
    path = [".frozen", ROOT / "lib", ROOT, ROOT / ".deps"]
    return {**os.environ, "MICROPYPATH": ":".join(map(str, path))}


class MicroPythonFailure(Exception):
    """What MicroPython printed about a logic test that failed there."""


class MicroPythonTest(pytest.Item):
    """One logic test function, run in a MicroPython process of its own."""

    def __init__(self, *, tested: str, **kwargs):
        super().__init__(**kwargs)
        self.tested = tested

    def runtest(self):
        command = [micropython_command(), "-X", "heapsize=8M"]
        command += [str(HERE / "run_in_micropython.py"), str(self.path), self.tested]
        done = subprocess.run(
            command,
            env=micropython_env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=MICROPYTHON_TIMEOUT_S,
        )
        output = done.stdout.decode(errors="replace")
        if done.returncode:
            raise MicroPythonFailure(output)
        self.add_report_section("call", "stdout", output)

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, MicroPythonFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, self.name


class LogicModule(pytest.Module):
    """A file of logic tests: each function becomes two items."""

    def collect(self):
        for item in super().collect():
            yield item
            if isinstance(item, pytest.Function):
                yield MicroPythonTest.from_parent(
                    self, name=f"{item.name}[micropython]", tested=item.originalname
                )


def pytest_pycollect_makemodule(module_path, parent):
    if module_path.parent in LOGIC_FOLDERS:
        return LogicModule.from_parent(parent, path=module_path)
    return None
