"""`python -m tools command DEVICE OP [KEY VALUE]`: give a board a command and print its reply.

The command is published to the device's cmd topic; the reply is the one that has its id. Also
subscribed to is the device's retained status, so that where no reply comes we can say why.
"""

import json
import math
import sys
import time
import uuid
from typing import Annotated

import typer
from rich.console import Console

from tools import shown
from tools.subscriber import (
    CaOption,
    InsecureOption,
    Refused,
    Subscriber,
    TlsOption,
    tls_context,
)

_TICK_S = 0.1


class Failed(Exception):
    """The command was not done, or nobody knows; the text says why."""


class Exchange:
    """One command to one device, over a Subscriber to `topics(prefix, device)`."""

    def __init__(self, prefix: str, device: str, fields: dict):
        self._base = f"{prefix}/{device}"
        self._device = device
        self._fields = {"id": uuid.uuid4().hex[:12], **fields}
        self._state = ""

    def topics(self) -> list[str]:
        """What must be subscribed to before `run`."""
        return [f"{self._base}/cmd/reply", f"{self._base}/status"]

    def run(self, subscriber: Subscriber, seconds: float):
        """The reply's result; Failed where it was refused or none came in `seconds`."""
        ends = time.monotonic() + seconds
        asked = False
        for message in subscriber.messages(_TICK_S):
            if subscriber.subscribed.is_set() and not asked:
                asked = True
                subscriber.publish(f"{self._base}/cmd", json.dumps(self._fields).encode())
            if message:
                reply = self._reply(message.topic, message.payload)
                if reply:
                    return self._result(reply)
            if time.monotonic() >= ends:
                break
        if not asked:
            raise Failed(f"no connection to {subscriber.where} in {seconds:g} s")
        raise Failed(f"no reply from {self._device} in {seconds:g} s: {self._why()}")

    def _reply(self, topic: str, payload: bytes) -> dict | None:
        try:
            fields = json.loads(payload)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict):
            return None
        if topic.endswith("/status"):
            self._state = str(fields.get("state", ""))
            return None
        return fields if fields.get("id") == self._fields["id"] else None

    def _result(self, reply: dict):
        if reply.get("ok") is not True:
            raise Failed(f"{self._device} refuses: {shown.clean(reply.get('error'))}")
        return reply.get("result")

    def _why(self) -> str:
        if self._state == "offline":
            return "it is offline; it gets the command when it is back, if its session is kept"
        if self._state == "online":
            return "it is online; are commands.enabled there, and may we publish to its cmd topic?"
        return "no status of it here; see device.name and mqtt.prefix, and what we may read"


def command(
    device: Annotated[str, typer.Argument(help="Name of the board")],
    op: Annotated[str, typer.Argument(help="set, status, flush or reboot")],
    key: Annotated[str, typer.Argument(help="set: the key, such as batch.max_age_ms")] = "",
    value: Annotated[str, typer.Argument(help="set: its value")] = "",
    save: Annotated[bool, typer.Option("--save", help="set: in config.json too")] = False,
    host: Annotated[str, typer.Option(help="Broker: name or address")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Broker: TCP port")] = 1883,
    prefix: Annotated[str, typer.Option(help="First level of every topic")] = "millpond",
    user: Annotated[str, typer.Option(help="User at the broker")] = "",
    password: Annotated[
        str, typer.Option(help="Password at the broker", envvar="MILLPOND_PASSWORD")
    ] = "",
    ca: CaOption = "",
    tls: TlsOption = False,
    insecure: InsecureOption = False,
    seconds: Annotated[float, typer.Option(min=0.1, help="Wait so long for the reply")] = 15,
) -> None:
    """Give a board a command, wait for its reply and print it.

    Exit code 1 when the board refuses, when no reply comes or when the broker refuses.
    """
    try:
        where = _part("prefix", prefix, "+#"), _part("device", device, "+#/")
        exchange = Exchange(*where, fields_of(op, key, value, save))
        context = tls_context(ca, tls, insecure)
        topics = exchange.topics()
        subscriber = Subscriber(host, port, topics, user, password, say=_say, tls=context)
        with subscriber:
            result = exchange.run(subscriber, seconds)
        # Its texts come from outside; dumps escapes what would end one.
        Console().print_json(shown.clean(json.dumps(result, ensure_ascii=False)))
    except (ValueError, Failed, Refused) as error:
        _say(f"command: {error}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(1) from None


def fields_of(op: str, key: str, value: str, save: bool) -> dict:
    """The command's fields; ValueError where the arguments do not go together."""
    if op != "set":
        if key or value or save:
            raise ValueError(f"{op}: only set takes a key, a value and --save")
        return {"op": op}
    if not key or not value:
        raise ValueError("set: a key and a value expected, such as batch.max_age_ms 1000")
    fields = {"op": op, "key": key, "value": _value(value)}
    return {**fields, "save": True} if save else fields


def _value(text: str):
    """A number or true/false where it is one, else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, bool | int | float | str) else text


def _part(name: str, text: str, forbidden: str) -> str:
    """A part of a topic; ValueError where it can be none."""
    if not text or not text.isprintable() or set(text) & set(forbidden):
        raise ValueError(f"{name} {text!r}: printable text without any of {forbidden} expected")
    return text


def _say(line: str) -> None:
    if not line.startswith("connected to "):
        print(line, file=sys.stderr, flush=True)
