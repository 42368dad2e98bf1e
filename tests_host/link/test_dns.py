"""Names: looked up at a name server of the tests' own, which errs in every way (L1, L3)."""

import socket
import time

import pytest
from dnslib import CNAME, QTYPE, RCODE, RR, A, DNSRecord

from tests_host.link.datagrams import DatagramServer
from tests_host.link.harness import Rig
from tools.loopback import HOST

NAME = "pond.test"
SERVFAIL, NXDOMAIN, REFUSED = RCODE.SERVFAIL, RCODE.NXDOMAIN, RCODE.REFUSED


class NameServer(DatagramServer):
    """Its plays take a query as a DNSRecord."""

    def answers(self, packet):
        return self.play(DNSRecord.parse(packet))


def address(query, *where, ttl=60):
    reply = query.reply()
    for one in where or (HOST,):
        reply.add_answer(RR(query.q.qname, QTYPE.A, rdata=A(one), ttl=ttl))
    return reply


def right(query):
    return [address(query).pack()]


def silent(query):
    return []


def refusing(rcode):
    def play(query):
        reply = query.reply()
        reply.header.rcode = rcode
        return [reply.pack()]

    return play


def cut(query):
    reply = query.reply()
    reply.header.tc = 1
    return [reply.pack()]


def dead():
    """The name of a name server where nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HOST, 0))
        return "{}:{}".format(*sock.getsockname())


def looking(port, *servers, host=NAME, **options):
    options.setdefault("connect_timeout_s", 1)
    return Rig(port, host=host, dns=list(servers), **options)


def test_a_name_is_looked_up_and_messages_go(broker, judge):
    with NameServer(right) as server, looking(broker.port, server.name) as rig:
        rig.up()
        rig.order("put", n=3)
        rig.delivered(3)
        judge.has_all(3)
        assert [str(DNSRecord.parse(asked).q.qname) for asked in server.asked] == [NAME + "."]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "localhost.", "known.test", "Known.TEST", "known.test."]
)
def test_what_needs_no_asking_is_not_asked_for(host, broker):
    with NameServer(right) as server, looking(broker.port, server.name, host=host) as rig:
        rig.up()
        assert server.asked == []


def test_another_name_for_it_is_followed(broker):
    def alias(query):
        reply = query.reply()
        reply.add_answer(RR(query.q.qname, QTYPE.CNAME, rdata=CNAME("pool.test"), ttl=60))
        reply.add_answer(RR("pool.test", QTYPE.A, rdata=A(HOST), ttl=60))
        return [reply.pack()]

    with NameServer(alias) as server, looking(broker.port, server.name) as rig:
        rig.up()


def test_mp_18797_a_name_server_that_never_answers_stalls_nothing(broker):
    """Report: mp#18797, mp#4801."""
    with (
        NameServer(silent) as server,
        looking(broker.port, server.name, connect_timeout_s=3) as rig,
    ):
        why = rig.down(1)
        assert why == f"name server {server.name} does not answer (ETIMEDOUT)"
        stats = rig.stats()
        assert stats["worst_lag_ms"] < 1500  # asking took 2,400 ms
        assert stats["unwell"] == []
        assert len(server.asked) >= 2


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (refusing(NXDOMAIN), "there is no host pond.test, says name server {}"),
        (refusing(SERVFAIL), "name server {} does not look pond.test up: it has failed"),
        (refusing(REFUSED), "name server {} does not look pond.test up: it refuses to"),
        (refusing(RCODE.NOERROR), "pond.test has no IPv4 address, says name server {}"),
        (
            lambda query: [query.reply().pack() + b"x", address(query).pack()[:-3]],
            "pond.test has no IPv4 address, says name server {}",
        ),
        (
            lambda query: [address(query).pack()[:-3]],
            "name server {} answers nonsense: an answer that ends early",
        ),
        (cut, "name server {} does not look pond.test up: its answer does not fit a packet"),
        (
            lambda query: [address(query, "0.0.0.0").pack()],
            "name server {} blocks pond.test: it gives 0.0.0.0",
        ),
        (lambda query: [b"nonsense"], "name server {} does not answer (ETIMEDOUT)"),
    ],
    ids=[
        "NXDOMAIN",
        "SERVFAIL",
        "REFUSED",
        "no-address",
        "junk-behind",
        "cut",
        "truncated",
        "nowhere",
        "no-DNS",
    ],
)
def test_what_a_name_server_says_instead_is_in_words(play, words, broker):
    with NameServer(play) as server, looking(broker.port, server.name) as rig:
        assert rig.down(1) == words.format(server.name)


def test_an_answer_to_another_question_is_passed_over(broker):
    def stray(query):
        other = address(query, "127.9.9.9")  # where no broker listens
        other.header.id ^= 1
        return [b"", b"x", other.pack(), address(query).pack()]

    with NameServer(stray) as server, looking(broker.port, server.name) as rig:
        rig.up()


