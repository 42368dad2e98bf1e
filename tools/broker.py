"""A real MQTT broker in a process of its own, for the demonstration, tests and benchmarks.

mosquitto where it is installed, else amqtt in a Python process. It listens on the loopback
interface only, on a port of its own that stays the same over `restart()`. States: stopped,
running, frozen (SIGSTOP: the sockets stay open and nobody answers). Whatever state it is in,
`stop()` ends it, and so do leaving the `with` block, the end of this process and, on Linux, its
sudden death.

    with Broker() as broker:
        connect(broker.host, broker.port)
"""

import asyncio
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.loopback import HOST, accepts, free_port, wait_until

ROOT = Path(__file__).resolve().parent.parent
MOSQUITTO = "mosquitto"
AMQTT = "amqtt"
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin"))
_START_S = 20
_STOP_S = 10
_TRIES = 5


class BrokerError(Exception):
    """The broker could not be started; the text ends with what it logged."""


def mosquitto_path() -> str | None:
    """Where mosquitto is, or None. Debian puts it in a folder that is not on a user's PATH."""
    return shutil.which(MOSQUITTO, path=_PATH)


def mosquitto_config(
    port: int,
    directory: Path,
    persistence: bool = False,
    nodelay: bool = True,
    passwords: Path | None = None,
    extra: Sequence[str] = (),
) -> str:
    """The text of a mosquitto.conf for one listener on loopback; `extra` lines come last.

    `max_queued_messages 0`: an absent subscriber with a session loses nothing.
    """
    lines = [
        f"listener {port} {HOST}",
        f"allow_anonymous {'false' if passwords else 'true'}",
        f"set_tcp_nodelay {'true' if nodelay else 'false'}",
        f"persistence {'true' if persistence else 'false'}",
        f"persistence_location {directory}/",
        "max_queued_messages 0",
        "log_dest stderr",
        "log_type all",
    ]
    if passwords:
        lines.append(f"password_file {passwords}")
    if os.geteuid() == 0:
        lines.append("user root")
    return "\n".join((*lines, *extra)) + "\n"


class Broker:
    """One broker process. `kind` is "mosquitto", "amqtt" or None for the first that is there.

    `directory` holds its configuration, log and, with `persistence`, its database (written when
    it is stopped); a temporary one is made and removed where none is given. `users` maps names
    to passwords and shuts out everybody else. amqtt can do neither: ValueError.
    """

    host = HOST

    def __init__(
        self,
        directory: Path | str | None = None,
        kind: str | None = None,
        port: int = 0,
        persistence: bool = False,
        nodelay: bool = True,
        users: Mapping[str, str] | None = None,
        extra: Sequence[str] = (),
    ):
        self.kind = kind or (MOSQUITTO if mosquitto_path() else AMQTT)
        if self.kind not in (MOSQUITTO, AMQTT):
            raise ValueError(f"broker {self.kind!r}: {MOSQUITTO!r} or {AMQTT!r} expected")
        if self.kind == AMQTT and (persistence or users or extra):
            raise ValueError("amqtt: persistence, users and extra lines need mosquitto")
        if self.kind == MOSQUITTO and not mosquitto_path():
            raise BrokerError("mosquitto is not installed")
        self.port = port
        self._fixed_port = bool(port)
        self._persistence = persistence
        self._nodelay = nodelay
        self._users = users
        self._extra = extra
        self._temporary = directory is None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="millpond-broker-")).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log_path = self.directory / "broker.log"
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(self, *_exc) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id, or None while stopped."""
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        """Whether the process lives (a frozen one does)."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> "Broker":
        """Start it and return once it accepts connections; BrokerError when it doesn't."""
        if self.running:
            return self
        atexit.register(self.close)
        for attempt in range(_TRIES):
            self.port = self.port or free_port()
            self._spawn()
            try:
                wait_until(self._settled, _START_S, f"{self.kind} on port {self.port}")
            except TimeoutError as error:
                self.kill()
                raise BrokerError(f"{error}\n{self.log_tail()}") from None
            if self.running:
                return self
            if self._fixed_port or attempt == _TRIES - 1:
                break
            self.port = 0
        self._process = None
        raise BrokerError(f"{self.kind} ended at once\n{self.log_tail()}")

    def stop(self) -> None:
        """End it in an orderly way (SIGTERM), by force if it does not obey within 10 s."""
        if self._process is None:
            return
        if self.running:
            self.thaw()
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._reap()

    def kill(self) -> None:
        """End it by SIGKILL: no goodbye to anybody, nothing saved."""
        if self.running:
            self._process.kill()
        self._reap()

    def restart(self) -> None:
        """Stop it and start it again on the same port."""
        self.stop()
        self._fixed_port = True
        self.start()

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing is answered."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: go on after `freeze()`."""
        self._process.send_signal(signal.SIGCONT)

    def save(self) -> None:
        """Write mosquitto's database now, as a stop does; it is on disk when this returns.

        With `persistence` only. TimeoutError when it is not written.
        """
        database = self.directory / "mosquitto.db"
        before = _identity(database)
        self._process.send_signal(signal.SIGUSR1)
        wait_until(lambda: _identity(database) != before, _STOP_S, f"a new {database}")

    def close(self) -> None:
        """Stop it and remove its directory if that was temporary. May be called twice."""
        atexit.unregister(self.close)
        self.stop()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of its log."""
        try:
            text = self.log_path.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _settled(self) -> bool:
        return not self.running or accepts(self.port)

    def _reap(self) -> None:
        if self._process:
            self._process.wait()
            self._process = None

    def _spawn(self) -> None:
        command = self._mosquitto() if self.kind == MOSQUITTO else self._amqtt()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*_die_with_parent(), *command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _mosquitto(self) -> list[str]:
        passwords = self._write_passwords() if self._users else None
        text = mosquitto_config(
            self.port, self.directory, self._persistence, self._nodelay, passwords, self._extra
        )
        path = self.directory / "mosquitto.conf"
        path.write_text(text)
        return [str(mosquitto_path()), "-c", str(path)]

    def _write_passwords(self) -> Path:
        path = self.directory / "passwords"
        path.write_text("".join(f"{name}:{word}\n" for name, word in self._users.items()))
        subprocess.run(["mosquitto_passwd", "-U", str(path)], check=True, capture_output=True)
        return path

    def _amqtt(self) -> list[str]:
        return [sys.executable, "-m", "tools.broker", str(self.port)]


def _identity(path: Path) -> tuple[int, int] | None:
    """What changes when another file takes this one's place; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _die_with_parent() -> list[str]:
    """A prefix that has Linux end the child when this process dies without a word.

    The kernel watches the thread that started the child, so only the main thread may ask.
    """
    tool = shutil.which("setpriv")
    if not tool or threading.current_thread() is not threading.main_thread():
        return []
    return [tool, "--pdeathsig", "TERM", "--"]


async def _serve_amqtt(port: int) -> None:
    from amqtt.broker import Broker as Amqtt

    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"{HOST}:{port}"}},
        "plugins": {
            "amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True},
        },
    }
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    broker = Amqtt(config)
    await broker.start()
    await ended.wait()
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(_serve_amqtt(int(sys.argv[1])))
