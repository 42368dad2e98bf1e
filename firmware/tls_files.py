"""Tls files: certificates and keys as mbedtls takes them, out of files as people have them.

Files are PEM, as openssl writes it, or DER; what comes out is DER, since not every port reads PEM.
mbedtls takes any key for any certificate, and then a broker refuses both without saying much, so
`belong_together` looks for the public half of the key in the certificate.
"""

from binascii import a2b_base64
from errno import ENOENT

from micropython import const

from firmware.settings import ConfigError

_INTEGER = const(0x02)
_SEQUENCE = const(0x30)
_PUBLIC = const(0xA1)  # in an elliptic key, the field of its public half
_LONG = const(0x80)


def ders(key, path, label):
    """The contents of a PEM file with `label`, or of a DER file, as DER; at least one.

    ConfigError names the configuration's `key` and the file, and says what is wrong with it.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        if error.errno == ENOENT:
            why = "there is no such file on the board; bring it with mpremote cp"
            raise ConfigError("{} {}: {}".format(key, path, why))
        raise ConfigError("{} {}: cannot be read: {}".format(key, path, error))
    if not data.strip():
        raise ConfigError("{} {}: is empty".format(key, path))
    if b"-----BEGIN" not in data:
        return [data]
    found = []
    for part in data.split(b"-----BEGIN ")[1:]:
        head, _, rest = part.partition(b"-----")
        if head.endswith(b"ENCRYPTED PRIVATE KEY") or b"ENCRYPTED" in rest:
            raise ConfigError("{} {}: a key without a passphrase expected".format(key, path))
        if head.endswith(label.encode()):
            found.append(_decoded(key, path, rest))
    if not found:
        raise ConfigError("{} {}: holds no {}".format(key, path, label))
    return found


def _decoded(key, path, rest):
    base64, end, _ = rest.partition(b"-----END")
    try:
        if end:
            return a2b_base64(base64.replace(b"\n", b"").replace(b"\r", b""))
    except ValueError:
        pass
    raise ConfigError("{} {}: is damaged or cut short".format(key, path))


def belong_together(cert, key):
    """Whether a private key is that of a certificate, both as DER that mbedtls has accepted.

    True also when that cannot be told: an elliptic key need not hold its public half.
    """
    return _public_half(key) in cert


def _public_half(key):
    """Bytes that only a certificate for this key has: RSA's modulus, or of a curve's point 24
    bytes, which are the same in its long and its short form."""
    fields = list(_fields(next(_fields(key))[1]))
    tag, value = fields[1]
    if tag == _SEQUENCE:  # PKCS#8: version, algorithm, and the key proper within
        return _public_half(fields[2][1])
    if tag == _INTEGER:
        return value
    for tag, value in fields:
        if tag == _PUBLIC:
            return next(_fields(value))[1][2:26]
    return b""


def _fields(der):
    """The (tag, value) pairs that follow each other in `der`."""
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & _LONG:
            start, at = at, at + length - _LONG
            length = int.from_bytes(der[start:at], "big")
        yield tag, der[at : at + length]
        at += length
