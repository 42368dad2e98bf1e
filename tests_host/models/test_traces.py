"""The recorded traces are what the models say, and new ones hold inside MicroPython too."""

import importlib
import subprocess

import pytest

from tests_host.conftest import MICROPYTHON_TIMEOUT_S, micropython_command, micropython_env
from tests_host.core.replay_kit import replay
from tests_host.models.conftest import SOAK, examples
from tests_host.models.record import MACHINES, by_hand, record, text

EXAMPLES = 60
AT_A_TIME = 300

names = pytest.mark.parametrize("name", MACHINES)


@names
def test_recorded_traces_agree_with_the_model(name):
    """A trace that no longer says what must be is to be recorded anew: `make traces`."""
    module = importlib.import_module(f"tests_host.core.traces_{name}")
    replay(MACHINES[name].make_model, module.TRACES)
    assert sum(len(steps) for _, steps in module.TRACES) > 500


@names
def test_sequences_written_by_hand_do_what_the_model_does(name):
    traces = by_hand(name)
    module = importlib.import_module(f"tests_host.core.traces_{name}")
    assert module.TRACES[: len(traces)] == tuple(traces), "`make traces` records them anew"


@names
def test_new_traces_replay_inside_micropython(name, tmp_path):
    traces = record(MACHINES[name], examples(EXAMPLES), derandomize=not SOAK)
    assert len(traces) >= EXAMPLES
    for start in range(0, len(traces), AT_A_TIME):
        (tmp_path / "traces_new.py").write_text(text(traces[start : start + AT_A_TIME]))
        replay_inside(MACHINES[name].make_real, tmp_path)


def replay_inside(driver, folder):
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from traces_new import TRACES\n"
        "from tests_host.core.replay_kit import replay\n"
        f"from {driver.__module__} import {driver.__name__} as driver\n"
        "replay(driver, TRACES)\n"
        "print(len(TRACES))\n"
    )
    done = subprocess.run(
        [micropython_command(), "-X", "heapsize=64M", "-c", program],
        env=micropython_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MICROPYTHON_TIMEOUT_S,
    )
    assert done.returncode == 0 and int(done.stdout), done.stdout + done.stderr
