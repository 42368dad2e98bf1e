"""The command `reboot` on a virtual board: machine.reset, and the program runs again."""

import contextlib
import json

import pytest

from tools.broker import MOSQUITTO, Broker
from tools.command import Exchange, Failed
from tools.subscriber import Subscriber
from tools.vboard import VirtualBoard, make_flash

WAIT_S = 30


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "broker", kind=MOSQUITTO) as made:
        yield made


@pytest.fixture
def board(tmp_path, broker):
    """A virtual board with the real program, connected to the broker."""
    config = json.dumps({"mqtt": {"host": broker.host, "port": broker.port}})
    made = VirtualBoard(make_flash(tmp_path / "flash", config=config, built=tmp_path / "built"))
    made.start()
    try:
        made.wait_for("link up", timeout=WAIT_S)
        yield made
    finally:
        made.stop()


def give(broker, op, seconds=WAIT_S, **fields):
    exchange = Exchange("millpond", "millpond-1", {"op": op, **fields})
    with Subscriber(broker.host, broker.port, exchange.topics()) as subscriber:
        return exchange.run(subscriber, seconds)


def listens(broker):
    """Wait until the board has subscribed: until it answers."""
    for _ in range(WAIT_S):
        with contextlib.suppress(Failed):
            return give(broker, "status", seconds=1)
    raise AssertionError("no answer")


def test_a_board_saves_is_rebooted_and_is_back_with_what_was_saved(board, broker):
    listens(broker)
    assert give(broker, "set", key="health.period_s", value=7, save=True)["saved"] is True
    mark = board.mark()
    give(broker, "reboot")
    board.wait_for(r"reset by a command", since=mark, timeout=WAIT_S)
    board.wait_for(r"rst: reset(.*\r\n)*.*link up", since=mark, timeout=WAIT_S)
    assert board.boots == 2
    listens(broker)
    with pytest.raises(Failed, match="a whole number from 1 to 86400 expected"):
        give(broker, "set", key="health.period_s", value=0)
    board.type("\x03")
    board.wait_for(r">>> $", timeout=WAIT_S)
    board.type("app.config['health.period_s']\r")
    board.wait_for(r"\n7\r\n", since=mark, timeout=WAIT_S)
