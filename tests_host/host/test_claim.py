"""tools.claim: one holder at a time, and its file goes with it."""

import fcntl
import subprocess
import sys

import pytest

from tools._core import ROOT
from tools.claim import Claim, Taken


def test_second_claim_fails_with_the_holders_note_and_harms_nothing(tmp_path):
    path = tmp_path / "deep" / "lock"
    with Claim(path, "pid 1") as first:
        for note in ("pid 1", "pid 1, port /dev/x"):
            first.note(note)
            with pytest.raises(Taken) as taken:
                Claim(path, "pid 2")
            assert str(taken.value) == note
            assert path.read_text() == note + "\n"
    assert not path.exists()
    with Claim(path, "pid 3"):
        assert path.read_text() == "pid 3\n"


def test_claim_of_a_process_that_died_is_free(tmp_path):
    code = "import os, sys, pathlib; from tools.claim import Claim\n"
    code += "held = Claim(pathlib.Path(sys.argv[1]), 'dead'); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, tmp_path / "lock"], cwd=ROOT, check=True)
    assert (tmp_path / "lock").read_text() == "dead\n"
    with Claim(tmp_path / "lock", "alive"):
        assert (tmp_path / "lock").read_text() == "alive\n"


def test_file_removed_by_its_last_owner_in_between_is_made_anew(tmp_path, monkeypatch):
    path, flock, removed = tmp_path / "lock", fcntl.flock, []

    def late(file, how):
        if not removed:
            removed.append(path.unlink())
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with Claim(path, "mine"):
        assert path.read_text() == "mine\n"


def test_closing_twice_leaves_the_next_holders_file(tmp_path):
    first = Claim(tmp_path / "lock")
    first.close()
    with Claim(tmp_path / "lock", "second"):
        first.close()
        assert (tmp_path / "lock").exists()
