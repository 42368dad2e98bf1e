"""The way to the network: Wi-Fi on a board, nothing to do on a host.

A network is any object with

    status          what it is doing, in words, for the status page
    up()            whether there is any use in making a connection
    name_servers()  addresses of the name servers it knows of
    hosts()         {name: IPv4 address} of hosts that no name server need be asked for
    run(beat)       the task that keeps it up, for ever

`Wifi` keeps the station connected: it asks the interface once a second and begins a new attempt
when one has failed or taken too long. `HostNetwork` is for the unix port and always up.

Either has `status`, in words; `up()`; `name_servers()` and `hosts()`, what a Resolver goes by; and
`run(beat)`, the task that keeps it up.
"""

import asyncio

from micropython import const

_ATTEMPT_S = const(20)


class HostNetwork:
    """The network of the computer this runs on."""

    status = "host network"

    def up(self):
        """True: whether it is really so shows when a connection is made."""
        return True

    def name_servers(self):
        """The IPv4 addresses in /etc/resolv.conf."""
        found = [line.split() for line in _lines("/etc/resolv.conf")]
        return [f[1] for f in found if f[:1] == ["nameserver"] and len(f) > 1 and ":" not in f[1]]

    def hosts(self):
        """{name: IPv4 address} from /etc/hosts."""
        found = {}
        for line in _lines("/etc/hosts"):
            words = line.partition("#")[0].lower().split()
            for name in words[1:]:
                if ":" not in words[0]:
                    found.setdefault(name, words[0])
        return found

    async def run(self, beat):
        """There is nothing to keep up."""
        while True:
            beat()
            await asyncio.sleep_ms(1000)


def _lines(path):
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(line.decode())
        except UnicodeError:  # a comment of long ago
            pass
    return found


class Wifi:
    """Keeps the station `wlan` (a `network.WLAN`) connected to `ssid`."""

    def __init__(self, wlan, ssid, password, log):
        self._wlan = wlan
        self._ssid = ssid
        self._password = password
        self._log = log
        self._left_s = 0
        self._was_up = False
        self.status = "not started"

    def up(self):
        """Whether the station has an address."""
        return self._wlan.isconnected()

    async def run(self, beat):
        """Look after the station, for ever."""
        while True:
            beat()
            self.look()
            await asyncio.sleep_ms(1000)

    def look(self):
        """Look after the station once; to be called every second."""
        is_up = self._wlan.isconnected()
        if is_up != self._was_up:
            self._log.info("wifi {}: {}".format("up" if is_up else "down", self._ssid))
            self._was_up = is_up
            self._left_s = 0
        if not is_up:
            self._try()
        self.status = self._in_words(is_up)

    def _try(self):
        """Begin an attempt, unless one is under way and has time left."""
        if self._left_s > 0:
            self._left_s -= 1
            return
        self._left_s = _ATTEMPT_S - 1
        try:
            self._wlan.active(True)
            self._wlan.disconnect()
            self._wlan.connect(self._ssid, self._password)
        except (OSError, RuntimeError) as error:  # as the ESP32's port raises them
            self._log.warning("wifi {}: {}".format(self._ssid, error))

    def name_servers(self):
        """The one that the network has named."""
        return [self._wlan.ifconfig()[3]]

    def hosts(self):
        """None are known without asking."""
        return {}

    def _in_words(self, is_up):
        if is_up:
            return "wifi {} up, {}".format(self._ssid, self._wlan.ifconfig()[0])
        return "wifi {} not connected (status {})".format(self._ssid, self._wlan.status())
