"""RAM that the core takes on a 32-bit board: its code as .mpy, and what its stores have per item.

Measured inside 32-bit MicroPython, between steps, where the collector has run. RUNNING is what a
board has loaded while the line runs with 0xF7 batches; the rest of the core (JSON, the readers,
the proofs) comes only when somebody asks for it.

What a ROMFS spares is measured on the 64-bit unix port, for the 32-bit build has no ROMFS: there
bytecode, texts and names stay in the image, which on a board is flash.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.build import PROJECT, BuildError, compile_file
from tools.micropython32 import MicroPython32

LIB = PROJECT / "lib"
RUNNING = """
import millpond
for name in millpond.__all__:
    getattr(millpond, name)
from millpond import health
from millpond.batch import make_writer, pack_reading
make_writer("f7", 1, 1)
"""
_ALL = "\n".join(f"import millpond.{path.stem}" for path in sorted((LIB / "millpond").glob("*.py")))
_BEFORE = "import array, gc, json, struct, sys; sys.path.insert(0, '/lib'); used = [0] * 8"
_FROM_FILES_OR_ROMFS = f"""
import array, gc, json, struct, sys, vfs
path = sys.argv[1]
if path.endswith(".img"):
    with open(path, "rb") as file:
        image = file.read()
    vfs.mount(vfs.VfsRom(image), "/rom")
    path = "/rom"
sys.path.insert(0, path)
for _ in range(2):
    gc.collect()
used = gc.mem_alloc()
{RUNNING}
for _ in range(2):
    gc.collect()
print(gc.mem_alloc() - used)
"""
_BYTES = 64
_FEW = 100
_MANY = 1100


def measure() -> dict[str, float]:
    """The figures, in bytes."""
    ring = f"store = millpond.PagedRing({_BYTES} * {{}}, {_BYTES}, 4)"
    queue = f"store = millpond.MessageQueue({{}}, {_BYTES})"
    made = [text.format(n) for text in (ring, queue) for n in (_FEW, _MANY)]
    steps = [_BEFORE, *_noted("", RUNNING, *made, "store = None\n" + _ALL)]
    with tempfile.TemporaryDirectory() as folder:
        compile_core(Path(folder))
        percent = romfs_percent(Path(folder))
        python = MicroPython32()
        try:
            used = json.loads(python.run({Path(folder): "/lib"}, [*steps, "print(used)"]))
        finally:
            python.close()
    items = _MANY - _FEW
    return {
        "core_mpy_ram_bytes": used[1] - used[0],
        "core_all_ram_bytes": used[6] - used[0],
        "core_romfs_percent": percent,
        "ring_bytes_per_page": round((used[3] - used[2]) / items - _BYTES, 1),
        "queue_bytes_per_slot": round((used[5] - used[4]) / items - _BYTES, 1),
    }


def compile_core(folder: Path) -> None:
    """Every module of the core as .mpy below `folder`, as `make build` makes them."""
    for path in sorted(LIB.rglob("*.py")):
        name = path.relative_to(LIB)
        out = (folder / name).with_suffix(".mpy")
        out.parent.mkdir(parents=True, exist_ok=True)
        problem = compile_file(path, name.as_posix(), out)
        if problem:
            raise BuildError(problem)


def romfs_percent(folder: Path) -> int:
    """The RAM that the running core takes out of a ROMFS, in percent of that out of files."""
    with tempfile.TemporaryDirectory() as place:
        image = Path(place, "core.img")
        build = ("romfs", "--no-mpy", "--output", image, "build", folder)
        subprocess.run([sys.executable, "-m", "mpremote", *build], check=True, capture_output=True)
        script = Path(place, "load.py")
        script.write_text(_FROM_FILES_OR_ROMFS)
        return round(100 * _loaded(script, image) / _loaded(script, folder))


def _loaded(script: Path, source: Path) -> int:
    micropython = os.environ.get("MICROPYTHON", str(PROJECT / ".venv" / "bin" / "micropython"))
    done = subprocess.run([micropython, script, source], check=True, capture_output=True)
    return int(done.stdout)


def _noted(*steps: str) -> list[str]:
    """The steps, the memory in use after each of them noted in `used`."""
    noted = []
    for i, step in enumerate(steps):
        # Twice: what a collection frees may have been all that held something else.
        noted += [step, "gc.collect()", "gc.collect()", f"used[{i}] = gc.mem_alloc()"]
    return noted
