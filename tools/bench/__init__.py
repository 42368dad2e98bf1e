"""Benchmarks of the line, inside MicroPython and against a real broker, held to their bars.

Each script of `inside` runs in a MicroPython process of its own and prints one JSON line; RAM is
measured in a 32-bit MicroPython (`core_ram`). Figures that depend on the machine are ratios taken
within one process. The result is a table and build/bench.json; the exit code is 1 when a bar is
missed.
"""

import json
import operator
import os
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import typer
from rich.console import Console
from rich.table import Table

from tools.bench import core_ram, herd, peers
from tools.bench.stolen import Stolen
from tools.broker import Broker
from tools.loopback import HOST
from tools.mqtt_packets import PUBACK
from tools.proxy import DOWN, Proxy

ROOT = Path(__file__).resolve().parent.parent.parent
_TIMEOUT_S = 300

# name, unit, bar as (comparison, limit) or None, what it is
ROWS = (
    ("throughput_ratio", "", (">=", 0.75), "full line over a bare socket, QoS 1, 64 bytes"),
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
    ("outage_jitter_ratio", "", ("<=", 2), "outage_jitter_ms over up_jitter_ms"),
    ("plain_jitter_ratio", "", ("<=", 2), "the same without TLS handshakes"),
    ("tls_jitter_ms", "ms", None, "worst lateness through TLS handshakes (P-256)"),
    (
        "outage_jitter_ms",
        "ms",
        None,
        "worst lateness of a 100 Hz sampler in 0.5 s; quartile of 20",
    ),
    ("up_jitter_ms", "ms", None, "the same with the link up; the outages take turns with it"),
    ("recovery_ms", "ms", None, "try that reaches the broker to first acknowledgement, median"),
    (
        "drain_ratio",
        "",
        (">=", 0.9),
        "1 MB over 20 ms: one message a round trip, over the time",
    ),
    ("herd_peak", "", ("<=", 3), "10,000 boards after 10 min: most connects in 1 s over the mean"),
    ("herd_peak_2s", "", None, "the same after 2 s, where a few late boards make the mean small"),
    ("herd_2s_per_s", "1/s", None, "the most connects in 1 s of the 10,000 then"),
)

# Phases of the jitter's outages, by name: who is at the other end. `inside/jitter.py` gets the
# port of each; what else a phase needs of the line stands there.
OUTAGES = {
    "refused": peers.nobody,
    "gone": peers.full_listener,
    "no_connack": peers.silent_listener,
    "reconnect": peers.cut_often,
    "silent_dns": peers.silent_name_server,
    "tls_handshake": peers.tls_cut_often,
}

_ROUNDS = 20
_RECOVERIES = 25
_BACKLOG = 1000000
_ONE_WAY_S = 0.01
_AWAY_S = 0.2
_ENOUGH = 20


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
            ("recovery", recovery),
            ("drain", drain),
            ("herd", returning_herd),
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


def jitter(port: int, rounds: int = _ROUNDS) -> dict[str, object]:
    """Lateness with the link up and in the worst outage: lower quartile of the rounds' worst.

    A late sample is more often the machine's fault than ours. What we do to sampling we do in
    every round; a quarter of the rounds without the machine's share is enough to show it.
    """
    with ExitStack() as stack:
        ports = {name: stack.enter_context(peer(port)) for name, peer in OUTAGES.items()}
        phases = [f"{name}={number}" for name, number in {"up": port, **ports}.items()]
        stolen = Stolen()
        found = run("jitter", rounds, *phases, heap="1M")
    worst = {name: sorted(phase["worst_ms"])[rounds // 4] for name, phase in found.items()}
    up = worst.pop("up")
    tls = worst["tls_handshake"]
    plain = max(ms for name, ms in worst.items() if name != "tls_handshake")
    return {
        "outage_jitter_ratio": round(max(worst.values()) / up, 2),
        "plain_jitter_ratio": round(plain / up, 2),
        "tls_jitter_ms": round(tls, 2),
        "outage_jitter_ms": round(max(worst.values()), 2),
        "up_jitter_ms": round(up, 2),
        "jitter": {**found, "stolen_percent": stolen.percent()},
    }


def recovery(port: int, recoveries: int = _RECOVERIES) -> dict[str, object]:
    """The time a reconnect takes beside the back-off's own wait, through refusals of a proxy."""
    with Proxy(port) as proxy, peers.repeated(lambda ended: away_and_back(proxy, ended)):
        took = run("recovery", proxy.port, recoveries)["took_ms"]
    return {"recovery_ms": round(median(took), 2), "recovery": {"took_ms": took}}


def away_and_back(proxy: Proxy, ended: threading.Event) -> None:
    """Refuse for a while, once some more acknowledgements have passed."""
    enough = proxy.packets[DOWN][PUBACK] + _ENOUGH
    while proxy.packets[DOWN][PUBACK] < enough:
        if ended.wait(0.01):
            return
    proxy.refuse()
    time.sleep(_AWAY_S)
    proxy.restore()


def drain(port: int, size: int = _BACKLOG) -> dict[str, object]:
    """One message a round trip, over what the backlog took."""
    with Proxy(port) as proxy:
        proxy.delay(_ONE_WAY_S)
        found = run("drain", proxy.port, size)
    ratio = found["messages"] * found["round_trip_ms"] / found["drained_ms"]
    return {"drain_ratio": round(ratio, 3), "drain": found}


def returning_herd(port: int) -> dict[str, object]:
    """Connects after an outage, simulated."""
    return herd.measure()


def run(script: str, *arguments: int | str, heap: str = "4M") -> dict:
    """Run one script of `inside`; the object it printed last."""
    micropython = os.environ.get("MICROPYTHON", str(ROOT / ".venv" / "bin" / "micropython"))
    path = [".frozen", str(ROOT / "lib"), str(ROOT), str(ROOT / ".deps")]
    command = [micropython, "-X", f"heapsize={heap}", f"tools/bench/inside/{script}.py", HOST]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "MICROPYPATH": ":".join(path)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


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
