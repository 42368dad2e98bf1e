"""tools.proxy: every fault as the ends of a connection see it, and through real mosquitto."""

import contextlib
import errno
import socket
import threading
import time

import paho.mqtt.client as mqtt
import pytest

from tools.broker import MOSQUITTO, Broker
from tools.loopback import HOST, free_port, wait_until
from tools.mqtt_packets import PINGRESP, PUBACK, PUBLISH, PacketFilter
from tools.proxy import DOWN, UP, Proxy

WAIT_S = 15


class Far:
    """A server behind the proxy: keeps its connections, sends only what a test sends."""

    def __init__(self):
        self._listener = socket.create_server((HOST, 0))
        self._listener.settimeout(WAIT_S)
        self.port = self._listener.getsockname()[1]

    def accept(self):
        end, _ = self._listener.accept()
        end.settimeout(WAIT_S)
        return end

    def close(self):
        self._listener.close()


@pytest.fixture
def far():
    with contextlib.closing(Far()) as server:
        yield server


@pytest.fixture
def proxy(far):
    with Proxy(far.port) as made:
        yield made


@pytest.fixture
def pair(far, proxy):
    """A client's end and the server's end of one connection through the proxy."""
    with connect(proxy) as near, far.accept() as end:
        yield near, end


def connect(proxy):
    return socket.create_connection((proxy.host, proxy.port), timeout=WAIT_S)


def receive(end, count):
    got = b""
    while len(got) < count:
        data = end.recv(count - len(got))
        assert data, f"closed after {got!r}"
        got += data
    return got


def assert_silent(end, seconds=0.2):
    end.settimeout(seconds)
    with pytest.raises(TimeoutError):
        end.recv(1)
    end.settimeout(WAIT_S)


def assert_reset(end):
    with pytest.raises(ConnectionResetError):
        while end.recv(4096):
            pass


def test_pass_forwards_both_ways_and_counts(pair, proxy):
    near, end = pair
    near.sendall(b"upward")
    assert receive(end, 6) == b"upward"
    end.sendall(b"down")
    assert receive(near, 4) == b"down"
    proxy.wait_for(lambda p: p.bytes == {UP: 6, DOWN: 4}, WAIT_S)
    assert (proxy.connections, proxy.open) == (1, 1)


def test_pass_forwards_a_megabyte_unchanged(pair):
    near, end = pair
    data = bytes(range(256)) * 4096
    sender = threading.Thread(target=near.sendall, args=(data,))
    sender.start()
    assert receive(end, len(data)) == data
    sender.join()


@pytest.mark.parametrize("closer", [0, 1])
def test_orderly_close_comes_through_after_the_data(closer, pair, proxy):
    pair[closer].sendall(b"last words")
    pair[closer].close()
    other = pair[1 - closer]
    assert receive(other, 10) == b"last words"
    assert other.recv(1) == b""
    proxy.wait_for(lambda p: p.open == 0, WAIT_S)


def test_refuse_resets_old_and_refuses_new(pair, proxy, far):
    near, end = pair
    proxy.refuse()
    assert proxy.open == 0
    assert_reset(near)
    assert_reset(end)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.restore()
    with connect(proxy) as again, far.accept() as end:
        again.sendall(b"x")
        assert receive(end, 1) == b"x"


def test_reset_resets_old_and_lets_in_new(pair, proxy, far):
    near, end = pair
    proxy.reset()
    assert_reset(near)
    assert_reset(end)
    with connect(proxy) as again, far.accept() as end:
        again.sendall(b"x")
        assert receive(end, 1) == b"x"


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_reset_after_cuts_behind_the_nth_byte_once(direction, pair, proxy, far):
    near, end = pair
    sender, receiver = (near, end) if direction == UP else (end, near)
    proxy.reset_after(5, direction)
    sender.sendall(b"abc")
    assert receive(receiver, 3) == b"abc"
    sender.sendall(b"defg")
    assert receive(receiver, 2) == b"de"
    assert_reset(receiver)
    assert_reset(sender)
    with connect(proxy) as again, far.accept() as end:
        again.sendall(b"more than five")
        assert receive(end, 14) == b"more than five"


