"""tools.broker against both real brokers: it comes up, goes away, freezes and comes back."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import paho.mqtt.client as mqtt
import pytest

from tools.broker import AMQTT, MOSQUITTO, Broker, BrokerError, mosquitto_config
from tools.loopback import HOST, accepts, free_port, wait_until

BOTH = pytest.mark.parametrize("kind", [MOSQUITTO, AMQTT])
WAIT_S = 20


class Inbox:
    """A paho client that subscribes to everything and keeps what arrives, in order."""

    def __init__(self, broker, client_id="inbox", clean=True, user=None, password=None):
        self.got = []
        self.reasons = []
        self.present = False
        self.subscribed = threading.Event()
        self.lost = threading.Event()
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, clean_session=clean
        )
        self.client.reconnect_delay_set(1, 1)
        if user:
            self.client.username_pw_set(user, password)
        self.client.on_connect = self._on_connect
        self.client.on_subscribe = lambda *_: self.subscribed.set()
        self.client.on_disconnect = lambda *_: self.lost.set()
        self.client.on_message = lambda _c, _u, m: self.got.append((m.topic, m.payload))
        self.client.connect_async(broker.host, broker.port, keepalive=60)
        self.client.loop_start()

    def _on_connect(self, client, _userdata, flags, reason, _properties):
        self.reasons.append(reason)
        self.present = flags.session_present
        if not reason.is_failure:
            client.subscribe("t/#", 1)

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.client.disconnect()
        self.client.loop_stop()


def publish(client, count, start=0):
    for n in range(start, start + count):
        info = client.publish("t/x", b"%d" % n, qos=1)
    info.wait_for_publish(WAIT_S)


@BOTH
def test_delivers_qos1_in_order(kind, tmp_path):
    with Broker(tmp_path, kind=kind) as broker, Inbox(broker) as inbox:
        assert broker.kind == kind
        assert inbox.subscribed.wait(WAIT_S)
        publish(inbox.client, 300)
        wait_until(lambda: len(inbox.got) >= 300, WAIT_S, "300 messages")
        assert [int(payload) for _, payload in inbox.got] == list(range(300))


@BOTH
def test_stop_frees_the_port_and_leaves_no_process(kind, tmp_path):
    broker = Broker(tmp_path, kind=kind).start()
    pid, port = broker.pid, broker.port
    assert accepts(port)
    broker.close()
    assert not accepts(port)
    assert broker.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@BOTH
def test_restart_keeps_the_port_and_clients_come_back(kind, tmp_path):
    with Broker(tmp_path, kind=kind) as broker, Inbox(broker) as inbox:
        assert inbox.subscribed.wait(WAIT_S)
        port, pid = broker.port, broker.pid
        inbox.subscribed.clear()
        broker.restart()
        assert (broker.port, broker.running) == (port, True)
        assert broker.pid != pid
        assert inbox.lost.wait(WAIT_S)
        assert inbox.subscribed.wait(WAIT_S)


def test_listens_on_loopback_only(tmp_path):
    with Broker(tmp_path) as broker, socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(OSError):
            other.connect(("127.0.0.2", broker.port))


def test_freeze_keeps_connections_and_answers_nothing(tmp_path):
    connect = bytes.fromhex("100d00044d5154540402003c000178")
    with Broker(tmp_path, kind=MOSQUITTO) as broker:
        broker.freeze()
        with socket.create_connection((HOST, broker.port), timeout=0.3) as client:
            client.sendall(connect)
            with pytest.raises(TimeoutError):
                client.recv(4)
            assert broker.running
            broker.thaw()
            client.settimeout(WAIT_S)
            assert client.recv(4) == bytes.fromhex("20020000")


def test_frozen_broker_can_be_stopped(tmp_path):
    broker = Broker(tmp_path).start()
    broker.freeze()
    began = time.monotonic()
    broker.close()
    assert time.monotonic() - began < 9
    assert not broker.running


@pytest.mark.parametrize("persistence", [True, False])
def test_persistence_keeps_a_session_over_a_restart(persistence, tmp_path):
    with Broker(tmp_path, kind=MOSQUITTO, persistence=persistence) as broker:
        with Inbox(broker, client_id="keeper", clean=False) as keeper:
            assert keeper.subscribed.wait(WAIT_S)
        with Inbox(broker, client_id="writer") as writer:
            assert writer.subscribed.wait(WAIT_S)
            publish(writer.client, 1200)
        broker.restart()
        with Inbox(broker, client_id="keeper", clean=False) as keeper:
            if persistence:
                wait_until(lambda: len(keeper.got) >= 1200, WAIT_S, "the stored messages")
            assert keeper.subscribed.wait(WAIT_S)
            expected = list(range(1200)) if persistence else []
            assert [int(payload) for _, payload in keeper.got] == expected


@pytest.mark.parametrize("saved", [True, False])
def test_a_session_outlives_a_kill_where_it_was_saved(saved, tmp_path):
    with Broker(tmp_path, kind=MOSQUITTO, port=free_port(), persistence=True) as broker:
        with Inbox(broker, client_id="keeper", clean=False) as keeper:
            assert keeper.subscribed.wait(WAIT_S)
        if saved:
            broker.save()
            broker.save()
        broker.kill()
        broker.start()
        with Inbox(broker, client_id="keeper", clean=False) as keeper:
            assert keeper.subscribed.wait(WAIT_S)
            assert keeper.present == saved


def test_kill_ends_it_and_its_connections(tmp_path):
    broker = Broker(tmp_path, kind=MOSQUITTO).start()
    with Inbox(broker) as inbox:
        assert inbox.subscribed.wait(WAIT_S)
        broker.kill()
        assert inbox.lost.wait(WAIT_S)
        assert not broker.running
        assert not accepts(broker.port)
    broker.close()


def test_users_shut_out_strangers(tmp_path):
    with Broker(tmp_path, kind=MOSQUITTO, users={"pond": "carp"}) as broker:
        with Inbox(broker, user="pond", password="carp") as known:
            assert known.subscribed.wait(WAIT_S)
        with Inbox(broker, user="pond", password="pike") as stranger:
            wait_until(lambda: stranger.reasons, WAIT_S, "an answer to the wrong password")
            assert stranger.reasons[0].is_failure


def test_a_port_that_is_taken_is_reported_with_the_log(tmp_path):
    with socket.socket() as taken:
        taken.bind((HOST, free_port()))
        broker = Broker(tmp_path, kind=MOSQUITTO, port=taken.getsockname()[1])
        with pytest.raises(BrokerError, match="(?s)ended at once.*Address already in use"):
            broker.start()
        broker.close()


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(ValueError, match="'emqx'"):
        Broker(tmp_path, kind="emqx")
    with pytest.raises(ValueError, match="amqtt"):
        Broker(tmp_path, kind=AMQTT, persistence=True)


def test_configuration_text(tmp_path):
    text = mosquitto_config(1999, tmp_path, persistence=True, nodelay=False, extra=["x_y 1"])
    lines = text.splitlines()
    assert lines[0] == "listener 1999 127.0.0.1"
    assert {"persistence true", "set_tcp_nodelay false", "allow_anonymous true"} <= set(lines)
    assert lines[-1] == "x_y 1"
    assert "set_tcp_nodelay true" in mosquitto_config(1999, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent death signal")
def test_broker_ends_when_its_owner_is_killed(tmp_path):
    script = (
        "import time; from tools.broker import Broker;"
        f"b = Broker({str(tmp_path)!r}).start(); print(b.pid, b.port, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with owner.stdout:
        pid, port = map(int, owner.stdout.readline().split())
    assert accepts(port)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    try:
        wait_until(lambda: not accepts(port), WAIT_S, f"the end of broker {pid}")
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise
