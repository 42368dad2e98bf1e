"""Why there is no TLS connection, in words; and what is worth another try."""

import errno

from firmware.tls_words import distrusted, failed, refused

REFUSED = "TLS: refused by the broker: "


def test_L8_what_mbedtls_says_of_a_certificate():
    start = "TLS: the certificate of the broker is not accepted: "
    said = "The certificate is not correctly signed by the trusted CA\n"
    assert distrusted(said, "pond") == start + "none of those in mqtt.ca_file has signed it"
    said += "The certificate Common Name (CN) does not match with the expected CN\n"
    assert distrusted(said, "pond").endswith(" has signed it and it is not made out to pond")
    said = "Usage does not match the extendedKeyUsage extension\n"
    assert distrusted(said, "pond") == start + "it is not one for servers"
    assert distrusted("What is\n {this}\n", "pond") == start + "What is {this}"


def test_L8_alerts_mean_something_else_where_no_certificate_was_shown():
    asks = (True, REFUSED + "does it ask for a certificate (mqtt.cert_file)?")
    for number in (42, 43, 46, 48, 49, 116):
        assert refused(number, False, "pond") == asks
    assert refused(48, True, "pond") == (
        True,
        REFUSED + "it does not know who signed mqtt.cert_file",
    )
    for has_cert in (False, True):
        lasting, why = refused(112, has_cert, "pond")
        assert lasting and why == REFUSED + "it has no certificate for pond, see mqtt.tls_name"
        assert refused(40, has_cert, "pond")[0] and refused(70, has_cert, "pond")[0]


def test_L8_an_alert_that_need_not_last_is_worth_another_try():
    assert refused(80, True, "pond") == (False, REFUSED + "TLS alert 80 (RFC 8446, 6.2)")


def test_L8_an_alert_that_was_not_seen_gives_the_likely_reasons():
    want = ", or want another version of TLS?"
    for error in (OSError(-0x7780), OSError(-0x7780, "MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE")):
        assert failed(error, True, "pond") == (
            True,
            REFUSED + "does it accept mqtt.cert_file" + want,
        )
        why = REFUSED + "does it ask for a certificate (mqtt.cert_file)" + want
        assert failed(error, False, "pond") == (True, why)


def test_L8_no_memory_says_what_to_do_and_is_worth_another_try():
    for error in (
        MemoryError(),
        MemoryError("memory allocation failed, allocating 16717 bytes"),
        OSError(errno.ENOMEM),
        OSError(16),  # mbedtls' big numbers
        OSError(-0x2880),
        OSError(-0x3D10, "MBEDTLS_ERR_PK_KEY_INVALID_FORMAT+MBEDTLS_ERR_MPI_ALLOC_FAILED"),
    ):
        lasting, why = failed(error, False, "pond")
        assert not lasting and why.startswith("TLS: not enough memory: a handshake takes about "), (
            error
        )
        assert "ring.bytes" in why and len(why) <= 120


def test_L8_what_broke_a_handshake_off():
    for error in (
        OSError(errno.ECONNRESET),
        OSError(32),
        OSError(-0x7280),
        OSError(-0x7880, "BYE"),
    ):
        lasting, why = failed(error, False, "pond")
        assert not lasting and why.startswith("TLS: the broker ended the handshake; "), error
    for number in (-0x7200, -0x6E80, -0x7A00):
        lasting, why = failed(OSError(number, "MBEDTLS_ERR_X"), False, "pond")
        assert lasting and why.startswith("TLS: the ") and "MBEDTLS" not in why
    assert failed(OSError(-0x7300, "MBEDTLS_ERR_SSL_DECODE_ERROR"), False, "pond") == (
        False,
        "TLS: the handshake failed: MBEDTLS_ERR_SSL_DECODE_ERROR",
    )
    assert failed(OSError(-0x7300), False, "pond") == (
        False,
        "TLS: the handshake failed: mbedtls error -0x7300",
    )


def test_an_error_of_the_network_is_no_matter_of_TLS():
    for error in (OSError(errno.ECONNREFUSED), OSError(errno.EHOSTUNREACH), OSError()):
        assert failed(error, False, "pond") is None