@pytest.mark.parametrize("first", [silent, refusing(SERVFAIL), lambda query: [b"x" * 40]])
def test_the_next_name_server_helps_out(first, broker):
    with (
        NameServer(first) as bad,
        NameServer(right) as good,
        looking(broker.port, bad.name, good.name) as rig,
    ):
        rig.up()
        assert len(bad.asked) == 1


def test_the_next_name_server_helps_out_where_nobody_listens(broker):
    with NameServer(right) as good, looking(broker.port, dead(), good.name) as rig:
        rig.up()


def test_without_a_name_server_the_words_say_what_to_do(broker):
    with looking(broker.port) as rig:
        assert rig.down(1) == "no name server known to look pond.test up: set network.dns"
    with looking(broker.port, "0.0.0.0") as rig:
        assert "no name server known" in rig.down(1)
    for host in ("pond.local", "Pond.local."):
        with looking(broker.port, dead(), host=host) as rig:
            assert rig.down(1) == "pond.local is no name for a name server: use the address"


def test_an_answer_holds_as_long_as_it_says_and_is_asked_for_again_then(broker):
    with NameServer(right) as server, looking(broker.port, server.name) as rig:
        rig.up()
        rig.order("advance", ms=20000)
        rig.order("give_up")
        rig.up(2)
        assert len(server.asked) == 1
        rig.order("advance", ms=20000)
        rig.order("advance", ms=20000)
        rig.order("give_up")
        rig.up(3)
        assert len(server.asked) == 2


def test_the_last_address_serves_when_no_name_server_helps(broker):
    with NameServer(right) as server, looking(broker.port, server.name) as rig:
        rig.up()
        server.play = silent
        for n in range(2, 4):
            rig.order("advance", ms=20000)
            rig.order("advance", ms=20000)
            rig.order("advance", ms=21000)
            rig.order("give_up")
            rig.up(n)
        rig.order("put")
        rig.delivered(1)
        assert rig.lines("does not answer (ETIMEDOUT); trying its last address, 127.0.0.1")


def test_of_several_addresses_a_dead_one_gives_way_and_the_one_that_serves_is_kept(broker):
    def several(query):
        turn[0] += 1
        return [
            address(query, *(["127.0.0.2", HOST] if turn[0] % 2 else [HOST, "127.0.0.2"])).pack()
        ]

    turn = [0]
    with (
        NameServer(several) as server,
        looking(broker.port, server.name, connect_timeout_s=10) as rig,
    ):
        rig.up()
        assert rig.stats()["attempts"] == 2
        for n in range(2, 6):
            for _ in range(4):
                rig.order("advance", ms=19000)
            rig.order("give_up")
            rig.up(n)
        assert rig.stats()["attempts"] == 6
        assert len(server.asked) == 5


def test_a_slow_name_server_has_most_of_the_time_in_the_second_round(broker):
    def slow(query):
        turn[0] += 1
        if turn[0] % 2:
            return []
        time.sleep(1.3)  # of 1.6 s in that round, and of 1.2 s were the two alike
        return right(query)

    turn = [0]
    with (
        NameServer(slow) as server,
        looking(broker.port, server.name, connect_timeout_s=3) as rig,
    ):
        rig.up()


def test_strays_by_the_hundred_do_not_hide_the_answer(broker):
    def flood(query):
        stray = address(query)
        stray.header.id ^= 1
        return [stray.pack()] * 240 + right(query)

    with (
        NameServer(flood) as server,
        looking(broker.port, server.name, connect_timeout_s=10) as rig,
    ):
        rig.up()
        assert len(server.asked) == 1


def test_L10_looking_up_leaves_no_socket_behind(broker):
    with NameServer(right) as server, looking(broker.port, server.name) as rig:
        rig.up()
        before = rig.open_files()
        for n in range(2, 40):
            server.play = silent if n % 10 == 0 else right
            for _ in range(4):
                rig.order("advance", ms=19000)
            rig.order("give_up")
            rig.up(n)
        assert rig.open_files() == before
        assert len(server.asked) > 38


def test_L10_a_lookup_that_is_given_up_leaves_no_socket_behind(broker):
    with NameServer(silent) as server, looking(broker.port, server.name) as rig:
        for n in range(1, 6):
            rig.until(lambda s: s["state"] == "resolving", "a lookup")
            rig.order("advance", ms=1000)
            assert rig.down(n) == "address of the broker not found within 1 s"
        rig.order("network", up=False)
        rig.until(lambda s: s["state"] == "closed", "the end of the last")
        before = rig.open_files()
        rig.order("network", up=True)
        rig.down(7)
        rig.order("network", up=False)
        rig.until(lambda s: s["state"] == "closed", "the end of the last")
        assert rig.open_files() == before
