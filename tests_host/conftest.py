"""Runs each logic test three times: on CPython as usual, and inside two builds of MicroPython.

A logic test stands in one of LOGIC_FOLDERS and is a plain function without arguments. The other
runs are pytest items of their own:

    test_name[micropython]      a fresh process of the unix port, which is a 64-bit build
    test_name[micropython32]    a fresh interpreter of the 32-bit build (tools/micropython32.py)

A module may say in NOT_ON_32_BIT, {test name: reason}, what cannot run on the 32-bit build; these
items are skipped with the reason.
"""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tools.micropython32 import Failure, MicroPython32

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests_host"
LOGIC_FOLDERS = (HERE / "core", HERE / "app")
MICROPYTHON_TIMEOUT_S = 60
_INTERPRETER = pytest.StashKey[MicroPython32]()


def pytest_configure(config):
    # A shell's background job ignores Ctrl-C, and so would the programs that it is tried on.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_INTERPRETER] = MicroPython32()


def pytest_unconfigure(config):
    config.stash[_INTERPRETER].close()


def micropython_command() -> str:
    """The MicroPython to test with: $MICROPYTHON, or the one in the project's environment."""
    return os.environ.get("MICROPYTHON", str(ROOT / ".venv" / "bin" / "micropython"))


def micropython_path() -> list[str]:
    """Where MicroPython finds the repository's modules."""
    return [str(path) for path in (ROOT / "lib", ROOT, ROOT / ".deps")]


def micropython_env() -> dict[str, str]:
    """The environment that makes the repository's modules importable inside MicroPython."""
    return {**os.environ, "MICROPYPATH": ":".join([".frozen", *micropython_path()])}


class MicroPythonFailure(Exception):
    """What MicroPython printed about a logic test that failed there."""


class MicroPythonTest(pytest.Item):
    """One logic test function, run in a MicroPython process of its own."""

    def __init__(self, *, tested: str, **kwargs):
        super().__init__(**kwargs)
        self.tested = tested

    def runtest(self):
        self.add_report_section("call", "stdout", self.output())

    def output(self) -> str:
        """Run the test; what it printed, or MicroPythonFailure."""
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
        return output

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, MicroPythonFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, self.name


class MicroPython32Test(MicroPythonTest):
    """One logic test function, run in a fresh 32-bit interpreter."""

    def output(self) -> str:
        reason = getattr(self.parent.obj, "NOT_ON_32_BIT", {}).get(self.tested)
        if reason:
            pytest.skip(reason)
        # Everything lies inside where it lies on the host, so that tracebacks lead there.
        rooms = (ROOT / "lib", ROOT / "firmware", ROOT / ".deps" / "umqtt")
        files = {path: str(path) for path in (*rooms, HERE / "kit.py", self.path.parent)}
        steps = [
            f"import sys; sys.path[:0] = {[str(self.path.parent), *micropython_path()]}",
            f"from {self.path.stem} import {self.tested} as test",
            "test()",
        ]
        try:
            return self.config.stash[_INTERPRETER].run(files, steps, MICROPYTHON_TIMEOUT_S)
        except Failure as failure:
            raise MicroPythonFailure(str(failure)) from None


class LogicModule(pytest.Module):
    """A file of logic tests: each function becomes three items."""

    def collect(self):
        names = set()
        for item in super().collect():
            yield item
            if isinstance(item, pytest.Function):
                names.add(item.originalname)
                for build, kind in _BUILDS:
                    name = f"{item.name}[{build}]"
                    yield kind.from_parent(self, name=name, tested=item.originalname)
        unknown = set(getattr(self.obj, "NOT_ON_32_BIT", ())) - names
        if unknown:
            raise self.CollectError(f"NOT_ON_32_BIT names no test: {', '.join(unknown)}")


_BUILDS = (("micropython", MicroPythonTest), ("micropython32", MicroPython32Test))


def pytest_pycollect_makemodule(module_path, parent):
    if module_path.parent in LOGIC_FOLDERS:
        return LogicModule.from_parent(parent, path=module_path)
    return None
