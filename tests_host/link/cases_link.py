"""Cases for test_inside.py: a Link by itself, in one MicroPython process with what it talks to."""

import asyncio
import errno
import socket

from firmware.dial import sockaddr
from firmware.link import CLOSED, UP, Link
from tests_host.kit import raises

WAIT_MS = 20000
_ports = iter(range(21000, 21100))


class Out:
    """Stands in for a socket: notes each write, and takes `most` bytes of it."""

    def __init__(self, most=1 << 20):
        self.most = most
        self.writes = []

    def write(self, buf, at, n):
        n = min(n, self.most)
        self.writes.append(bytes(buf[at : at + n]))
        return n

    def close(self):
        pass


def up_link(**options):
    """A Link that is up, and the stand-in that it writes to."""
    link = Link("rig", "host", resolve=resolve, **options)
    link.state = UP
    link.sock = out = Out()
    return link, out.writes


async def resolve(host, port):
    return sockaddr(host, port)


class Server:
    """A server in the same event loop: answers each CONNECT, notes all bytes by connection."""

    def __init__(self):
        self.heard = []
        self.ended = 0
        self.changed = asyncio.Event()

    async def start(self):
        while True:
            self.port = next(_ports)
            try:
                self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            except OSError as error:
                assert error.errno == errno.EADDRINUSE
            else:
                return self

    async def _serve(self, reader, writer):
        mine = bytearray()
        self.heard.append(mine)
        while True:
            data = await reader.read(4096)
            if not data:
                break
            if not mine:
                writer.write(b"\x20\x02\x00\x00")
                await writer.drain()
            mine.extend(data)
            self.changed.set()
        self.ended += 1
        self.changed.set()
        writer.close()

    async def until(self, condition):
        async def wait():
            while not condition():
                self.changed.clear()
                await self.changed.wait()

        await asyncio.wait_for_ms(wait(), WAIT_MS)

    async def stop(self):
        self._server.close()
        await self._server.wait_closed()


def with_server(case):
    """Run `case(server, link)`, a coroutine function, against a server of its own."""

    async def run():
        server = await Server().start()
        link = Link("rig", "127.0.0.1", server.port, resolve=resolve)
        try:
            await asyncio.wait_for_ms(case(server, link), WAIT_MS)
        finally:
            link.close()
            await server.stop()

    asyncio.run(run())


def case_L2_each_packet_is_one_write():
    link, writes = up_link()
    assert link.publish(b"a/b", b"xyz", False, 1, False, 0x0102)
    assert link.publish("a/b", "xyz", True)
    assert link.publish(b"t", memoryview(b"q"), False, 1, True, 65535)
    assert link.subscribe("a/#", 1, 0x0304)
    assert link.ping()
    assert writes == [
        b"\x32\x0a\x00\x03a/b\x01\x02xyz",
        b"\x31\x08\x00\x03a/bxyz",
        b"\x3a\x06\x00\x01t\xff\xffq",
        b"\x82\x08\x03\x04\x00\x03a/#\x01",
        b"\xc0\x00",
    ]
    link.publish(b"t", bytes(4000))
    assert len(writes) == 6 and len(writes[5]) == 4006


def case_a_link_that_is_not_up_takes_nothing():
    link = Link("rig", "host", resolve=resolve)
    for call in (
        lambda: link.publish(b"t", b""),
        lambda: link.send(b"t", b"", 2, 1),
        lambda: link.release(1),
        lambda: link.subscribe(b"t"),
        link.ping,
    ):
        assert "{}".format(errno.ENOTCONN) in raises(OSError, call)


def case_a_message_larger_than_the_buffer_is_an_error_and_sends_nothing():
    link, writes = up_link(largest=100)
    said = raises(ValueError, link.publish, b"t", bytes(400))
    assert said == "topic of 1 and payload of 400 bytes: 100 expected at most"
    assert link.send(b"t", bytes(400), 2, 1) is None
    assert writes == []
    assert link.publish(b"t", bytes(99))
    assert len(writes) == 1


def case_a_message_that_only_has_to_wait_for_room_is_another_error():
    async def case():
        link, writes = up_link(largest=100)
        writes_less = link.sock
        writes_less.most = 1
        assert link.publish(b"t", bytes(99)) is False
        for full in (
            lambda: link.publish(b"t", bytes(99)),
            lambda: link.release(1),
            lambda: link.subscribe(b"t"),
            link.ping,
        ):
            said = raises(OSError, lambda full=full: [full() for _ in range(300)])
            assert "{}".format(errno.ENOBUFS) in said
        link.close()

    asyncio.run(case())


class In(Out):
    """Stands in for a socket: gives `pieces`, the last one `times` times, and then nothing."""

    def __init__(self, *pieces, times=1):
        super().__init__()
        self.pieces = list(pieces)
        self.times = times
        self.reads = 0

    def readinto(self, buf):
        self.reads += 1
        if not self.pieces:
            return None
        piece = self.pieces[0]
        if len(self.pieces) > 1:
            self.pieces.pop(0)
        else:
            self.times -= 1
            if not self.times:
                self.pieces.clear()
        buf[: len(piece)] = piece
        return len(piece)


class Wakes:
    """Stands in for the poller: `listen` is woken for as many turns as asked for, then stopped."""

    def __init__(self, turns):
        self.turns = turns

    def __iter__(self):
        return self

    def __next__(self):
        if not self.turns:
            raise asyncio.CancelledError
        self.turns -= 1
        raise StopIteration


