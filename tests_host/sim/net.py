"""Net: the network between the firmware and the broker, and the module socket on it.

A connection is two streams of bytes, each of which arrives in order after the network's latency.
What can go wrong is a field of the Net, for what comes, or of the Conn, for one connection:

    refuse, no_answer     new connections are refused; nothing ever comes back to a SYN
    dead_in, dead_out     bytes of one direction, or of both, get lost, and nobody is told
    stalled_until         bytes arrive, but not before that moment
    piece                 the firmware's calls read or write no more than so many bytes at once
    reset_in, reset_out   the connection is reset when so many bytes have come in or gone out
    room_next             the next connection takes so many bytes and then, for ever, nothing
    flaps                 so many of the next connections are reset, each behind some bytes

An error shows as it does on a real socket: at the next call, with both directions ready.
"""

import errno

from tests_host.sim.loop import world

EPIPE = 32


class Net:
    """The network; `broker` has accept(conn), feed(conn, data), ended(conn)."""

    def __init__(self, loop, broker):
        self.loop = loop
        self.broker = broker
        self.opened = 0
        self.open = []
        self.conn = None
        self.send_buffer = 2048
        self.heal()

    def heal(self):
        """No faults, from now on; what a connection has suffered stays."""
        self.latency = 10
        self.refuse = self.no_answer = self.no_name = False
        self.stalled_until = 0
        self.piece = 0
        self.reset_next = self.room_next = None
        self.flaps = 0
        if self.conn:
            self.conn.reset_out = self.conn.reset_in = None
            self.conn.full = False
            self.conn.poke()

    def getaddrinfo(self, host, port, *_):
        """As the module's: one address, or the error of a resolver."""
        if self.no_name:
            raise error(-2)
        return [(2, 1, 0, "", (host, port))]


