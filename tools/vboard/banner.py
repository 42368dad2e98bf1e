"""What `vboard` says at its start: how to reach the board, and where the board's broker is."""

import ipaddress
import shlex
from pathlib import Path

from firmware import config as rules
from firmware import strict_json
from tools.broker import mosquitto_path
from tools.loopback import accepts
from tools.vboard.flash import CONFIG

_LISTEN = ".venv/bin/python -m tools listen"
_KEYS = "Ctrl-C here switches the board off; keys reach its program in make repl only."
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
    mqtt = _mqtt(root)
    broker = []
    if mqtt:
        rows.append((_listen_command(mqtt), "what arrives at its broker"))
        broker = _broker_lines(mqtt)
    return "\n".join([f"virtual board at {port}", *aligned(rows), *broker, _KEYS])


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


def _mqtt(root: Path) -> dict | None:
    """The configuration's [mqtt] by name; None when it is not in order, as the board will say."""
    try:
        config = rules.check(strict_json.parse((root / CONFIG).read_bytes()))
    except (OSError, ValueError, rules.ConfigError):
        return None
    keys = [row[0] for row in rules.TABLE if row[0].startswith("mqtt.")]
    return {key.partition(".")[2]: config[key] for key in keys} | {"root": root}


def _listen_command(mqtt: dict) -> str:
    options = [
        f"--{key} {shlex.quote(str(mqtt[key]))}"
        for key, default in _DEFAULTS.items()
        if mqtt[key] != default
    ]
    return " ".join([_LISTEN, *options, *_tls_options(mqtt)])


def _tls_options(mqtt: dict) -> list[str]:
    """What a host's tool needs to follow the board to its broker; the files are in its flash."""
    if not mqtt["tls"]:
        return []
    if not mqtt["tls_verify"]:
        return ["--insecure"]
    return [f"--ca {shlex.quote(str(mqtt['root'] / mqtt['ca_file'].lstrip('/')))}"]


def _broker_lines(mqtt: dict) -> list[str]:
    where = f"{mqtt['host']}:{mqtt['port']}"
    lines = [f"It looks for its broker at {where} (CONFIG=file: another config.json)."]
    if not _is_address(mqtt["host"]) or accepts(mqtt["port"], mqtt["host"]):
        return lines
    lines.append("No broker answers there.")
    if (
        ipaddress.ip_address(mqtt["host"]).is_loopback
        and not mqtt["tls"]
        and (mosquitto := mosquitto_path())
    ):
        lines[-1] += f" Start one elsewhere: {mosquitto} -p {mqtt['port']}"
    return lines


def _is_address(host: str) -> bool:
    """Whether it is an address: a name would mean a resolver that may keep us waiting."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