def listen(link, turns):
    link._readable = Wakes(turns)
    raises(asyncio.CancelledError, asyncio.run, link.listen())


def answering(*pieces, times=1):
    """A link that sends on each PUBACK, and the stand-in that gives it `pieces` to read."""
    link, _ = up_link()
    link.sock = sock = In(*pieces, times=times)
    link.on_acknowledged = lambda packet_id: link.ping()
    return link, sock


def case_L1_a_peer_that_never_stops_answering_gets_one_turn_of_the_loop_at_a_time():
    link, talker = answering(b"\x40\x02\x00\x01", times=1 << 30)
    listen(link, 1)
    once = talker.reads
    assert once > 10
    listen(link, 1)
    assert talker.reads > once


def case_an_answer_that_comes_at_once_is_read_in_the_same_turn():
    link, sock = answering(b"\x40\x02\x00\x01", b"\x40\x02\x00\x02")
    listen(link, 1)
    assert link.pings == 2 and sock.reads > 3


def case_where_no_answer_comes_at_once_the_next_turns_read_once():
    link, sock = answering(b"\x40\x02\x00\x01")
    listen(link, 1)
    assert sock.reads > 2
    sock.reads = 0
    listen(link, 15)
    assert sock.reads == 15


def case_after_them_an_answer_is_looked_for_again():
    link, _ = answering(b"\x40\x02\x00\x01")
    listen(link, 16)
    link.sock = sock = In(b"\x40\x02\x00\x01")
    listen(link, 1)
    assert sock.reads > 2


def case_where_nothing_was_sent_no_answer_is_looked_for():
    link, _ = up_link()
    link.sock = sock = In(b"\xd0\x00")
    listen(link, 1)
    assert sock.reads == 1


def case_a_link_closed_by_what_it_read_reads_no_more():
    link, _ = up_link()
    link.on_acknowledged = lambda packet_id: link.close()
    link.sock = sock = In(b"\x40\x02\x00\x01", times=5)
    listen(link, 1)
    assert sock.reads == 1


def case_disconnect_takes_leave_of_the_broker_and_closes():
    async def case(server, link):
        assert await link.connect() is False
        await link.disconnect()
        assert link.state == CLOSED and link.sock is None
        await server.until(lambda: server.ended)
        assert bytes(server.heard[0][-2:]) == b"\xe0\x00"
        await link.disconnect()

    with_server(case)


def case_pubsubclient_452_what_was_published_just_before_disconnect_arrives():
    """Report: pubsubclient#452."""

    async def case(server, link):
        await link.connect()
        link.publish(b"t", b"last words")
        await link.disconnect()
        await server.until(lambda: server.ended)
        assert bytes(server.heard[0]).endswith(b"\x30\x0d\x00\x01tlast words\xe0\x00")

    with_server(case)


def case_pubsubclient_690_as_much_as_the_link_takes_just_before_disconnect_arrives():
    """Report: pubsubclient#452, pubsubclient#690."""

    async def case(server, link):
        await link.connect()
        for n in range(4):
            link.publish(b"t", bytes([n]) * 4000)
        await link.disconnect()
        await server.until(lambda: server.ended)
        assert len(server.heard[0]) == 17 + 4 * 4006 + 2
        assert bytes(server.heard[0][-6:]) == bytes([3]) * 4 + b"\xe0\x00"

    with_server(case)


def case_mongoose_1827_an_empty_will_and_an_empty_password():
    """Report: mongoose#1827."""

    async def case(server, link):
        link.set_last_will("w", "")
        link.user, link.pswd = "u", ""
        await link.connect()
        assert bytes(server.heard[0]) == (
            b"\x10\x19\x00\x04MQTT\x04\xc6\x00\x3c\x00\x03rig\x00\x01w\x00\x00\x00\x01u\x00\x00"
        )

    with_server(case)


def case_L10_connecting_again_closes_the_connection_before():
    async def case(server, link):
        await link.connect()
        await link.connect(False)
        await server.until(lambda: server.ended == 1 and len(server.heard) == 2)
        assert server.heard[0][9] == 2 and server.heard[1][9] == 0
        link.ping()
        await server.until(lambda: server.heard[1].endswith(b"\xc0\x00"))

    with_server(case)


def case_L7_flags_of_the_CONNECT():
    async def case(server, link):
        link.set_last_will("w", "gone", True, 1)
        link.user, link.pswd = "u", "p"
        await link.connect()
        assert bytes(server.heard[0]) == (
            b"\x10\x1e\x00\x04MQTT\x04\xee\x00\x3c\x00\x03rig\x00\x01w\x00\x04gone\x00\x01u\x00\x01p"
        )
        link.lw_topic, link.pswd = None, None
        await link.connect(False)
        await server.until(lambda: len(server.heard) == 2 and server.heard[1])
        assert bytes(server.heard[1]) == b"\x10\x12\x00\x04MQTT\x04\x80\x00\x3c\x00\x03rig\x00\x01u"

    with_server(case)


def case_L10_a_connect_that_fails_leaves_no_socket():
    """Report: mp#6455, mp#5929."""

    async def case():
        listener = socket.socket()
        link = Link("rig", "127.0.0.1", 1, resolve=resolve)
        for _ in range(3):
            try:
                await link.connect()
            except OSError as error:
                assert error.errno == errno.ECONNREFUSED
            else:
                raise AssertionError("connected to port 1")
            link.close()
            assert link.sock is None and link.state == CLOSED
        listener.close()

    asyncio.run(case())
