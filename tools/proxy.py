"""A TCP proxy that makes the faults of a network, on demand, between a client and a broker.

It runs an event loop in a thread of its own; every control method may be called from any thread
and has taken effect when it returns. UP is from the client to the broker, DOWN is back.

The mode says what happens to connections, old and new:

    PASS     forwarded
    REFUSE   the listener is closed (ECONNREFUSED) and what was open is reset
    STALL    old ones stay open and new ones are accepted, but nothing moves; `restore` lets go
             what was held, except where an end has given up meanwhile
    SILENT   old ones are forwarded; new ones are accepted and never answered, not even later

On top of a mode: `split`, `delay` and `drop` shape what is forwarded until they are called off;
`reset`, `reset_after`, `swallow` and `repeat` happen once. `wait_for` waits for what the counters
show.

    with Proxy(broker.port) as proxy:
        connect(proxy.host, proxy.port)
        proxy.swallow(DOWN, PUBACK)
        proxy.wait_for(lambda p: p.swallowed[DOWN], timeout_s=5)
"""

import asyncio
import threading
from collections.abc import Callable

from tools.loopback import HOST, free_port
from tools.proxy_link import DOWN, UP, Faults, Link

PASS, REFUSE, STALL, SILENT = "pass", "refuse", "stall", "silent"
_CALL_S = 10


class Proxy:
    """One listening port on loopback in front of `target_port`.

    `connections` counts those accepted so far, `open` those open now, `given_up` those left by an
    end during a stall. Per direction, `bytes`, `packets` (a Counter of whole MQTT packets by type),
    `swallowed` and `repeated` count what went through, what vanished and what came twice.
    """

    host = HOST

    def __init__(self, target_port: int, target_host: str = HOST, port: int = 0):
        self.target = (target_host, target_port)
        self.port = port or free_port()
        self.mode = PASS
        self.connections = 0
        self._changed = threading.Condition()
        self._links: set[Link] = set()
        self._server: asyncio.Server | None = None
        self._faults = Faults()
        self.bytes = self._faults.bytes
        self.packets = self._faults.packets
        self.swallowed = self._faults.swallowed
        self.repeated = self._faults.repeated
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> "Proxy":
        return self.start()

    def __exit__(self, *_exc) -> None:
        self.close()

    def start(self) -> "Proxy":
        """Open the port; OSError when it is taken."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        try:
            self._call(self._enter(PASS))
        except OSError:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Reset what is open, close the port, end the thread. May be called twice."""
        if self._thread.is_alive():
            self._call(self._enter(REFUSE))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CALL_S)

    def restore(self) -> None:
        """Back to PASS; `split`, `delay`, `drop` and what waits to happen once are called off."""
        self._call(self._enter(PASS))

    def refuse(self) -> None:
        """Close the listener and reset every connection."""
        self._call(self._enter(REFUSE))

    def stall(self) -> None:
        """Keep every connection and move nothing."""
        self._call(self._enter(STALL))

    def silence(self) -> None:
        """Accept new connections and never answer them."""
        self._call(self._enter(SILENT))

    def reset(self) -> None:
        """Reset every open connection, on both sides, now."""
        self._call(self._reset())

    def reset_after(self, count: int, direction: str = UP) -> None:
        """Reset the connection that carries the `count`-th further byte, right behind it."""
        change = {_checked(direction): count}
        self._apply(lambda: self._faults.to_cut.update(change))

    def swallow(self, direction: str, packet_type: int, count: int = 1) -> None:
        """Let the next `count` MQTT packets of a type vanish."""
        change = {(_checked(direction), packet_type): count}
        self._apply(lambda: self._faults.to_swallow.update(change))

    def repeat(self, direction: str, packet_type: int, count: int = 1) -> None:
        """Send the next `count` MQTT packets of a type twice."""
        change = {(_checked(direction), packet_type): count}
        self._apply(lambda: self._faults.to_repeat.update(change))

    def drop(self, direction: str, on: bool = True) -> None:
        """Let everything in one direction vanish while the connections stay."""
        change = {_checked(direction): on}
        self._apply(lambda: self._faults.drop.update(change))

    def delay(self, seconds: float, direction: str | None = None) -> None:
        """Forward what arrives from now on `seconds` later (both directions when None)."""
        ways = (UP, DOWN) if direction is None else (_checked(direction),)
        self._apply(lambda: self._faults.delay_s.update(dict.fromkeys(ways, seconds)))

    def split(self, pause_s: float | None = 0.001) -> None:
        """Forward every byte by itself, `pause_s` apart; None: in one piece again."""
        self._apply(lambda: setattr(self._faults, "split_s", pause_s))

    @property
    def given_up(self) -> int:
        """How many connections were left by an end while nothing moved."""
        return self._faults.given_up

    @property
    def open(self) -> int:
        """How many connections are open now."""
        return len(self._links)

    def wait_for(
        self, condition: Callable[["Proxy"], object], timeout_s: float, what: str = "the condition"
    ) -> None:
        """Return as soon as `condition(proxy)` is true; TimeoutError naming `what` otherwise."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), timeout_s):
                raise TimeoutError(
                    f"{what}: not within {timeout_s:g} s (mode {self.mode}, {self.connections}"
                    f" connections, {self.open} open, {self.bytes[UP]} bytes up,"
                    f" {self.bytes[DOWN]} down)"
                )

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_S)

    def _apply(self, change: Callable[[], object]) -> None:
        async def work():
            change()

        self._call(work())

    async def _enter(self, mode: str) -> None:
        self.mode = mode
        if mode == PASS:
            self._faults.clear()
        if mode == STALL:
            self._faults.flow.clear()
        else:
            self._faults.flow.set()
        if mode != REFUSE:
            await self._listen()
        else:
            self._unlisten()
            await self._reset()

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accepted, self.host, self.port)

    def _unlisten(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _reset(self) -> None:
        tasks = [link.task for link in self._links]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    async def _accepted(self, reader, writer) -> None:
        link = Link(self._faults, self.target, reader, writer, self._notify)
        self._links.add(link)
        self.connections += 1
        self._notify()
        try:
            if self.mode == SILENT:
                await link.ignore()
            elif self.mode != REFUSE:
                await link.forward()
        except asyncio.CancelledError:
            return  # by `_reset`; asyncio's streams would report it as an error
        finally:
            link.close()
            self._links.discard(link)
            self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _checked(direction: str) -> str:
    if direction not in (UP, DOWN):
        raise ValueError(f"direction {direction!r}: {UP!r} or {DOWN!r} expected")
    return direction
