"""Tls words: why a TLS connection was not made, for a person.

The board does not trust the broker (`distrusted`), the broker will not have the board and says so
by an alert (`refused`), or the handshake broke off (`failed`). The last two give a pair, whether
trying again is no use, and the text.

What mbedtls and the port report is told by its number, for not every port has the texts.
"""

import errno
import time

from micropython import const

# What mbedtls says of a certificate, and what that means.
_DOUBTS = (
    ("not correctly signed", "none of those in mqtt.ca_file has signed it"),
    ("Common Name", "it is not made out to {name}"),
    ("has expired", "it has expired, seen from {date}, the date here"),
    ("in the future", "it is not valid yet, seen from {date}, the date here"),
    ("signed with an unacceptable", "it is signed in a way that is too weak"),
    ("Usage does not match", "it is not one for servers"),
)

_NOT_ACCEPTED = "the certificate of the broker is not accepted: "

# Alerts (RFC 8446, 6.2) that a broker sends for a reason that stays.
_ALERTS = {
    40: "it wants a certificate (mqtt.cert_file) or ciphers that this board has not",
    42: "it finds mqtt.cert_file damaged, too weak, or not valid yet",
    43: "mqtt.cert_file is not one for clients",
    44: "mqtt.cert_file is revoked",
    45: "mqtt.cert_file has expired",
    46: "it does not accept mqtt.cert_file",
    48: "it does not know who signed mqtt.cert_file",
    49: "it lets nobody in with mqtt.cert_file",
    51: "do mqtt.key_file and mqtt.cert_file belong together?",
    70: "it does not do this board's version of TLS, which is mostly 1.2",
    71: "it finds this board's ciphers too weak",
    112: "it has no certificate for {name}, see mqtt.tls_name",
}
# By these a board without a certificate is told that it should have one.
_ASKING = (42, 43, 46, 48, 49, 116)
_ASKS = "does it ask for a certificate (mqtt.cert_file)"
_ACCEPTS = "does it accept mqtt.cert_file"

_REFUSED = const(-0x7780)  # MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE
# ECONNRESET, EPIPE, MBEDTLS_ERR_SSL_CONN_EOF and PEER_CLOSE_NOTIFY
_CLOSED = (errno.ECONNRESET, 32, -0x7280, -0x7880)
# ENOMEM and what mbedtls has in its place, for big numbers and for ASN.1 as if it were an errno.
_NO_MEMORY = (errno.ENOMEM, 0x10, 0x6A, -0x2880, -0x3F80, -0x4D80, -0x5180)
_HOPELESS = {
    -0x6E80: "the broker's version of TLS is none that this board does",
    -0x7A00: _NOT_ACCEPTED + "it is not one for servers, or of a curve not known here",
    -0x7200: "the broker does no TLS on this port, it answers in plain text",
}
_MBEDTLS = const(-0x100)  # its errors are below, negative errnos above


def distrusted(text, name):
    """What mbedtls says of a certificate, as one line."""
    date = "{}-{:02}-{:02}".format(*time.gmtime()[:3])
    whys = [why.format(name=name, date=date) for said, why in _DOUBTS if said in text]
    why = " and ".join(whys) or " ".join(text.split())
    return "TLS: " + _NOT_ACCEPTED + why


def refused(alert, has_cert, name):
    """What the number of a broker's alert means; None: it sent one that was not seen."""
    lasting = alert is None or alert in _ALERTS or alert in _ASKING
    if alert is None:
        why = (_ACCEPTS if has_cert else _ASKS) + ", or want another version of TLS?"
    elif alert in _ASKING and not has_cert:
        why = _ASKS + "?"
    else:
        why = _ALERTS.get(alert, "TLS alert {} (RFC 8446, 6.2)".format(alert)).format(name=name)
    return lasting, "TLS: refused by the broker: " + why


def failed(error, has_cert, name):
    """What an error means that ended a handshake; None: it has nothing to do with TLS."""
    number = error.args[0] if error.args else 0
    text = str(error)
    if isinstance(error, MemoryError) or number in _NO_MEMORY or "ALLOC_FAILED" in text:
        needs = "a handshake takes about 30 KB, 17 of them in one piece; make ring.bytes smaller"
        return False, "TLS: not enough memory: " + needs
    if number == _REFUSED:
        return refused(None, has_cert, name)
    if number in _HOPELESS:
        return True, "TLS: " + _HOPELESS[number]
    if number in _CLOSED:
        hint = "is this its TLS port, and " + (_ACCEPTS if has_cert else _ASKS) + "?"
        return False, "TLS: the broker ended the handshake; " + hint
    if number > _MBEDTLS:
        return None
    what = error.args[1] if len(error.args) > 1 else "mbedtls error -0x{:04x}".format(-number)
    return False, "TLS: the handshake failed: {}".format(what)
