"""Nothing piles up: sockets, heap, or what the poller holds, over hundreds of connections."""

import itertools

from tests_host.link.harness import Rig
from tests_host.link.scripted import CONNACK_NEW, Scripted, answer, answer_and_close, broker

FAILURES = 200
STACK_BYTES = 512  # what the collector may find on the stack at one moment and not at another


def reset_at_once(end):
    end.packet()
    end.reset()


KINDS = [
    answer_and_close(b"\x20\x02\x00\x03"),
    answer_and_close(b"\x20\x02\x00\x05"),
    answer_and_close(b"\x15\x03\x01"),
    answer_and_close(b""),
    answer_and_close(b"\x20\x02"),
    answer_and_close(CONNACK_NEW + b"\x40"),
    answer_and_close(CONNACK_NEW + b"\xf0\x00"),
    reset_at_once,
    lambda end: None,
    lambda end: end.reset(),
]


def test_L10_mp_6455_every_socket_is_closed_on_every_path():
    """Report: mp#6455, mp#5929."""
    plays = list(itertools.islice(itertools.cycle(KINDS), FAILURES))
    with Scripted(broker, *plays, broker) as server, Rig(server.port, backoff_ms=[1, 1]) as rig:
        rig.up()
        before = rig.open_files()
        rig.order("give_up")
        rig.wait(lambda: len(rig.downs) >= FAILURES + 1, "the failed connections")
        rig.order("put", n=3)
        rig.delivered(3)
        assert rig.open_files() == before
        assert rig.stats()["attempts"] == FAILURES + 2


def test_L10_sockets_of_refused_and_overdue_connections(proxy):
    """Report: mp#6455, mp#5929."""
    with Rig(proxy.port, backoff_ms=[1, 1]) as rig:
        rig.up()
        before = rig.open_files()
        proxy.refuse()
        rig.wait(lambda: len(rig.downs) >= 100, "refused connections")
        proxy.silence()
        for _ in range(30):
            attempts = rig.until(lambda s: s["state"] == "greeting", "a CONNECT on its way")[
                "attempts"
            ]
            rig.order("advance", ms=10000)
            rig.until(lambda s, n=attempts: s["attempts"] > n, "the deadline")
        assert any("no CONNACK" in why for why, _ in rig.downs)
        proxy.refuse()
        proxy.restore()
        rig.until(lambda s: s["up"], "the link up")
        assert rig.open_files() == before


def test_L10_a_connection_given_up_while_a_page_leaves():
    """The writing task and the waiting reader both hold on to the socket."""

    def deaf(end):
        end.packet()
        end.send(CONNACK_NEW)
        end.sock.recv(1)
        rig.wait(lambda: len(rig.downs) > len(server.packets) - 1, "the link given up")

    with (
        Scripted(*[deaf] * 20, broker, receive_buffer=2048) as server,
        Rig(server.port, send_buffer=2048, backoff_ms=[1, 1]) as rig,
    ):
        rig.order("put", n=1, size=4088)
        before = (
            rig.until(lambda s: s["sending"] == "leaving", "a page half gone") and rig.open_files()
        )
        for n in range(1, 21):
            rig.until(
                lambda s, n=n: s["sending"] == "leaving" and s["connects"] == n, "a page half gone"
            )
            rig.order("give_up")
            rig.down(n)
        rig.delivered(1)
        assert rig.open_files() == before


def test_memory_does_not_grow_over_200_reconnections(proxy, judge, rig):
    """Report: mp#6455, mp#5929."""

    def reconnect(times):
        for _ in range(times):
            n = rig.stats()["connects"]
            rig.order("put", n=2)
            rig.order("give_up")
            rig.until(lambda s, n=n: s["connects"] > n and not s["held"], "the next connection")

    rig.up()
    reconnect(20)
    before = rig.order("memory")["used"]
    reconnect(FAILURES)
    assert rig.order("memory")["used"] - before <= STACK_BYTES
    judge.has_all(2 * (FAILURES + 20), repeats=FAILURES + 20)


def test_memory_does_not_grow_over_500_failed_connections():
    """Report: mp#6455, mp#5929, esp-idf#5668."""

    def used(attempts):
        rig.until(lambda s: s["attempts"] == attempts and s["state"] == "greeting", "a mute broker")
        return rig.order("memory")["used"]

    mute = answer(b"")
    plays = list(itertools.islice(itertools.cycle(KINDS), 600))
    plays.insert(100, mute)
    with Scripted(*plays, mute) as server, Rig(server.port, backoff_ms=[1, 1]) as rig:
        before = used(101)
        rig.order("give_up")
        assert used(602) - before <= STACK_BYTES
