"""Failures: why there is no connection, in words.

    Unreachable      found out by ourselves, or the broker's refusal: a reason in words already;
    Hopeless           one that trying again cannot mend (L5)
    ProtocolError    the broker breaks the protocol (L4)
    OSError          the network: by its number, with the broker's host and port

With one of these `Link.connect` and `Link.listen` end, unless we have made a mistake.
"""

import errno

from micropython import const

from millpond.message import ProtocolError

_EPIPE = const(32)  # the errno module of MicroPython lacks it
_ENETUNREACH = (101, 114)  # so does it that of Linux and of the ESP32
_CLOSED_BY_PEER = (errno.ECONNRESET, _EPIPE)
_CLOSED = "the broker at {} closed the connection"
_NO_ROUTE = "no route to {}"
_NO_ADDRESS = "no address found for {}"
_NETWORK = {
    errno.ECONNREFUSED: "connection refused: no broker listens at {}",
    errno.ECONNRESET: _CLOSED,
    _EPIPE: _CLOSED,
    errno.EHOSTUNREACH: _NO_ROUTE,
    errno.EACCES: "connections to {} are forbidden here",
    _ENETUNREACH[0]: _NO_ROUTE,
    _ENETUNREACH[1]: _NO_ROUTE,
    errno.ETIMEDOUT: "no answer from {}",
    errno.ENOBUFS: "the send buffer is full: {} takes no data",
    errno.ENOTCONN: "the connection to {} is gone",
    # What mbedtls says once the handshake is over: INVALID_MAC, FATAL_ALERT_MESSAGE.
    -0x7180: "what came from {} was damaged, says TLS",
    -0x7780: "the broker at {} ended TLS: does it want another certificate (mqtt.cert_file)?",
    # What getaddrinfo raises, on a port by port basis; the unix port raises a text.
    -2: _NO_ADDRESS,
    -200: _NO_ADDRESS,
    -202: _NO_ADDRESS,
}

# CONNACK return codes (MQTT 3.1.1, table 3.1).
_REFUSALS = {
    1: "protocol version refused",
    2: "client identifier refused",
    3: "server unavailable",
    4: "bad user name or password: see mqtt.user and mqtt.password",
    5: "not authorized: see mqtt.user, mqtt.password and the broker's rules for them",
}
_LASTING = (1, 2, 4, 5)


class Unreachable(Exception):
    """No connection can be made now; the reason in words."""


class Hopeless(Unreachable):
    """No connection can be made, and trying again will not mend that."""


def refused(code):
    """The exception to raise for a CONNACK with this return code."""
    why = _REFUSALS.get(code, "code {}".format(code))
    return (Hopeless if code in _LASTING else Unreachable)(
        "broker refused the connection: {}".format(why)
    )


def in_words(error, where):
    """Why there is no connection to `where`, host and port of the broker."""
    if isinstance(error, Unreachable):
        return str(error)
    if isinstance(error, ProtocolError):
        return "the broker broke the protocol: {}".format(error)
    text = _NETWORK.get(error.errno, _NO_ADDRESS if "addrinfo" in str(error) else None)
    if text:
        return text.format(where)
    return "network error {}: {}".format(error.errno, named(error))


def named(error):
    """An OSError by the name of its number, such as ETIMEDOUT; else as it is."""
    if error.errno in _ENETUNREACH:
        return "ENETUNREACH"
    return errno.errorcode.get(error.errno, error)


def is_closed_by_peer(error):
    """Whether it is the broker who has closed the connection."""
    return isinstance(error, OSError) and error.errno in _CLOSED_BY_PEER