class Conn:
    """A socket of the firmware, and once connected the stream to and from the broker."""

    def __init__(self, net):
        self.net = net
        self.number = net.opened
        net.opened += 1
        net.open.append(self)
        self.connected = self.closed = self.ended = False
        self.broker_side = None
        self.failure = 0
        self.dead_in = self.dead_out = self.full = False
        self.reset_in = self.reset_out = None
        self.deaf_since = None
        self._room_left = None
        self._in = bytearray()
        self._on_way = 0
        self._last_in = self._last_out = 0
        self._reader = self._writer = None

    # -- the socket ------------------------------------------------------------------------------

    def setblocking(self, flag):
        assert not flag, "a blocking socket"

    def setsockopt(self, *_):
        pass

    def connect(self, _address):
        net = self.net
        if net.refuse:
            net.loop.at(net.latency, self._fail, errno.ECONNREFUSED)
        elif not net.no_answer:
            net.loop.at(2 * net.latency, self._established)
        raise error(errno.EINPROGRESS)

    def readinto(self, buf):
        self._check()
        if self._in:
            n = min(len(buf), len(self._in), self.net.piece or len(buf))
            buf[:n] = self._in[:n]
            self._in = self._in[n:]
            return n
        if self.failure:
            failure, self.failure = self.failure, EPIPE
            self.ended = True
            if failure != EPIPE:
                raise error(failure)
        return 0 if self.ended else None

    def write(self, buf, at=0, size=-1):
        self._check()
        if self.failure:
            raise error(self.failure)
        if not self.connected:
            return None
        size = len(buf) - at if size < 0 else size
        n = min(size, self._room(), self.net.piece or size)
        if not n:
            return None if size else 0
        if self._room_left is not None:
            self._room_left -= n
        self._on_way += n
        if not self.dead_out:
            self._send_out(bytes(buf[at : at + n]))
        return n

    def die(self, inwards, outwards):
        """Bytes of these directions get lost from now on."""
        if inwards and not self.dead_in:
            self.dead_in = True
            self.deaf_since = self.net.loop.now
        self.dead_out = self.dead_out or outwards

    def is_free(self, since):
        """Whether both ways were open since a moment, but for the latency."""
        net = self.net
        held_up = self.dead_in or self.dead_out or self.full or self._room_left is not None
        stalled = net.stalled_until > since or self._last_out > net.loop.now
        return self.connected and not (held_up or stalled or self.failure)

    def vanish(self):
        """The firmware's end is switched off: nobody closes anything."""
        self.closed = self.dead_out = True
        self.net.open.remove(self)

    def close(self):
        if self.closed:
            return
        self.closed = True
        assert not self._reader and not self._writer, "closed while a task waits for it"
        self.net.open.remove(self)
        if self.connected and not self.dead_out:
            self._send_out(b"")

    # -- waiting ---------------------------------------------------------------------------------

    def wait_to_read(self, task):
        self._check()
        assert not self._reader, "two tasks read"
        self._reader = task
        task.waits_in = self
        self.poke()

    def wait_to_write(self, task):
        self._check()
        assert not self._writer, "two tasks write"
        self._writer = task
        task.waits_in = self
        self.poke()

    def remove(self, task):
        """A task was cancelled."""
        if self._reader is task:
            self._reader = None
        if self._writer is task:
            self._writer = None

    def poke(self):
        """Wake who can go on."""
        if self._reader and (self._in or self.ended or self.failure):
            self._reader = self._awake(self._reader)
        if self._writer and (self.failure or (self.connected and self._room())):
            self._writer = self._awake(self._writer)

    def _awake(self, task):
        task.waits_in = None
        self.net.loop.wake(task, 0)

    def _check(self):
        if self.closed:
            raise AssertionError("a closed socket is used")

    def _room(self):
        room = 0 if self.full else max(0, self.net.send_buffer - self._on_way)
        return room if self._room_left is None else min(room, self._room_left)

    def _fail(self, code):
        if not self.closed and not self.failure:
            self.failure = code
            self.poke()

    # -- the way to the broker -------------------------------------------------------------------

    def _established(self, _):
        if self.closed:
            return
        if self.net.refuse:
            self._fail(errno.ECONNREFUSED)
            return
        self.connected = True
        self.net.conn = self
        if self.net.reset_next is not None:
            self.reset_in, self.reset_out = self.net.reset_next
            self.net.reset_next = None
        elif self.net.flaps:
            self.net.flaps -= 1
            self.reset_out = (self.number * 53) % 199
        self._room_left = self.net.room_next
        self.net.room_next = None
        self.net.broker.accept(self)
        self.poke()

    def _send_out(self, data):
        net = self.net
        if not net.latency and self._last_out <= net.loop.now >= net.stalled_until:
            self._arrived(data)
            return
        self._last_out = max(net.loop.now + net.latency, net.stalled_until, self._last_out)
        net.loop.at(self._last_out - net.loop.now, self._arrived, data)

    def _arrived(self, data):
        self._on_way -= len(data)
        if self.dead_out or not self.connected:
            self._on_way += len(data)
            return
        if not data:
            self.connected = False
            self.net.broker.ended(self)
            return
        if self.reset_out is not None:
            data = data[: self.reset_out]
            self.reset_out -= len(data)
        if data:
            self.net.broker.feed(self, data)
        if self.reset_out == 0:
            self.reset()
        self.poke()

    # -- the way from the broker -----------------------------------------------------------------

    def send(self, data):
        """Bytes of the broker; none is the end of its stream."""
        net = self.net
        if self.dead_in:
            return
        if not net.latency and self._last_in <= net.loop.now >= net.stalled_until:
            self._come(data)
            return
        self._last_in = max(net.loop.now + net.latency, net.stalled_until, self._last_in)
        net.loop.at(self._last_in - net.loop.now, self._come, data)

    def _come(self, data):
        if self.dead_in or self.closed or self.failure:
            return
        if not data:
            self.ended = True
        if self.reset_in is not None:
            data = data[: self.reset_in]
            self.reset_in -= len(data)
        self._in.extend(data)
        if self.reset_in == 0:
            self.reset()
        self.poke()

    def reset(self):
        """Both ends learn that the connection is gone, the firmware by an error."""
        self.reset_in = self.reset_out = None
        if self.connected:
            self.connected = False
            self.net.broker.ended(self)
        self._fail(errno.ECONNRESET)


def error(code):
    """An OSError as MicroPython raises it; `run.install` sees to that on CPython."""
    return OSError(code)


class MicroOSError(OSError):
    """OSError(code), which has an errno on MicroPython: for the firmware on CPython."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.errno = arguments[0]


class Socket:
    """The module socket."""

    SOCK_STREAM = 1
    SOCK_DGRAM = 2
    AF_INET = 2

    @staticmethod
    def socket(*_):
        return Conn(world.net)

    @staticmethod
    def getaddrinfo(*arguments):
        return world.net.getaddrinfo(*arguments)
