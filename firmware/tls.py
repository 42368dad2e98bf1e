"""Tls: makes a connected socket a TLS one, and says in words why a broker is not to be trusted.

    Tls(files) --wrap(sock, host)--> a socket whose first write does the handshake

The broker is verified, by its signer, its name and its dates, unless that is switched off. The
handshake has no step of its own: the first write to the socket returns None, as often as the peer
has to be waited for, until it is over; then the write is done. So it needs no thread and has the
deadline of whoever writes. What does stall the event loop is the arithmetic of one such step, for
which the port offers nothing shorter.

Files are PEM, as openssl writes it, or DER; a port without PEM is given DER. A PEM file may hold
several certificates of signers; of `cert_file` the first is used.
"""

import errno
import ssl
import time
from binascii import a2b_base64

from firmware.dial import Hopeless, Unreachable
from firmware.settings import ConfigError

# What mbedtls says of a certificate, and what that means.
_DOUBTS = (
    ("not correctly signed", "none of those in mqtt.ca_file has signed it"),
    ("Common Name", "it is not made out to {name}"),
    ("has expired", "it has expired, seen from {date}, the date here"),
    ("in the future", "it is not valid yet, seen from {date}, the date here"),
    ("signed with an unacceptable", "it is signed in a way that is too weak"),
)
_CLOSED = (errno.ECONNRESET, 32)  # EPIPE, which MicroPython has no name for
_ALERT = "MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE"
_RECORD = "MBEDTLS_ERR_SSL_INVALID_RECORD"


class Tls:
    """What a TLS connection to a broker needs; ConfigError names the file that is no good.

    `ca_file` has the certificates of those who may sign the broker's, needed when `verify`.
    `cert_file` and `key_file`, if given, are this client's own. `name` is what the broker's
    certificate is made out to, where that is not the host it is reached by.
    """

    def __init__(self, ca_file="", cert_file="", key_file="", verify=True, name=""):
        self._name = name
        self._has_cert = bool(cert_file)
        self._context = context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
        if verify:
            for der in _ders("mqtt.ca_file", ca_file, "CERTIFICATE"):
                _accepted("mqtt.ca_file", ca_file, self._trust, der)
        if cert_file:
            der = _ders("mqtt.cert_file", cert_file, "CERTIFICATE")[0]
            key = _ders("mqtt.key_file", key_file, "PRIVATE KEY")[0]
            what = "{} with key {}".format(cert_file, key_file)
            _accepted("mqtt.cert_file", what, context.load_cert_chain, der, key)

    def _trust(self, der):
        self._context.load_verify_locations(cadata=der)

    def wrap(self, sock, host):
        """A TLS socket over `sock`, which is connected or will be; Hopeless when that fails."""
        name = self._name or host
        try:
            wrapped = self._context.wrap_socket(
                sock, server_hostname=name, do_handshake_on_connect=False
            )
        except ValueError as error:
            raise Hopeless("TLS: {}".format(str(error).strip()))
        return Secured(wrapped, sock, name)

    def explain(self, error):
        """Raise Unreachable or Hopeless with the reason, where the handshake ended by `error`."""
        text = str(error)
        if _RECORD in text:
            raise Hopeless("TLS: the broker does no TLS on this port, it answers in plain text")
        if _ALERT in text:
            raise Unreachable("TLS: the broker refused the handshake" + self._hint())
        if len(error.args) > 1:
            raise Unreachable("TLS: {}".format(error.args[1]))
        if error.errno in _CLOSED:
            raise Unreachable("TLS: the broker ended the handshake" + self._hint())

    def _hint(self):
        if self._has_cert:
            return "; does it know who signed mqtt.cert_file?"
        return "; does it ask for a certificate (mqtt.cert_file)?"


class Secured:
    """A TLS socket that is written to and read from as the plain one; `raw` is for the poller.

    What mbedtls has begun to send must be offered to it again in the same length, though more may
    stand behind it by then.
    """

    def __init__(self, raw, plain, name):
        self.raw = raw
        self._plain = plain
        self._name = name
        self._begun = 0
        self.readinto = raw.readinto

    def write(self, buf, at, n):
        """As the stream's `write`; Hopeless when the peer's certificate is not to be trusted."""
        n = self._begun or n
        try:
            written = self.raw.write(buf, at, n)
        except ValueError as error:
            raise Hopeless(doubt(str(error), self._name))
        self._begun = n - (written or 0)
        return written

    def close(self):
        """Close both: after an error a TLS socket leaves the plain one open."""
        self.raw.close()
        self._plain.close()


def doubt(text, name):
    """What mbedtls says of a certificate, as one line for a person."""
    whys = [why for said, why in _DOUBTS if said in text] or [" ".join(text.split())]
    date = "{}-{:02}-{:02}".format(*time.gmtime()[:3])
    why = " and ".join(whys).format(name=name, date=date)
    return "TLS: the certificate of the broker is not accepted: {}".format(why)


def _ders(key, path, label):
    """The contents of a PEM file with `label`, or of a DER file, as DER; at least one."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError("{} {}: cannot be read: {}".format(key, path, error))
    if b"-----BEGIN" not in data:
        return [data]
    found = []
    for part in data.split(b"-----BEGIN ")[1:]:
        head, _, rest = part.partition(b"-----")
        if head.endswith(b"ENCRYPTED PRIVATE KEY") or b"ENCRYPTED" in rest:
            raise ConfigError("{} {}: a key without a passphrase expected".format(key, path))
        if head.endswith(label.encode()):
            found.append(_decoded(key, path, rest.partition(b"-----END")[0]))
    if not found:
        raise ConfigError("{} {}: holds no {}".format(key, path, label))
    return found


def _decoded(key, path, base64):
    try:
        return a2b_base64(base64.replace(b"\n", b"").replace(b"\r", b""))
    except ValueError:
        raise ConfigError("{} {}: is damaged".format(key, path))


def _accepted(key, what, load, *ders):
    try:
        load(*ders)
    except (ValueError, OSError) as error:
        raise ConfigError("{} {}: {}".format(key, what, " ".join(str(error).split())))
