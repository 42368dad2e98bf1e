"""TimeServer: sets the clock of a board that has lost the time of day, and keeps it right.

    the port's clock is set already -> asked in a day, where the port's clock can be set
    not set -> asked as soon as there is a network -> set -> asked again in a day
                    no use -> asked again in 15 s, 30 s, … 16 min

The time goes to the port's clock too (`machine.RTC`), by which certificates are judged and which
outlives a soft reset. Half the way of the answer and the fraction of a second are not made up for.
A server that wants to be left alone is left alone for a day. 15 s is the least that RFC 4330 allows
between two questions.
"""

import asyncio

from micropython import const

from firmware.address import NTP_PORT, split
from firmware.failures import Unreachable, named
from firmware.log import in_seconds
from firmware.port_clock import date
from firmware.sntp_wire import Unwelcome, is_for, query, read
from millpond.message import ProtocolError

_ANSWER_MS = const(2000)
_MIN_S = const(15)
_MAX_S = const(960)
_DAY_S = const(86400)


class TimeServer:
    """Asks `server`, "pool.ntp.org" or "192.0.2.7:123", what time it is; "" asks nobody.

    `resolve(host, port)` is a Resolver's, `exchange` that of `firmware.datagram`, `is_up()` the
    network's and `getrandbits` random's. `failing` says in words why the last question was in
    vain, "" when it was not.
    """

    def __init__(self, server, clock, port_clock, resolve, exchange, is_up, log, getrandbits):
        self._server = server
        self._host, self._port = split(server, NTP_PORT)
        self._clock = clock
        self._port_clock = port_clock
        self._resolve = resolve
        self._exchange = exchange
        self._is_up = is_up
        self._log = log
        self._getrandbits = getrandbits
        self._retry_s = _MIN_S
        self.failing = ""

    def why_unknown(self):
        """Why the time is not known yet, in words."""
        if not self._server:
            return "no network.ntp is set"
        return self.failing or "time server {} is being asked".format(self._server)

    async def run(self, beat):
        """Ask whenever it is time to, for ever."""
        wait_s = _DAY_S if self._clock.known else 0
        while True:
            beat()
            await asyncio.sleep_ms(1000)
            wait_s -= 1
            if wait_s <= 0 and self._is_wanted() and self._is_up():
                wait_s = await self._ask()

    def _is_wanted(self):
        return self._server and (self._port_clock.can_be_set or not self._clock.known)

    async def _ask(self):
        """Ask once, and set the clocks; in how many seconds to ask again."""
        try:
            unix = await self._answer()
            self._clock.set_unix(unix)
            self._port_clock.set_unix(unix)
        except Unreachable as error:
            return self._failed(str(error))
        except Unwelcome as error:
            self._retry_s = _DAY_S
            return self._failed("time server {}: {}".format(self._server, error))
        except (ProtocolError, ValueError) as error:
            return self._failed("time server {}: {}".format(self._server, error))
        except OSError as error:
            why = "time server {} does not answer ({})".format(self._server, named(error))
            return self._failed(why)
        self._log.info("time of day: {}, says time server {}".format(date(unix), self._server))
        self.failing = ""
        self._retry_s = _MIN_S
        return _DAY_S

    async def _answer(self):
        """Unix time of the server's answer."""
        sockaddr = await self._resolve(self._host, self._port)
        nonce = bytes(self._getrandbits(8) for _ in range(8))
        packet = query(nonce)
        data = await self._exchange(sockaddr, packet, lambda data: is_for(data, nonce), _ANSWER_MS)
        return read(data)

    def _failed(self, trouble):
        """Note it, and give how many seconds to wait: twice as many each time."""
        wait_s = self._retry_s
        self.failing = trouble
        self._log.warning("{}; asked again in {}".format(trouble, in_seconds(1000 * wait_s)))
        self._retry_s = min(2 * wait_s, _MAX_S)
        return wait_s