def test_stall_holds_and_restore_lets_go(pair, proxy, far):
    near, end = pair
    proxy.stall()
    near.sendall(b"held")
    assert_silent(end)
    with connect(proxy) as late:
        late.sendall(b"late")
        proxy.wait_for(lambda p: p.connections == 2, WAIT_S)
        assert proxy.open == 2
        proxy.restore()
        assert receive(end, 4) == b"held"
        with far.accept() as late_end:
            assert receive(late_end, 4) == b"late"


def test_stall_drops_what_a_client_left_behind(pair, proxy, far):
    near, end = pair
    proxy.stall()
    near.sendall(b"never mind")
    near.close()
    with connect(proxy) as late:
        late.sendall(b"never mind either")
    proxy.wait_for(lambda p: p.given_up == 2, WAIT_S)
    assert_silent(end)
    proxy.restore()
    assert_reset(end)
    proxy.wait_for(lambda p: p.open == 0, WAIT_S)
    assert proxy.bytes[UP] == 0


def test_silent_accepts_and_never_answers(pair, proxy):
    near, end = pair
    proxy.silence()
    with connect(proxy) as mute:
        mute.sendall(b"hello?")
        assert_silent(mute)
        near.sendall(b"old one")
        assert receive(end, 7) == b"old one"
        proxy.restore()
        mute.sendall(b"hello??")
        assert_silent(mute)
    proxy.wait_for(lambda p: p.open == 1, WAIT_S)
    assert proxy.bytes[UP] == 7


def test_restore_calls_off_what_was_ordered(pair, proxy):
    near, end = pair
    puback = b"\x40\x02\x00\x01"
    proxy.drop(UP)
    proxy.delay(60)
    proxy.swallow(DOWN, PUBACK)
    proxy.reset_after(1, DOWN)
    proxy.restore()
    near.sendall(b"up")
    assert receive(end, 2) == b"up"
    end.sendall(puback)
    assert receive(near, 4) == puback


def test_split_sends_single_bytes(pair, proxy):
    near, end = pair
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    proxy.split(pause_s=0.02)
    near.sendall(b"abcdef")
    pieces = [end.recv(100)]
    while b"".join(pieces) != b"abcdef":
        pieces.append(end.recv(100))
    assert pieces == [b"a", b"b", b"c", b"d", b"e", b"f"]
    proxy.split(None)
    near.sendall(b"whole")
    assert end.recv(100) == b"whole"


def test_delay_is_added_and_keeps_order(pair, proxy):
    near, end = pair
    proxy.delay(0.3, UP)
    began = time.monotonic()
    near.sendall(b"one")
    end.sendall(b"quick")
    assert receive(near, 5) == b"quick"
    assert time.monotonic() - began < 0.3
    near.sendall(b"two")
    assert receive(end, 6) == b"onetwo"
    assert time.monotonic() - began >= 0.3


def test_drop_loses_one_direction_only(pair, proxy):
    near, end = pair
    proxy.drop(DOWN)
    end.sendall(b"lost")
    near.sendall(b"through")
    assert receive(end, 7) == b"through"
    assert_silent(near)
    proxy.drop(DOWN, False)
    end.sendall(b"back")
    assert receive(near, 4) == b"back"
    proxy.wait_for(lambda p: p.bytes == {UP: 7, DOWN: 4}, WAIT_S)


def test_swallow_takes_one_packet_of_its_type(pair, proxy):
    near, end = pair
    proxy.swallow(DOWN, PUBACK)
    pingresp, first, second = b"\xd0\x00", b"\x40\x02\x00\x01", b"\x40\x02\x00\x02"
    for piece in (pingresp + first[:1], first[1:] + second + pingresp):
        end.sendall(piece)
    assert receive(near, 8) == pingresp + second + pingresp
    assert proxy.swallowed == {UP: 0, DOWN: 1}
    proxy.wait_for(lambda p: p.packets[DOWN] == {PUBACK: 1, PINGRESP: 2}, WAIT_S)


def test_repeat_sends_one_packet_of_its_type_twice(pair, proxy):
    near, end = pair
    proxy.repeat(DOWN, PUBACK)
    end.sendall(b"\xd0\x00\x40\x02\x00\x01\x40\x02\x00\x02")
    assert receive(near, 14) == b"\xd0\x00" + 2 * b"\x40\x02\x00\x01" + b"\x40\x02\x00\x02"
    proxy.wait_for(lambda p: p.packets[DOWN][PUBACK] == 3, WAIT_S)
    assert proxy.repeated == {UP: 0, DOWN: 1}


