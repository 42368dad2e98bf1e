"""200,000 streams that no broker would send, to a real Link in two MicroPython processes (L4)."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests_host.conftest import HERE, micropython_command, micropython_env

STREAMS = 200_000 * int(os.environ.get("SOAK") or 1)


def play(first: int, last: int) -> subprocess.CompletedProcess:
    return subprocess.run(
        [micropython_command(), str(HERE / "link" / "fuzz_peer.py"), str(first), str(last)],
        env=micropython_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.timeout(400 * (STREAMS // 200_000))
def test_L4_whatever_the_peer_says_the_link_goes_on_or_ends_with_a_reason():
    half = STREAMS // 2
    with ThreadPoolExecutor(2) as pool:
        played = list(pool.map(play, (0, half), (half - 1, STREAMS - 1)))
    for done in played:
        assert done.returncode == 0 and f"{half} streams played" in done.stdout, done.stdout
        assert int(re.search(r"heap grew by (-?\d+) bytes", done.stdout)[1]) < 4096, done.stdout
        ended, delivered, heard = map(
            int, re.search(r"(\d+) ended, (\d+) delivered, (\d+) heard", done.stdout).groups()
        )
        # It is worth something only when all of these happen often.
        assert half // 5 < ended < half and delivered > half // 50 and heard > half // 50
