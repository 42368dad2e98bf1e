"""What each fault of the plan does to the stage. The caller restores the proxy after each."""

import socket

from tests_host.chaos.plan import Fault
from tests_host.chaos.stage import DEVICE, PATIENCE_S, Stage
from tools.mqtt_packets import CONNACK, PUBACK, PUBCOMP, PUBLISH, PUBREC
from tools.proxy import DOWN, UP

# A page of 2 KB at a byte a millisecond takes longer than the board waits for its acknowledgement:
# nothing would ever arrive, so that goes on for a while only, and without a pause where we wait.
_SPLIT_S = 0.001
_LATE_S = 0.05
_DATABASE = "mosquitto.db"


def act(stage: Stage, fault: Fault) -> None:
    """Make the fault happen, from beginning to end."""
    if fault.under == "split":
        stage.proxy.split(0)
    elif fault.under == "delay":
        stage.proxy.delay(_LATE_S)
    _ACTS[fault.kind](stage, fault)
    stage.proxy.restore()


def _for_a_while(begin):
    def acted(stage: Stage, fault: Fault) -> None:
        begin(stage.proxy)
        stage.watch.run_for(fault.ms / 1000)

    return acted


def _reset(stage: Stage, _fault: Fault) -> None:
    stage.proxy.reset()


def _reset_after(direction: str):
    def acted(stage: Stage, fault: Fault) -> None:
        passed = stage.proxy.bytes
        enough = passed[direction] + fault.count
        stage.proxy.reset_after(fault.count, direction)
        stage.watch.run_until(lambda: passed[direction] >= enough, PATIENCE_S, "the byte")

    return acted


def _half_open(direction: str):
    def acted(stage: Stage, fault: Fault) -> None:
        stage.proxy.drop(direction)
        stage.watch.run_for(fault.ms / 1000)
        # Bytes never vanish out of the middle of a connection that lives on.
        stage.proxy.reset()

    return acted


def _silence(stage: Stage, fault: Fault) -> None:
    stage.proxy.silence()
    stage.proxy.reset()
    stage.watch.run_for(fault.ms / 1000)


def _delay(stage: Stage, fault: Fault) -> None:
    direction = (UP, DOWN, None)[fault.count - 1]
    stage.proxy.delay(fault.ms / 1000, direction)
    stage.watch.run_for(fault.ms / 1000)


def _answer(stage: Stage, fault: Fault) -> int:
    """An acknowledgement that a delivery brings."""
    if stage.qos == 1:
        return PUBACK
    return (PUBREC, PUBCOMP)[fault.count % 2]


def _swallow(stage: Stage, direction: str, packet: int) -> None:
    taken = stage.proxy.swallowed
    before = taken[direction]
    stage.proxy.swallow(direction, packet)
    stage.watch.run_until(lambda: taken[direction] > before, PATIENCE_S, "a packet to swallow")


def _swallow_ack(stage: Stage, fault: Fault) -> None:
    _swallow(stage, DOWN, _answer(stage, fault))
    if fault.ms % 2:
        stage.proxy.reset()


def _swallow_publish(stage: Stage, _fault: Fault) -> None:
    _swallow(stage, UP, PUBLISH)


def _swallow_connack(stage: Stage, _fault: Fault) -> None:
    stage.proxy.reset()
    _swallow(stage, DOWN, CONNACK)


def _repeat_ack(stage: Stage, fault: Fault) -> None:
    done = stage.proxy.repeated
    enough = done[DOWN] + fault.count
    stage.proxy.repeat(DOWN, _answer(stage, fault), fault.count)
    stage.watch.run_until(lambda: done[DOWN] >= enough, PATIENCE_S, "a packet to repeat")


def _freeze(stage: Stage, fault: Fault) -> None:
    stage.broker.freeze()
    stage.watch.run_for(fault.ms / 1000)
    stage.broker.thaw()


def _kill(stage: Stage, fault: Fault) -> None:
    stage.quiet(fault)
    stage.broker.save()
    stage.broker.kill()
    stage.watch.run_for(fault.ms / 1000)
    stage.broker.start()


def _kill_and_forget(stage: Stage, fault: Fault) -> None:
    stage.quiet(fault)
    stage.broker.kill()
    (stage.broker.directory / _DATABASE).unlink(missing_ok=True)
    stage.broker.start()
    stage.catch_up()  # what comes before the subscriber is back would go to nobody


def _restart(stage: Stage, fault: Fault) -> None:
    stage.quiet(fault)
    stage.broker.restart()


def _take_over(clean: bool):
    def acted(stage: Stage, fault: Fault) -> None:
        rest = b"\x00\x04MQTT\x04" + bytes((clean << 1, 0, 60, 0, len(DEVICE))) + DEVICE.encode()
        where = stage.broker.host, stage.broker.port
        with socket.create_connection(where, timeout=PATIENCE_S) as intruder:
            intruder.sendall(bytes((CONNACK - 1 << 4, len(rest))) + rest)
            assert intruder.recv(4)[3:] == b"\x00", "the intruder is not let in"
            stage.watch.run_for(fault.ms / 1000)

    return acted


_ACTS = {
    "refuse": _for_a_while(lambda proxy: proxy.refuse()),
    "reset": _reset,
    "reset up": _reset_after(UP),
    "reset down": _reset_after(DOWN),
    "stall": _for_a_while(lambda proxy: proxy.stall()),
    "half open up": _half_open(UP),
    "half open down": _half_open(DOWN),
    "silence": _silence,
    "split": _for_a_while(lambda proxy: proxy.split(_SPLIT_S)),
    "delay": _delay,
    "swallow ack": _swallow_ack,
    "swallow publish": _swallow_publish,
    "swallow connack": _swallow_connack,
    "repeat ack": _repeat_ack,
    "freeze": _freeze,
    "kill": _kill,
    "kill, session lost": _kill_and_forget,
    "restart": _restart,
    "take-over": _take_over(clean=False),
    "take-over, clean": _take_over(clean=True),
}
