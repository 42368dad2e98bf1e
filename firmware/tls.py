"""Tls: makes a connected socket a TLS one, and says in words why a broker is not to be trusted.

    Tls(files) --wrap(sock, host)--> a socket whose first write does the handshake

The broker is verified, by its signer, its name and its dates, unless that is switched off. The
handshake has no step of its own: the first write to the socket returns None, as often as the peer
has to be waited for, until it is over; then the write is done. So it needs no thread and has the
deadline of whoever writes. What does stall the event loop is the arithmetic of one such step, for
which the port offers nothing shorter.

Of a broker's alert mbedtls tells no more than that there was one. So `heed`, between the steps,
looks first at what has come, where the port can do that; and where the broker closed on us while we
still wrote, its alert is left to be read.

A PEM file may hold several certificates of signers; of `cert_file` the first is used.
"""

import socket
import ssl

from micropython import const

from firmware.dial import Hopeless, Unreachable
from firmware.settings import ConfigError
from firmware.tls_files import belong_together, ders
from firmware.tls_words import distrusted, failed, refused

_PEEK = getattr(socket, "MSG_PEEK", None)

# An alert as a record of its own: type, version, length 2, level, number.
_ALERT = const(0x15)
_ALERT_BYTES = const(7)
_FATAL = b"\x00\x02\x02"


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
            for der in ders("mqtt.ca_file", ca_file, "CERTIFICATE"):
                _accepted("mqtt.ca_file " + ca_file, self._trust, der)
        if cert_file:
            self._show(cert_file, key_file)

    def _trust(self, der):
        self._context.load_verify_locations(cadata=der)

    def _show(self, cert_file, key_file):
        cert = ders("mqtt.cert_file", cert_file, "CERTIFICATE")[0]
        key = ders("mqtt.key_file", key_file, "PRIVATE KEY")[0]
        what = "mqtt.cert_file {} with key {}".format(cert_file, key_file)
        _accepted(what, self._context.load_cert_chain, cert, key)
        if not belong_together(cert, key):
            raise ConfigError("mqtt.key_file {}: not the key of {}".format(key_file, cert_file))

    def wrap(self, sock, host):
        """A TLS socket over `sock`, which is connected or will be.

        Hopeless when that fails, Unreachable when only memory is short.
        """
        name = self._name or host
        try:
            wrapped = self._context.wrap_socket(
                sock, server_hostname=name, do_handshake_on_connect=False
            )
        except ValueError as error:
            raise Hopeless("TLS: {}".format(str(error).strip()))
        except (OSError, MemoryError) as error:
            _tell(failed(error, self._has_cert, name))
            raise
        return Secured(wrapped, sock, name, self._has_cert)


class Secured:
    """A TLS socket that is written to and read from as the plain one; `raw` is for the poller.

    What mbedtls has begun to send must be offered to it again in the same length, though more may
    stand behind it by then.
    """

    def __init__(self, raw, plain, name, has_cert):
        self.raw = raw
        self._plain = plain
        self._name = name
        self._has_cert = has_cert
        self._begun = 0
        self.readinto = raw.readinto

    def write(self, buf, at, n):
        """As the stream's `write`; Hopeless when the peer's certificate is not to be trusted."""
        n = self._begun or n
        try:
            written = self.raw.write(buf, at, n)
        except ValueError as error:
            raise Hopeless(distrusted(str(error), self._name))
        self._begun = n - (written or 0)
        return written

    def heed(self):
        """Between two steps of the handshake: raise the reason if the broker has refused it."""
        if _PEEK is not None:
            self._hear(_PEEK)

    def explain(self, error):
        """Raise the reason in words why the handshake ended by `error`, if it is one of TLS."""
        self._hear()
        _tell(failed(error, self._has_cert, self._name))

    def _hear(self, *flags):
        """Raise what a fatal alert means, if one, in clear, is next to be read from the peer."""
        try:
            record = self._plain.recv(_ALERT_BYTES, *flags)
        except OSError:
            return
        if len(record) == _ALERT_BYTES and record[0] == _ALERT and record[3:6] == _FATAL:
            _tell(refused(record[6], self._has_cert, self._name))

    def close(self):
        """Close both: after an error a TLS socket leaves the plain one open."""
        self.raw.close()
        self._plain.close()


def _tell(found):
    if found:
        lasting, text = found
        raise (Hopeless if lasting else Unreachable)(text)


def _accepted(what, load, *ders):
    try:
        load(*ders)
    except (ValueError, OSError) as error:
        why = "damaged, neither PEM nor DER, or of a kind that this port does not know"
        raise ConfigError("{}: {}: {}".format(what, " ".join(str(error).split()), why))
