"""One connection through the faulting proxy, and the faults that shape what it forwards.

A `Link` reads each side into a queue and pumps the queue to the other side, so that it notices an
end that goes away even while nothing may move. It lives in the proxy's event loop. It ends when
either side ends (what had come from there is delivered first), when a reset is due, or when its
task is cancelled. Both sockets are closed on every path: by a reset, which they are set to from the
beginning, unless the other side was closed in an orderly way.
"""

import asyncio
import contextlib
import socket
import struct
from collections import Counter

from tools.mqtt_packets import PacketFilter

UP, DOWN = "up", "down"
_CHUNK = 4096
_HELD_CHUNKS = 256
_CLOSE_BY_RESET = struct.pack("ii", 1, 0)
_CLOSE_IN_ORDER = struct.pack("ii", 0, 0)


class Faults:
    """What happens to forwarded bytes, and what did: shared by all links of a proxy.

    Bytes and packets count as forwarded once they are written to the other side.
    """

    def __init__(self):
        self.bytes = {UP: 0, DOWN: 0}
        self.packets = {UP: Counter(), DOWN: Counter()}
        self.swallowed = {UP: 0, DOWN: 0}
        self.repeated = {UP: 0, DOWN: 0}
        self.given_up = 0
        self.flow = asyncio.Event()
        self.clear()

    def clear(self) -> None:
        """No faults: everything is forwarded at once."""
        self.split_s: float | None = None
        self.delay_s = {UP: 0.0, DOWN: 0.0}
        self.drop = {UP: False, DOWN: False}
        self.to_cut: dict[str, int] = {}
        self.to_swallow = Counter()
        self.to_repeat = Counter()

    def takes(self, direction: str, packet_type: int) -> bool:
        """Whether this packet is to be swallowed; counts it down."""
        return _due(self.to_swallow, self.swallowed, direction, packet_type)

    def repeats(self, direction: str, packet_type: int) -> bool:
        """Whether this packet is to be sent twice; counts it down."""
        return _due(self.to_repeat, self.repeated, direction, packet_type)

    def cut(self, direction: str, data: bytes) -> tuple[bytes, bool]:
        """What of `data` comes before a reset that is due, and whether it is due in it."""
        left = self.to_cut.get(direction)
        if left is None:
            return data, False
        if left > len(data):
            self.to_cut[direction] = left - len(data)
            return data, False
        del self.to_cut[direction]
        return data[:left], True


class Link:
    """A client's connection and, once it may be dialled, the one to `target`.

    `notify()` is called after everything that a counter shows.
    """

    def __init__(self, faults: Faults, target: tuple[str, int], reader, writer, notify):
        self._faults = faults
        self._target = target
        self._client = reader, writer
        self._writers = [writer]
        self._notify = notify
        self._given_up = False
        self.task = asyncio.current_task()
        _set_linger(writer.get_extra_info("socket"), _CLOSE_BY_RESET)

    async def ignore(self) -> None:
        """Read and answer nothing until the client goes."""
        with contextlib.suppress(OSError):
            while await self._client[0].read(_CHUNK):
                pass

    async def forward(self) -> None:
        """Connect to the target and forward both ways until the link ends."""
        reader, writer = self._client
        up, down = asyncio.Queue(_HELD_CHUNKS), asyncio.Queue(_HELD_CHUNKS)
        readers = [asyncio.ensure_future(self._read(reader, up, UP))]
        pumps = []
        try:
            await self._faults.flow.wait()
            if self._given_up:
                return
            far_reader, far_writer = await self._dial()
            self._writers.append(far_writer)
            readers.append(asyncio.ensure_future(self._read(far_reader, down, DOWN)))
            pumps.append(asyncio.ensure_future(self._pump(up, far_writer, UP)))
            pumps.append(asyncio.ensure_future(self._pump(down, writer, DOWN)))
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            return
        finally:
            for task in (*readers, *pumps):
                task.cancel()
            await asyncio.gather(*readers, *pumps, return_exceptions=True)

    def close(self) -> None:
        """Close by a reset what is not closed yet, whatever is still on its way."""
        for writer in self._writers:
            if not writer.transport.is_closing():
                writer.transport.abort()

    async def _dial(self):
        end = socket.socket()
        end.setblocking(False)
        _set_linger(end, _CLOSE_BY_RESET)
        try:
            await asyncio.get_running_loop().sock_connect(end, self._target)
        except BaseException:
            end.close()
            raise
        return await asyncio.open_connection(sock=end)

    async def _read(self, reader, queue, direction: str) -> None:
        data = b"?"
        while data:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                data = b""
            if not data and not self._faults.flow.is_set():
                self._give_up()
            due = asyncio.get_running_loop().time() + self._faults.delay_s[direction]
            await queue.put((due, data))

    def _give_up(self) -> None:
        if not self._given_up:
            self._given_up = True
            self._faults.given_up += 1
            self._notify()

    async def _pump(self, queue, writer, direction: str) -> None:
        faults = self._faults
        packets = PacketFilter(
            lambda kind: faults.takes(direction, kind), lambda kind: faults.repeats(direction, kind)
        )
        last = False
        while not last:
            due, data = await queue.get()
            wait_s = due - asyncio.get_running_loop().time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            await faults.flow.wait()
            if self._given_up:
                return
            if not data:
                _set_linger(writer.get_extra_info("socket"), _CLOSE_IN_ORDER)
                writer.close()
                await writer.wait_closed()
                return
            data, last = faults.cut(direction, data)
            data = packets.feed(data)
            if not faults.drop[direction]:
                await self._write(writer, data, direction)
                faults.packets[direction].update(packets.finished)
            packets.finished.clear()
            self._notify()

    async def _write(self, writer, data: bytes, direction: str) -> None:
        pause_s = self._faults.split_s
        pieces = [data] if pause_s is None else [data[n : n + 1] for n in range(len(data))]
        for piece in pieces:
            await self._faults.flow.wait()
            if self._given_up:
                return
            writer.write(piece)
            await writer.drain()
            self._faults.bytes[direction] += len(piece)
            if pause_s is not None:
                await asyncio.sleep(pause_s)


def _due(orders: Counter, done: dict[str, int], direction: str, packet_type: int) -> bool:
    """Whether an order for a packet of this type stands; counts it down, and in `done` up."""
    if not orders[direction, packet_type]:
        return False
    orders[direction, packet_type] -= 1
    done[direction] += 1
    return True


def _set_linger(end, how: bytes) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, how)
