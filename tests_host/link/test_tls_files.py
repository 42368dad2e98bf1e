"""Certificates and keys as files: what is no good is named, with its key of the configuration."""

import ssl

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from firmware.tls_files import belong_together
from tests_host.link.tls_kit import DAY, NOW, output_of

PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
KEY_FORMATS = {
    "PKCS8": serialization.PrivateFormat.PKCS8,
    "traditional": serialization.PrivateFormat.TraditionalOpenSSL,
}
MAKERS = {
    "RSA-2048": lambda: rsa.generate_private_key(65537, 2048),
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
}


def refused(*args):
    """What a Tls with these arguments says of them."""
    return output_of(
        "from firmware.tls import Tls\n"
        f"try:\n    Tls(*{args!r})\nexcept ValueError as e:\n    print(e)"
    )


def test_files_that_are_no_good_are_named_with_their_key(paper):
    ca, pem, key = (paper.path(name) for name in ("ca.pem", "client.pem", "client.key"))
    missing = paper.path("missing.pem")
    folder = str(paper.folder)
    empty = paper.path("empty.pem", b"\n")
    junk = paper.path("junk.pem", b"junk")
    cut = paper.path("cut.pem", paper.ca.cert_pem.bytes()[:300])
    torn = paper.path("torn.pem", paper.ca.cert_pem.bytes().replace(b"M", b"", 1))
    locked = paper.path("locked.key", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END")
    other = paper.path("other.key", trustme.CA().issue_cert("x@y.z").private_key_pem.bytes())
    assert refused(ca, pem, key) == ""
    for args, words in (
        ((missing,), f"mqtt.ca_file {missing}: there is no such file on the board"),
        ((folder,), f"mqtt.ca_file {folder}: cannot be read: [Errno 21] EISDIR"),
        ((empty,), f"mqtt.ca_file {empty}: is empty"),
        ((junk,), f"mqtt.ca_file {junk}: invalid cert: damaged, neither PEM nor DER, or of a kind"),
        ((cut,), f"mqtt.ca_file {cut}: is damaged or cut short"),
        ((torn,), f"mqtt.ca_file {torn}: is damaged or cut short"),
        ((key,), f"mqtt.ca_file {key}: holds no CERTIFICATE"),
        ((ca, missing, key), f"mqtt.cert_file {missing}: there is no such file"),
        ((ca, pem, missing), f"mqtt.key_file {missing}: there is no such file"),
        ((ca, pem, pem), f"mqtt.key_file {pem}: holds no PRIVATE KEY"),
        ((ca, pem, locked), f"mqtt.key_file {locked}: a key without a passphrase expected"),
        ((ca, pem, junk), f"mqtt.cert_file {pem} with key {junk}: invalid key: damaged, "),
        ((ca, pem, other), f"mqtt.key_file {other}: not the key of {pem}"),
    ):
        assert refused(*args).startswith(words), (args, refused(*args))


def test_DER_files_will_do_too(paper):
    der = paper.path("ca.der", ssl.PEM_cert_to_DER_cert(paper.ca.cert_pem.bytes().decode()))
    assert refused(der) == ""


def certificate(key):
    """One for this key, by itself."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pond")])
    return (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(NOW)
        .not_valid_after(NOW + DAY)
        .sign(key, hashes.SHA256())
    )


def private(key, encoding, form):
    return key.private_bytes(encoding, KEY_FORMATS[form], serialization.NoEncryption())


@pytest.mark.parametrize("form", KEY_FORMATS)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_certificate_and_a_key_that_do_not_belong_together_are_found_out(kind, form, paper):
    own, other = MAKERS[kind](), MAKERS[kind]()
    cert = certificate(own)
    path = paper.path(f"{kind}.pem", cert.public_bytes(PEM))
    for encoding in (PEM, DER):
        mine = paper.path("mine.key", private(own, encoding, form))
        strange = paper.path("strange.key", private(other, encoding, form))
        assert refused(paper.path("ca.pem"), path, mine) == ""
        words = f"mqtt.key_file {strange}: not the key of {path}"
        assert refused(paper.path("ca.pem"), path, strange) == words
    der = cert.public_bytes(DER)
    assert belong_together(der, private(own, DER, form))
    assert not belong_together(der, private(other, DER, form))


def test_a_key_without_its_public_half_is_let_pass(paper):
    key = ec.generate_private_key(ec.SECP256R1())
    number = key.private_numbers().private_value.to_bytes(32, "big")
    curve = bytes.fromhex("a00a06082a8648ce3d030107")
    der = b"\x30\x31\x02\x01\x01\x04\x20" + number + curve
    cert = certificate(key).public_bytes(PEM)
    lone = paper.path("lone.key", der)
    assert refused(paper.path("ca.pem"), paper.path("lone.pem", cert), lone) == ""
