"""SNTP on the wire (RFC 4330): the question what time it is, and a strict look at the answer.

No I/O. A question carries a random number where its time would stand, and the answer repeats that,
so that nobody who has not seen the question can answer it. A server that has no time itself is a
ProtocolError, one that wants to be left alone is Unwelcome.
"""

from micropython import const

from millpond.message import ProtocolError

_SIZE = const(48)
_CLIENT = const(0x23)  # leap 0, version 4, mode 3
_MODE = const(7)
_SERVER = const(4)
_UNKNOWN = const(3)  # leap: the server's clock is not set
_FURTHEST = const(15)  # stratum
_1900 = const(2208988800)  # its epoch, seconds before 1970
_ERA = const(1 << 32)  # the next begins in 2036

# Codes of a server that has no time for us (RFC 4330, 8) and means it.
_KISSES = {
    b"DENY": "it does not answer this board",
    b"RSTR": "it does not answer this board",
    b"RATE": "it is asked too often",
}


class Unwelcome(ProtocolError):
    """The server wants to be left alone."""


def query(nonce):
    """The packet that asks for the time; `nonce` is 8 random bytes."""
    return bytes((_CLIENT,)) + bytes(39) + nonce


def is_for(data, nonce):
    """Whether the packet is a server's answer to the question of that nonce."""
    return len(data) >= _SIZE and data[0] & _MODE == _SERVER and data[24:32] == nonce


def read(data):
    """Unix time in seconds of an answer, at the moment it left the server."""
    stratum = data[1]
    if not stratum:
        code = data[12:16]
        if code in _KISSES:
            raise Unwelcome(_KISSES[code])
        raise ProtocolError("it has no time for us ({})".format(_shown(code)))
    seconds = int.from_bytes(data[40:44], "big")
    if stratum > _FURTHEST or data[0] >> 6 == _UNKNOWN or not seconds:
        raise ProtocolError("it does not know the time itself")
    if not seconds >> 31:
        seconds += _ERA
    return seconds - _1900


def _shown(code):
    return "".join(chr(byte) if 32 < byte < 127 else "?" for byte in code)
