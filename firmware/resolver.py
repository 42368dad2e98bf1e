"""Resolver: a host's IPv4 address, without stalling the event loop.

    number or localhost -> itself
    asked before, and its time to live not over -> what was said then
    else: each name server in turn, twice round -> asked
    none of them helps -> what was last known of that host, with a warning, or Unreachable

A host may have several addresses. The one that led to a connection is given as long as it does,
else the next of them, so that one dead machine of several does not keep us out.

The port's own getaddrinfo waits for name servers with everything standing still; it is used for
addresses in numbers only. Each question has a random id, and a port of its own.
"""

from micropython import const

from firmware import dns_wire
from firmware.address import DNS_PORT, is_number, split
from firmware.datagram import exchange
from firmware.dial import sockaddr
from firmware.failures import Unreachable, named
from millpond.message import ProtocolError

_FIRST_ROUND = const(3)  # what part of the time it has at most
_TRY_MS = const(2000)  # for an answer, in the first round
_MIN_TTL_S = const(30)
_MAX_TTL_S = const(300)
_OWN = {"localhost": "127.0.0.1"}
_NOWHERE = "0.0.0.0"  # what a name server that blocks a host says


class Resolver:
    """Finds the address that `resolve(host, port)` is asked for.

    `servers()` gives the name servers as texts, "192.0.2.53" or "192.0.2.53:5353", and `known()`,
    if given, a dict of hosts whose addresses need no asking. `getrandbits` is random's. All name
    servers together have `timeout_ms` to answer. `connects()` counts the connections made.
    """

    def __init__(
        self, servers, clock, log, getrandbits, timeout_ms, known=None, connects=lambda: 0
    ):
        self._servers = servers
        self._known = known or dict
        self._clock = clock
        self._log = log
        self._getrandbits = getrandbits
        self._timeout_ms = timeout_ms
        self._connects = connects
        self._last = {}
        self._given = None
        self._connects_before = 0

    async def resolve(self, host, port):
        """The address, as `socket.connect` takes it; Unreachable with the reason."""
        return sockaddr(await self._address(host), port)

    async def _address(self, host):
        if is_number(host):
            return host
        name = host.lower()
        if name.endswith(".") and name != ".":
            name = name[:-1]
        known = _OWN.get(name) or self._known().get(name)
        if known:
            return known
        addresses, until = self._last.get(name, ((), 0))
        if addresses and self._clock.elapsed_s() < until:
            return self._one_of(addresses)
        try:
            return self._one_of(await self._ask(name))
        except Unreachable as error:
            if not addresses:
                raise
            address = self._one_of(addresses)
            self._log.warning("{}; trying its last address, {}".format(error, address))
            return address

    def _one_of(self, addresses):
        """The address that was given last, if it led to a connection, else the next."""
        given = self._given
        has_served = self._connects() != self._connects_before
        self._connects_before = self._connects()
        if given not in addresses:
            self._given = addresses[0]
        elif not has_served:
            self._given = min([a for a in addresses if a > given] or addresses)
        return self._given

    async def _ask(self, host):
        if host.endswith(".local"):
            raise Unreachable("{} is no name for a name server: use the address".format(host))
        servers = [server for server in self._servers() if server != _NOWHERE]
        if not servers:
            raise Unreachable("no name server known to look {} up: set network.dns".format(host))
        each_ms = self._timeout_ms // len(servers)
        first_ms = min(_TRY_MS, each_ms // _FIRST_ROUND)
        why = "no answer"
        for try_ms, server in [(ms, s) for ms in (first_ms, each_ms - first_ms) for s in servers]:
            try:
                rcode, addresses, ttl = await self._ask_one(server, host, try_ms)
            except ProtocolError as error:
                why = "name server {} answers nonsense: {}".format(server, error)
            except OSError as error:
                why = "name server {} does not answer ({})".format(server, named(error))
            except ValueError as error:
                raise Unreachable(str(error))
            else:
                if addresses and addresses[0] != _NOWHERE:
                    ttl = min(max(ttl, _MIN_TTL_S), _MAX_TTL_S)
                    self._last[host] = (addresses, self._clock.elapsed_s() + ttl)
                    return addresses
                why = _refusal(server, host, rcode, addresses)
                if rcode == dns_wire.NO_SUCH_NAME:
                    break
        raise Unreachable(why)

    async def _ask_one(self, server, host, try_ms):
        packet_id = self._getrandbits(16)
        data = await exchange(
            sockaddr(*split(server, DNS_PORT)),
            dns_wire.query(packet_id, host),
            lambda data: dns_wire.is_for(data, packet_id),
            try_ms,
        )
        return dns_wire.read(data, host)


def _refusal(server, host, rcode, addresses):
    if addresses:
        return "name server {} blocks {}: it gives {}".format(server, host, addresses[0])
    if rcode == dns_wire.NO_SUCH_NAME:
        return "there is no host {}, says name server {}".format(host, server)
    if not rcode:
        return "{} has no IPv4 address, says name server {}".format(host, server)
    why = dns_wire.RCODES.get(rcode, "RCODE {}".format(rcode))
    return "name server {} does not look {} up: {}".format(server, host, why)
