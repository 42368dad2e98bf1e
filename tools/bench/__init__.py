"""Benchmarks of the line, inside MicroPython and against a real broker, held to their bars.

Each script of `inside` runs in a MicroPython process of its own and prints one JSON line; RAM is
measured in a 32-bit MicroPython (`core_ram`). Figures that depend on the machine are ratios taken
within one process. The result is a table and build/bench.json; the exit code is 1 when a bar is
missed.
"""

import json
import operator
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from tools.bench import core_ram
from tools.broker import Broker
from tools.loopback import HOST, free_port

ROOT = Path(__file__).resolve().parent.parent.parent
_TIMEOUT_S = 300

# name, unit, bar as (comparison, limit) or None, what it is
ROWS = (
    ("throughput_ratio", "", (">=", 0.60), "full line over a bare socket, QoS 1, 64 bytes"),
    ("umqtt_ratio", "", None, "full line over stock umqtt.simple"),
    ("full_per_s", "1/s", None, "messages a second, append to acknowledged"),
    ("bare_per_s", "1/s", None, "messages a second, bare socket"),
    ("umqtt_per_s", "1/s", None, "messages a second, stock umqtt.simple"),
    ("append_ratio", "", ("<=", 12), "PagedRing.append over a plain slice assignment"),
    ("core_bytes_per_message", "B", ("<=", 0), "heap from enqueue to acknowledged, no socket"),
    ("link_bytes_per_message", "B", ("<=", 256), "heap from append to acknowledged, with socket"),
    ("heap_growth_bytes", "B", ("<=", 0), "left after 200,000 messages and a collect"),
    ("core_mpy_ram_bytes", "B", ("<=", 24576), "32-bit: the code of the running core, as .mpy"),
    ("core_all_ram_bytes", "B", None, "32-bit: with JSON, the readers and the proofs as well"),
    ("core_romfs_percent", "%", None, "64-bit: the same out of a ROMFS, over that out of files"),
    ("ring_bytes_per_page", "B", ("<", 24), "32-bit: RAM for each page of a PagedRing, beside it"),
    ("queue_bytes_per_slot", "B", None, "32-bit: RAM for each slot, beside its payload"),
    ("cost_growth", "", ("<=", 1.3), "cost of an operation, 30,000 or 1,000 held over 10 held"),
    ("outage_jitter_ms", "ms", None, "worst lateness of a 100 Hz sampler through outages"),
    ("up_jitter_ms", "ms", None, "the same with the link up"),
)


def command() -> None:
    """Run all benchmarks: a table, and build/bench.json."""
    console = Console()
    figures: dict[str, object] = {}
    with Broker(kind="mosquitto") as broker:
        for name, measure in (
            ("throughput", throughput),
            ("append", append),
            ("memory", memory),
            ("RAM", ram),
            ("cost", cost),
            ("jitter", jitter),
        ):
            with console.status(f"measuring {name}"):
                figures.update(measure(broker.port))
    missed = [row[0] for row in ROWS if not holds(row[2], figures[row[0]])]
    console.print(table(figures))
    target = ROOT / "build" / "bench.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({**figures, "missed": missed}, indent=2) + "\n")
    console.print(f"written to {target.relative_to(ROOT)}")
    if missed:
        console.print(f"[bold red]bar missed:[/] {', '.join(missed)}")
        raise typer.Exit(1)


def throughput(port: int) -> dict[str, object]:
    """Medians of alternating runs."""
    rates = run("throughput", port)
    return {
        "throughput_ratio": round(rates["full"] / rates["bare"], 3),
        "umqtt_ratio": round(rates["full"] / rates["umqtt"], 1),
        "full_per_s": round(rates["full"]),
        "bare_per_s": round(rates["bare"]),
        "umqtt_per_s": round(rates["umqtt"], 1),
    }


def append(port: int) -> dict[str, object]:
    """Least cost of each, in one process."""
    least = run("append", port)
    return {"append_ratio": round(least["append"] / least["plain"], 2), "append_ns": least}


def memory(port: int) -> dict[str, object]:
    """Bytes of heap."""
    return run("memory", port)


def ram(port: int) -> dict[str, object]:
    """Bytes of RAM on a 32-bit board."""
    return core_ram.measure()


def cost(port: int) -> dict[str, object]:
    """The worst growth of any operation's cost with the number of messages held."""
    costs = run("cost", port, heap="64M")
    growth = max(max(more) / least for least, *more in costs.values())
    return {"cost_growth": round(growth, 2), "cost_ns": costs}


def jitter(port: int) -> dict[str, object]:
    """Lateness with the link up, and the worst of its outages."""
    with full_listener() as gone, silent_listener() as silent:
        worst = run("jitter", port, free_port(), gone, silent)
    outages = [worst[name]["worst_ms"] for name in ("refused", "gone", "no_connack")]
    return {
        "outage_jitter_ms": max(outages),
        "up_jitter_ms": worst["up"]["worst_ms"],
        "jitter": worst,
    }


def run(script: str, *ports: int, heap: str = "4M") -> dict:
    """Run one script of `inside`; the object it printed last."""
    micropython = os.environ.get("MICROPYTHON", str(ROOT / ".venv" / "bin" / "micropython"))
    path = [".frozen", str(ROOT / "lib"), str(ROOT), str(ROOT / ".deps")]
    command = [micropython, "-X", f"heapsize={heap}", f"tools/bench/inside/{script}.py", HOST]
    done = subprocess.run(
        [*command, *map(str, ports)],
        cwd=ROOT,
        env={**os.environ, "MICROPYPATH": ":".join(path)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


@contextmanager
def full_listener() -> Iterator[int]:
    """The port of a listener whose backlog is full: a SYN is never answered."""
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
            fillers.append(filler)
        try:
            yield server.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()


@contextmanager
def silent_listener() -> Iterator[int]:
    """The port of a listener that accepts and never answers: the kernel's backlog does it."""
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen(128)
        yield server.getsockname()[1]


def holds(bar: tuple[str, float] | None, value: object) -> bool:
    """Whether a figure keeps its bar."""
    if bar is None:
        return True
    return {">=": operator.ge, "<=": operator.le, "<": operator.lt}[bar[0]](value, bar[1])


def table(figures: dict[str, object]) -> Table:
    """The figures with their bars."""
    out = Table(title="millpond benchmarks")
    for heading, justify in (("figure", "left"), ("value", "right"), ("bar", "right"), ("", "")):
        out.add_column(heading, justify=justify or "left")
    out.add_column("what it is")
    for name, unit, bar, what in ROWS:
        verdict = "" if bar is None else ("ok" if holds(bar, figures[name]) else "MISSED")
        limit = "" if bar is None else f"{bar[0]} {bar[1]:g}"
        out.add_row(name, f"{figures[name]:,} {unit}".strip(), limit, verdict, what)
    return out
