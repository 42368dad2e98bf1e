"""Resolver: a host's IPv4 address, without stalling the event loop.

    number or localhost -> itself
    asked before, and its time to live not over -> the same again
    else: each name server in turn, twice round, `_STEP_MS` at a time -> asked
    none of them helps -> the last address known for that host, with a warning, or Unreachable

The port's own getaddrinfo waits for name servers with everything standing still; it is used for
addresses in numbers only. One UDP socket an attempt, connected, so that only the server asked can
answer, from a port of its own and with a random id; it is closed on every path.
"""

import asyncio
import errno
import socket

from micropython import const

from firmware import dns_wire
from firmware.dial import Unreachable
from firmware.settings import is_number
from millpond.message import ProtocolError

_PORT = const(53)
_STEP_MS = const(10)
_ROUNDS = const(2)
_TRY_MS = const(2000)
_LARGEST = const(512)
_MIN_TTL_S = const(30)
_MAX_TTL_S = const(300)
_OWN = {"localhost": "127.0.0.1"}


class Resolver:
    """Finds the address that `resolve(host, port)` is asked for.

    `servers()` gives the name servers as texts, "192.0.2.53" or "192.0.2.53:5353", and `known()`,
    if given, a dict of hosts whose addresses need no asking. `getrandbits` is random's. All name
    servers together have `timeout_ms` to answer.
    """

    def __init__(self, servers, clock, log, getrandbits, timeout_ms, known=None):
        self._servers = servers
        self._known = known or dict
        self._clock = clock
        self._log = log
        self._getrandbits = getrandbits
        self._timeout_ms = timeout_ms
        self._last = {}

    async def resolve(self, host, port):
        """The address, as `socket.connect` takes it; Unreachable with the reason."""
        return sockaddr(await self._address(host), port)

    async def _address(self, host):
        if is_number(host):
            return host
        name = host.lower()
        known = _OWN.get(name) or self._known().get(name)
        if known:
            return known
        address, until = self._last.get(host, (None, 0))
        if address and self._clock.elapsed_s() < until:
            return address
        try:
            return await self._ask(host)
        except Unreachable as error:
            if not address:
                raise
            self._log.warning("{}; trying its last address, {}".format(error, address))
            return address

    async def _ask(self, host):
        if host.lower().endswith(".local"):
            raise Unreachable("{} is no name for a name server: use the address".format(host))
        servers = [server for server in self._servers() if server != "0.0.0.0"]
        if not servers:
            raise Unreachable("no name server known to look {} up: set network.dns".format(host))
        try_ms = min(_TRY_MS, self._timeout_ms // (_ROUNDS * len(servers)))
        why = "no answer"
        for server in servers * _ROUNDS:
            try:
                rcode, address, ttl = await self._ask_one(server, host, try_ms)
            except ProtocolError as error:
                why = "name server {} answers nonsense: {}".format(server, error)
            except OSError as error:
                name = errno.errorcode.get(error.errno, error.errno)
                why = "name server {} does not answer ({})".format(server, name)
            except ValueError as error:
                raise Unreachable(str(error))
            else:
                if address:
                    ttl = min(max(ttl, _MIN_TTL_S), _MAX_TTL_S)
                    self._last[host] = (address, self._clock.elapsed_s() + ttl)
                    return address
                why = _refusal(server, host, rcode)
                if rcode == dns_wire.NO_SUCH_NAME:
                    break
        raise Unreachable(why)

    async def _ask_one(self, server, host, try_ms):
        packet_id = self._getrandbits(16)
        packet = dns_wire.query(packet_id, host)
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.connect(sockaddr(*_split(server)))
            sock.send(packet)
            for _ in range(max(1, try_ms // _STEP_MS)):
                await asyncio.sleep_ms(_STEP_MS)
                data = _receive(sock)
                if data and dns_wire.is_for(data, packet_id):
                    return dns_wire.read(data, host)
        finally:
            sock.close()
        raise OSError(errno.ETIMEDOUT)


def _receive(sock):
    """A packet that has come, or None."""
    try:
        return sock.recv(_LARGEST)
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise
        return None


def _refusal(server, host, rcode):
    if rcode == dns_wire.NO_SUCH_NAME:
        return "there is no host {}, says name server {}".format(host, server)
    if not rcode:
        return "{} has no IPv4 address, says name server {}".format(host, server)
    why = dns_wire.RCODES.get(rcode, "RCODE {}".format(rcode))
    return "name server {} does not look {} up: {}".format(server, host, why)


def sockaddr(address, port):
    """What `socket.connect` takes for an address in numbers; that asks no name server."""
    return socket.getaddrinfo(address, port, 0, socket.SOCK_STREAM)[0][-1]


def _split(server):
    address, _, port = server.partition(":")
    return address, int(port) if port else _PORT