def test_stall_holds_in_the_middle_of_what_is_split(pair, proxy):
    near, end = pair
    proxy.split(0.01)
    near.sendall(bytes(200))
    assert receive(end, 1) == b"\x00"
    proxy.stall()
    passed = proxy.bytes[UP]
    assert passed < 200
    end.settimeout(0.2)
    with pytest.raises(TimeoutError):
        while True:
            assert end.recv(200)
    assert proxy.bytes[UP] <= passed + 1
    end.settimeout(WAIT_S)
    proxy.restore()
    proxy.wait_for(lambda p: p.bytes[UP] == 200, WAIT_S)


def test_wait_for_names_what_it_waited_for(proxy):
    with pytest.raises(TimeoutError, match=r"a client: not within 0.1 s \(mode pass, 0 conn"):
        proxy.wait_for(lambda p: p.connections, 0.1, "a client")


def test_target_that_is_gone_closes_the_client(proxy, far):
    far.close()
    with pytest.raises(ConnectionResetError), connect(proxy) as near:
        near.recv(1)


def test_close_ends_thread_and_port(far):
    proxy = Proxy(far.port).start()
    with connect(proxy) as near, far.accept():
        proxy.close()
        proxy.close()
        assert_reset(near)
    assert "proxy" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)


def test_bad_arguments_are_named(proxy):
    with pytest.raises(ValueError, match="'sideways'"):
        proxy.drop("sideways")
    with socket.create_server((HOST, free_port())) as taken:
        with pytest.raises(OSError) as raised:
            Proxy(1, port=taken.getsockname()[1]).start()
        assert raised.value.errno == errno.EADDRINUSE


def test_packet_filter_follows_any_split():
    stream = b"\x32\x05\x00\x01t\x00\x01" + b"\x40\x02\x00\x01" + b"\xd0\x00"
    stream += b"\x30\x80\x01" + bytes(128) + b"\x40\x02\x00\x09"
    for size in range(1, len(stream) + 1):
        passing = PacketFilter(lambda _kind: False)
        without = PacketFilter(lambda kind: kind == PUBACK)
        pieces = [stream[n : n + size] for n in range(0, len(stream), size)]
        assert b"".join(map(passing.feed, pieces)) == stream
        assert passing.finished == [PUBLISH, PUBACK, PINGRESP, PUBLISH, PUBACK]
        assert b"".join(map(without.feed, pieces)) == stream[:7] + stream[11:-4]


def test_packet_filter_repeats_a_packet_behind_its_last_byte_in_any_split():
    ack, ping = b"\x40\x02\x00\x07", b"\xd0\x00"
    stream = ping + ack + ping + ack
    for size in range(1, len(stream) + 1):
        orders = iter([False, True])
        twice = PacketFilter(lambda _kind: False, lambda _kind, due=orders: next(due, False))
        pieces = [stream[n : n + size] for n in range(0, len(stream), size)]
        assert b"".join(map(twice.feed, pieces)) == ping + ack + ack + ping + ack
        assert twice.finished == [PINGRESP, PUBACK, PUBACK, PINGRESP, PUBACK]


def test_packet_filter_lets_what_is_no_mqtt_pass():
    noise = b"\x10\xff\xff\xff\xff\x40\x02\x00\x01"
    assert PacketFilter(lambda kind: kind == PUBACK).feed(noise) == noise


def test_a_lost_puback_makes_mosquittos_client_send_again(tmp_path):
    with Broker(tmp_path, kind=MOSQUITTO) as broker, Proxy(broker.port) as proxy:
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="c", clean_session=False)
        client.reconnect_delay_set(1, 1)
        client.connect(proxy.host, proxy.port)
        client.loop_start()
        proxy.swallow(DOWN, PUBACK)
        info = client.publish("t", b"x", qos=1)
        proxy.wait_for(lambda p: p.swallowed[DOWN] == 1, WAIT_S)
        assert not info.is_published()
        proxy.reset()
        wait_until(info.is_published, WAIT_S, "the second PUBACK")
        assert proxy.packets[UP][PUBLISH] == 2
        proxy.wait_for(lambda p: p.packets[DOWN][PUBACK] == 1, WAIT_S)
        client.disconnect()
        client.loop_stop()
