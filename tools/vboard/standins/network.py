"""`network` of an ESP32, for the virtual board: a station whose access point always answers,
unless the supervisor says otherwise (`VirtualBoard.set_wifi`). Sockets are the host's own and
work whatever this module says.

States of the station: idle → connecting → connected; while no access point answers it goes on
trying, `reconnects` times or for ever, and shows the reason only once it has given up.
"""

import time

import wire
from micropython import const

STA_IF = const(0)
AP_IF = const(1)

STAT_IDLE = const(1000)
STAT_CONNECTING = const(1001)
STAT_GOT_IP = const(1010)
STAT_BEACON_TIMEOUT = const(200)
STAT_NO_AP_FOUND = const(201)
STAT_WRONG_PASSWORD = const(202)
STAT_ASSOC_FAIL = const(203)
STAT_HANDSHAKE_TIMEOUT = const(204)

_ATTEMPT_MS = const(50)
_ADDRESS = ("127.0.0.1", "255.0.0.0", "127.0.0.1", "127.0.0.1")
_NO_ADDRESS = ("0.0.0.0", "0.0.0.0", "0.0.0.0", "0.0.0.0")
_REASONS = {
    "no_ap": STAT_NO_AP_FOUND,
    "wrong_password": STAT_WRONG_PASSWORD,
    "down": STAT_BEACON_TIMEOUT,
}

_names = {"hostname": "mpy-esp32", "country": "XX"}


def _name(key, args):
    if not args:
        return _names[key]
    _names[key] = args[0]
    return None


def hostname(*args):
    """Get or set the host name."""
    return _name("hostname", args)


def country(*args):
    """Get or set the country code."""
    return _name("country", args)


class WLAN:
    """The station, or an access point that nobody joins."""

    IF_STA = STA_IF
    IF_AP = AP_IF
    PM_NONE = const(0)
    PM_PERFORMANCE = const(1)
    PM_POWERSAVE = const(2)

    _made = {}

    def __new__(cls, interface=STA_IF):
        if interface not in (STA_IF, AP_IF):
            raise ValueError("invalid WLAN interface identifier")
        if interface not in cls._made:
            self = super().__new__(cls)
            self._start(interface)
            cls._made[interface] = self
        return cls._made[interface]

    def _start(self, interface):
        self._interface = interface
        self._active = False
        self._wanted = False
        self._connected = False
        self._reason = 0
        self._attempts = 0
        self._since = 0
        self._address = None
        mac = b"\x02vbrd" + bytes((1 + interface,))
        self._config = {
            "mac": mac,
            "ssid": "",
            "channel": 1,
            "reconnects": 0,
            "pm": 1,
            "txpower": 20,
        }

    def _step(self):
        """Bring the state up to now."""
        wifi = wire.wifi()
        if self._connected and wifi != "ok":
            self._connected = False
            self._reason = _REASONS[wifi]
            self._begin()
        while self._trying() and time.ticks_diff(time.ticks_ms(), self._since) >= _ATTEMPT_MS:
            self._since = time.ticks_add(self._since, _ATTEMPT_MS)
            if wifi == "ok":
                self._connected = True
                self._reason = 0
            else:
                self._reason = _REASONS[wifi]
                self._attempts += 1

    def _begin(self):
        self._attempts = 0
        self._since = time.ticks_ms()

    def _trying(self):
        limit = self._config["reconnects"]
        return self._wanted and not self._connected and (limit <= 0 or self._attempts < limit)

    def active(self, on=None):
        """Get or set whether the interface is on."""
        if on is not None:
            self._active = bool(on)
            if not on:
                self._wanted = self._connected = False
        return self._active

    def connect(self, ssid=None, key=None, *, bssid=None):
        """Begin to connect; OSError while an attempt is under way or the interface is off."""
        if bssid is not None and len(bssid) != 6:
            raise ValueError
        if self._interface != STA_IF:
            raise OSError("STA required")
        if not self._active:
            raise OSError("Wifi Not Started")
        self._step()
        if self._trying():
            raise OSError("Wifi Internal Error")
        if ssid is not None:
            self._config["ssid"] = ssid
        self._wanted = True
        self._begin()

    def disconnect(self):
        """Let go of the access point."""
        if not self._active:
            raise OSError("Wifi Not Started")
        self._wanted = self._connected = False

    def isconnected(self):
        """Whether the station has an address."""
        self._step()
        return self._connected

    def status(self, param=None):
        """A STAT_… constant, or `"rssi"` in dBm."""
        self._step()
        if param == "rssi":
            if not self._connected:
                raise OSError("Wifi Not Connected")
            return -50
        if param is not None:
            raise ValueError("unknown status param")
        if self._connected:
            return STAT_GOT_IP
        if self._trying():
            return STAT_CONNECTING
        return self._reason or STAT_IDLE

    def scan(self):
        """The access points: (ssid, bssid, channel, RSSI, security, hidden)."""
        if not self._active:
            raise OSError("STA must be active")
        if wire.wifi() in ("no_ap", "down"):
            return []
        return [(b"vboard", b"\x02vbrd\x00", 1, -50, 3, False)]

    def ifconfig(self, address=None):
        """Get or set (address, netmask, gateway, DNS server)."""
        if address is not None:
            self._address = None if address == "dhcp" else tuple(address)
            return None
        if not self.isconnected():
            return _NO_ADDRESS
        return self._address or _ADDRESS

    def ipconfig(self, param):
        """`"addr4"`, `"gw4"`, `"dns"` or `"dhcp4"`."""
        address = self.ifconfig()
        if param == "addr4":
            return address[:2]
        if param == "gw4":
            return address[2]
        if param == "dhcp4":
            return self._address is None
        raise ValueError("unknown config param")

    def config(self, *args, **kwargs):
        """Get one parameter by name, or set some by keyword."""
        if args and kwargs:
            raise TypeError("either pos or kw args are allowed")
        if not kwargs:
            if len(args) != 1:
                raise TypeError("can query only one param")
            return self._get(args[0])
        for name in kwargs:
            self._get(name)
        for name, value in kwargs.items():
            if name == "hostname":
                hostname(value)
            else:
                self._config[name] = value
        return None

    def _get(self, name):
        if name == "hostname":
            return hostname()
        if name == "essid":
            name = "ssid"
        if name not in self._config:
            raise ValueError("unknown config param")
        return self._config[name]
