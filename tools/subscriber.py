"""An MQTT subscription that hands its messages to the thread that asks for them.

paho's own thread receives, acknowledges (QoS 1) and reconnects by itself; `messages()` yields in
the caller's thread what came, in order. Whatever happens to the connection is told to `say` in a
line for a person, the first failure and every change, not every attempt. A broker that refuses
the login ends it, since trying again can't help.

With a `client_id` the broker keeps the session, and so the messages, while the link is down.
"""

import contextlib
import ipaddress
import queue
import re
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import paho.mqtt.client as mqtt
import typer

_RETRY_S = (1, 5)
_KEEPALIVE_S = 30
_SILENCE = "Keep alive timeout"  # in paho's words
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\.?")


CaOption = Annotated[
    str, typer.Option(help="TLS: file of certificates of those who may sign the broker's")
]
TlsOption = Annotated[bool, typer.Option("--tls", help="TLS with this system's authorities")]
InsecureOption = Annotated[
    bool, typer.Option("--insecure", help="TLS to any broker, whatever its certificate")
]


class Message(NamedTuple):
    """One message; `received` is the host's Unix time."""

    topic: str
    payload: bytes
    received: float
    retained: bool


class Refused(Exception):
    """The broker answered the login with a refusal; the text says which."""


class Subscriber:
    """Subscribes to `topics` at QoS 1. `subscribed` is set once the broker has confirmed it.

    ValueError for a `host` that can be neither a name nor an address.
    """

    def __init__(
        self,
        host: str,
        port: int,
        topics: list[str],
        user: str = "",
        password: str = "",
        client_id: str = "",
        say: Callable[[str], None] = lambda _line: None,
        tls: ssl.SSLContext | None = None,
    ):
        _check_host(host)
        self.where = f"{host}:{port}"
        self.subscribed = threading.Event()
        self._address = host, port
        self._topics = [(topic, 1) for topic in topics]
        self._say = say
        self._told = ""
        self._answered = False  # whether the broker has answered to this connection's CONNECT
        self._has_tls = tls is not None
        self._queue: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
        self._client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, clean_session=not client_id
        )
        self._client.reconnect_delay_set(*_RETRY_S)
        if tls:
            self._client.tls_set_context(tls)
        if user:
            self._client.username_pw_set(user, password or None)
        self._client.on_connect = self._on_connect
        self._client.on_connect_fail = self._on_connect_fail
        self._client.on_disconnect = self._on_disconnect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message

    def __enter__(self) -> "Subscriber":
        return self.start()

    def __exit__(self, *_exc) -> None:
        self.stop()

    def start(self) -> "Subscriber":
        """Begin to connect; returns at once."""
        self._client.connect_async(*self._address, keepalive=_KEEPALIVE_S)
        self._client.loop_start()
        return self

    def stop(self) -> None:
        """Take leave of the broker and end paho's thread."""
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, topic: str, payload: bytes) -> None:
        """Publish at QoS 1; it leaves as soon as there is a connection."""
        self._client.publish(topic, payload, qos=1)

    def messages(self, timeout_s: float | None = None) -> Iterator[Message | None]:
        """Each message as it comes, and None after every `timeout_s` without one.

        Raises Refused when the broker refuses the login.
        """
        while True:
            try:
                item = self._queue.get(timeout=timeout_s)
            except queue.Empty:
                yield None
                continue
            if isinstance(item, Exception):
                raise item
            yield item

    # Called in paho's thread.

    def _tell(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._say(line)

    def _on_connect(self, client, _userdata, _flags, reason, _properties) -> None:
        self._answered = True
        if reason.is_failure:
            self._queue.put(Refused(f"the broker at {self.where} refuses: {reason}"))
            client.disconnect()
            return
        client.subscribe(self._topics)

    def _on_subscribe(self, _client, _userdata, _mid, reasons, _properties) -> None:
        refused = [reason for reason in reasons if reason.is_failure]
        if refused:
            self._queue.put(Refused(f"the broker at {self.where}: subscription {refused[0]}"))
            return
        self.subscribed.set()
        self._tell(f"connected to {self.where}")

    def _on_connect_fail(self, _client, _userdata) -> None:
        error = sys.exc_info()[1]
        what = "TLS fails with the broker" if isinstance(error, ssl.SSLError) else "no broker"
        self._tell(f"{what} at {self.where} ({_in_words(error)}); trying again")

    def _on_disconnect(self, _client, _userdata, _flags, reason, _properties) -> None:
        answered, self._answered = self._answered, False
        if not reason.is_failure:
            return
        if answered and self.subscribed.is_set():
            self._tell(f"connection to {self.where} lost ({reason}); trying again")
        if not answered:
            self._tell(f"{self.where}: {self._unanswered(str(reason))}; trying again")

    def _unanswered(self, reason: str) -> str:
        if reason == _SILENCE:
            return "the broker does not answer"
        hint = "" if self._has_tls else ": does it want TLS (--ca)?"
        return f"closed by the broker{hint}"

    def _on_message(self, _client, _userdata, message) -> None:
        self._queue.put(Message(message.topic, message.payload, time.time(), bool(message.retain)))


def _check_host(host: str) -> None:
    """ValueError unless a resolver can be asked for it."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return
    name, _, number = host.rpartition(":")
    if "://" in host:
        raise ValueError(f"host {host!r}: only the name or address, without ...://")
    if name and number.isdigit():
        raise ValueError(f"host {host!r}: a name or an address; the port goes to --port {number}")
    with contextlib.suppress(UnicodeError):
        if host.encode("idna") and _NAME.fullmatch(host):
            return
    raise ValueError(f"host {host!r}: the name or the address of a broker expected")


def tls_context(ca: str, tls: bool, insecure: bool) -> ssl.SSLContext | None:
    """What the options ask for, None for no TLS; ValueError naming the file that is of no use."""
    if not (ca or tls or insecure):
        return None
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        why = "no certificates (PEM)" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(f"{ca}: {why}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _in_words(error: BaseException | None) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
