"""What `vboard` says at its start: how to reach the board, and where the board's broker is."""

import ipaddress
import json
import shlex
from pathlib import Path

from tools.broker import mosquitto_path
from tools.loopback import accepts
from tools.vboard.flash import CONFIG

_LISTEN = ".venv/bin/python -m tools listen"
_DEFAULTS = {"host": "127.0.0.1", "port": 1883, "prefix": "millpond"}


def banner(port: str, root: Path, found_by_itself: bool) -> str:
    """The text, for a board at `port` with the flash `root`.

    `found_by_itself`: `make status` and `make repl` find the board without its port.
    """
    named = "" if found_by_itself else f" PORT={port}"
    rows = [
        (f"make status{named}", "its status page"),
        (f"make repl{named}", "its REPL (Ctrl-] leaves)"),
        (f"mpremote connect {port} resume repl", "the same"),
    ]
    mqtt = _mqtt(root / CONFIG)
    broker = []
    if mqtt:
        rows.append((_listen_command(mqtt), "what arrives at its broker"))
        broker = _broker_lines(mqtt)
    return "\n".join(
        [f"virtual board at {port}", *aligned(rows), *broker, "Ctrl-C here switches it off."]
    )


def aligned(rows: list[tuple[str, str]]) -> list[str]:
    """A line for each command and what it does; a command too long for its column has two."""
    width = max((len(command) for command, _ in rows if len(command) < 40), default=0)
    lines = []
    for command, text in rows:
        if len(command) > width:
            lines.append(f"  {command}")
            command = ""
        lines.append(f"  {command:<{width}}  {text}")
    return lines


def _mqtt(config: Path) -> dict | None:
    """Where the configuration says the broker is; None when it does not, as the board will say."""
    try:
        given = json.loads(config.read_text())["mqtt"]
        mqtt = {key: given.get(key, default) for key, default in _DEFAULTS.items()}
        return {**mqtt, "port": int(mqtt["port"])} if given.get("host") else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _listen_command(mqtt: dict) -> str:
    options = [
        f"--{key} {shlex.quote(str(mqtt[key]))}"
        for key, default in _DEFAULTS.items()
        if mqtt[key] != default
    ]
    return " ".join([_LISTEN, *options])


def _broker_lines(mqtt: dict) -> list[str]:
    where = f"{mqtt['host']}:{mqtt['port']}"
    lines = [f"It looks for its broker at {where} (CONFIG=file: another config.json)."]
    if not _is_address(mqtt["host"]) or accepts(mqtt["port"], mqtt["host"]):
        return lines
    lines.append("No broker answers there.")
    if ipaddress.ip_address(mqtt["host"]).is_loopback and (mosquitto := mosquitto_path()):
        lines[-1] += f" Start one elsewhere: {mosquitto} -p {mqtt['port']}"
    return lines


def _is_address(host: str) -> bool:
    """Whether it is an address: a name would mean a resolver that may keep us waiting."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
