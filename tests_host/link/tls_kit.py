"""Certificates of an authority of the tests' own, and brokers that show them.

A TLS broker has a second, plain listener for the judges, who come without TLS.
"""

import datetime
import subprocess

import trustme

from tests_host.conftest import micropython_command, micropython_env
from tests_host.link.harness import WAIT_S
from tools.broker import MOSQUITTO, Broker
from tools.loopback import HOST

NAME = "localhost"
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


class Paper:
    """Certificates as files in `folder`; `tls` makes the arguments of Tls."""

    def __init__(self, folder):
        self.folder = folder
        self.ca = trustme.CA()
        self.path("ca.pem", self.ca.cert_pem.bytes())
        self.path("other_ca.pem", trustme.CA().cert_pem.bytes())
        both = trustme.CA().cert_pem.bytes() + self.ca.cert_pem.bytes()
        self.path("both.pem", both)
        self.issue("client", "client@millpond.example")

    def path(self, name, data=None):
        path = self.folder / name
        if data is not None:
            path.write_bytes(data)
        return str(path)

    def issue(self, name, *identities, **options):
        """A certificate as `name`.pem and `name`.key; the lines of a mosquitto.conf."""
        cert = self.ca.issue_cert(*identities, **options)
        chain = b"".join(pem.bytes() for pem in cert.cert_chain_pems)
        pem = self.path(name + ".pem", chain)
        key = self.path(name + ".key", cert.private_key_pem.bytes())
        return f"cafile {self.path('ca.pem')}", f"certfile {pem}", f"keyfile {key}"

    def strange(self, name, *identities):
        """The same by an authority that nobody knows."""
        cert = trustme.CA().issue_cert(*identities)
        self.path(name + ".pem", cert.cert_chain_pems[0].bytes())
        self.path(name + ".key", cert.private_key_pem.bytes())

    def tls(self, ca="ca.pem", client="", verify=True, name=NAME):
        mine = [self.path(client + end) for end in (".pem", ".key")] if client else ["", ""]
        return [self.path(ca), *mine, verify, name]


class TlsBroker(Broker):
    """A broker with TLS on `port`, and a plain listener on `plain`."""

    def __init__(self, lines, plain, **options):
        extra = (*lines, f"listener {plain} {HOST}", "allow_anonymous true")
        super().__init__(kind=MOSQUITTO, extra=extra, **options)
        self.plain = plain


def good(paper, plain, *more, **options):
    """A broker with a certificate that is in order, and `more` lines for its mosquitto.conf."""
    return TlsBroker((*paper.issue("good", NAME, HOST), *more), plain, **options)


def output_of(script):
    """What a MicroPython program prints."""
    done = subprocess.run(
        [micropython_command(), "-c", script],
        env=micropython_env(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
