"""Commands: what is listed is done once and answered; anything else is refused and harms nobody."""

import json

from firmware.commands import Commands
from millpond.clock import Clock
from millpond.dispatch import ERROR, SUCCESS

TOPIC = "m/pond/cmd"
LIMIT = 2040


class World:
    """Commands with everything around them: operations, replies and time by hand."""

    def __init__(self, acknowledges=True):
        self.ms = 0
        self.did = []
        self.sent = []
        self.waiting = []  # what waits for its acknowledgement
        self.acknowledges = acknowledges
        self.room = True
        self.held = 0
        self.lines = []
        self.commands = Commands(TOPIC, self, Clock(lambda: self.ms), self.publish, LIMIT, self)

    # the operations

    def set(self, key, value, save=False):
        if value == "boom":
            raise RuntimeError("boom")
        if key == "wifi.password":
            raise ValueError("wifi.password: no command may change it")
        self.did.append((key, value, save))
        return {"key": key}

    def status(self, limit):
        assert limit < LIMIT - 300
        self.did.append("status")
        return b'{"link": {"up": true}}'

    def flush(self):
        self.did.append("flush")
        return {"waiting": 3}

    def reboot(self):
        self.did.append("reboot")
        return {"held": self.held}

    def drained(self):
        return not self.held

    # the log

    def debug(self, text):
        self.lines.append(text)

    info = debug

    def exception(self, text, error):
        self.lines.append(text)

    # the way out

    def publish(self, reply, on_complete):
        if not self.room:
            return 0
        assert len(reply) <= LIMIT
        self.sent.append(json.loads(reply))
        self.waiting.append((reply, on_complete))
        return 1

    def told(self, result=SUCCESS):
        while self.waiting:
            reply, on_complete = self.waiting.pop(0)
            on_complete(reply, result, None, None)

    def comes(self, payload, retained=False, dup=False):
        if type(payload) is dict:
            payload = json.dumps(payload)
        if type(payload) is str:
            payload = payload.encode()
        view = memoryview(bytearray(payload))
        self.commands.take(memoryview(TOPIC.encode()), view, retained, dup)

    def work(self, times=1):
        """So many turns of the task; True when the last wanted the reset."""
        leave = False
        for _ in range(times):
            leave = self.commands.work()
            if self.acknowledges:
                self.told()
        return leave

    def answer(self, payload, **flags):
        """What comes back for a message, or None."""
        before = len(self.sent)
        self.comes(payload, **flags)
        self.work(2)
        new = self.sent[before:]
        assert len(new) <= 1
        return new[0] if new else None

    def error(self, payload, **flags):
        refused = self.commands.refused
        answer = self.answer(payload, **flags)
        assert self.commands.refused == refused + 1 and self.commands.last_refusal
        if answer is None:
            return self.commands.last_refusal
        assert answer["ok"] is False and set(answer) == {"id", "ok", "error"}
        return answer["error"]

    def balance(self):
        g = self.commands.gauges()
        late = g["received"] - g["done"] - g["repeated"] - g["refused"] - g["ignored"]
        return late == len(self.commands._queue)


def test_each_op_is_done_and_answered_with_its_id():
    world = World()
    said = {"id": 7, "op": "set", "key": "batch.max_age_ms", "value": 1000}
    assert world.answer(said) == {"id": 7, "ok": True, "result": {"key": "batch.max_age_ms"}}
    assert world.answer({"id": "a-1", "op": "status"}) == {
        "id": "a-1", "ok": True, "result": {"link": {"up": True}},
    }  # fmt: skip
    assert world.answer({"id": 8, "op": "flush"})["result"] == {"waiting": 3}
    saved = {"id": 9, "op": "set", "key": "log.level", "value": "info", "save": True}
    assert world.answer(saved)["ok"]
    assert world.did == [
        ("batch.max_age_ms", 1000, False), "status", "flush", ("log.level", "info", True),
    ]  # fmt: skip
    assert world.commands.done == 4 and world.commands.refused == 0 and world.balance()


def test_nothing_is_done_where_the_message_is_received():
    world = World()
    world.comes({"id": 7, "op": "flush"})
    world.comes("{{{{")
    assert world.did == [] and world.sent == [] and world.commands.refused == 0


def test_a_message_on_another_topic_is_none_of_ours():
    world = World()
    world.commands.take(memoryview(b"m/pond/other"), memoryview(b'{"id":1,"op":"flush"}'), 0, False)
    world.work(2)
    assert world.commands.received == 0 and world.did == []


HOSTILE = (
    (b"", "value expected"),
    (b"\xff\xfe\x00binary", "UTF-8"),
    (b'{"id":"\xed\xa0\x80","op":"flush"}', "UTF-8"),
    (b"\x00" * 300, "value expected"),
    (b"[" * 380, "8 levels"),
    (b'{"id":1,"op":' + b"[" * 300, "8 levels"),
    (b'{"a":' * 70, "8 levels"),
    (b"flush", "value expected"),
    (b'"flush"', "an object"),
    (b"[1]", "an object"),
    (b"null", "an object"),
    (b'{"op":"flush"}', "id: "),
    (b'{"id":null,"op":"flush"}', "id: "),
    (b'{"id":true,"op":"flush"}', "id: "),
    (b'{"id":1.5,"op":"flush"}', "id: "),
    (b'{"id":{"a":1},"op":"flush"}', "id: "),
    (b'{"id":[1],"op":"flush"}', "id: "),
    (b'{"id":"","op":"flush"}', "id: "),
    (b'{"id":"' + b"x" * 41 + b'","op":"flush"}', "id: "),
    (b'{"id":' + b"9" * 300 + b"}", "30 characters"),
    (b'{"id":1,"id":2,"op":"flush"}', "second time"),
    (b'{"id":1,"op":"flush"', "expected"),
    (b'{"id":1,"op":"flush"}{"id":2}', "nothing more"),
    (b"{'id':1,'op':'flush'}", "double quotes"),
)

ANSWERED = (
    ({"id": 1}, "op: one of flush, reboot, set, status expected"),
    ({"id": 1, "op": 5}, "op: one of"),
    ({"id": 1, "op": None}, "op: one of"),
    ({"id": 1, "op": "statsu"}, 'op "statsu": unknown, did you mean status?'),
    ({"id": 1, "op": "re-boot"}, "did you mean reboot?"),
    ({"id": 1, "op": "FLUSH"}, "unknown"),
    ({"id": 1, "op": "x" * 300}, "unknown"),
    ({"id": 1, "op": "__init__"}, "unknown"),
    ({"id": 1, "op": "drained"}, "unknown"),
    ({"id": 1, "op": "\0\x1b[2J"}, "unknown"),
    ({"id": 1, "op": "set", "value": 5}, "key: missing, set needs it"),
    ({"id": 1, "op": "set", "key": "log.level"}, "value: missing, set needs it"),
    ({"id": 1, "op": "set", "key": 5, "value": 5}, "key: text expected"),
    ({"id": 1, "op": "set", "key": ["a"], "value": 5}, "key: text expected"),
    ({"id": 1, "op": "set", "key": "a", "value": 5, "save": 1}, "save: true or false expected"),
    ({"id": 1, "op": "set", "key": "a", "value": 5, "saev": True}, "saev: set has no such field"),
    ({"id": 1, "op": "flush", "key": "a"}, "key: flush has no such field"),
    ({"id": 1, "op": "set", "key": "wifi.password", "value": "x"}, "no command may change it"),
)  # fmt: skip


def test_hostile_input_without_an_id_is_refused_and_counted():
    world = World()
    for payload, reason in HOSTILE:
        assert reason in world.error(payload), payload
        assert world.sent == [] and world.did == []
    assert world.commands.refused == len(HOSTILE) and world.balance()
    assert world.answer({"id": 1, "op": "flush"})["ok"]


def test_hostile_input_with_an_id_is_answered_with_the_reason():
    world = World()
    for payload, reason in ANSWERED:
        assert reason in world.error(payload), payload
        assert world.sent[-1]["id"] == 1 and world.did == []
    assert len(world.sent) == len(ANSWERED) and world.balance()


def test_a_reason_is_cut_so_that_its_reply_fits_whatever_was_sent():
    world = World()
    for ident in ("\x01" * 40, "\u20ac" * 13, 10**29, -(10**28)):
        error = world.error(
            json.dumps({"id": ident, "op": "\x01" * 40}).encode()[:384]
            if type(ident) is not str
            else {"id": ident, "op": "set", "key": "k", "value": 1, "\x01" * 9: 1}
        )
        assert len(error) <= 160 and world.sent[-1]["id"] == ident


def test_what_is_too_large_is_ignored_and_counted():
    world = World()
    world.comes(b'{"id":1,"op":"flush"' + b" " * 364 + b"}")
    world.work(2)
    assert world.commands.ignored == 1 and world.did == [] and world.sent == []
    world.comes(b'{"id":1,"op":"flush"' + b" " * 363 + b"}")
    world.work(2)
    assert world.commands.ignored == 1 and world.did == ["flush"] and world.balance()


def test_a_retained_command_is_refused_whatever_it_is():
    world = World()
    for op in ("set", "status", "flush", "reboot"):
        assert "retained" in world.error({"id": 1, "op": op}, retained=True)
    assert world.did == [] and not world.work()


def test_an_operation_that_fails_is_answered_logged_and_hurts_nobody():
    world = World()
    error = world.error({"id": 1, "op": "set", "key": "a", "value": "boom"})
    assert error == "it failed: RuntimeError"
    assert world.lines[0] == "command 1 failed"
    assert world.answer({"id": 2, "op": "flush"})["ok"]


def test_D17_one_reply_is_on_its_way_at_a_time_and_order_is_kept():
    world = World(acknowledges=False)
    for n in range(5):
        world.comes({"id": n, "op": "flush"})
    world.work(10)
    assert [answer["id"] for answer in world.sent] == [0]
    for n in range(1, 5):
        world.told()
        world.work(3)
        assert [answer["id"] for answer in world.sent] == list(range(n + 1))


def test_a_reply_waits_where_it_cannot_be_tracked_now_and_the_command_is_done_once():
    world = World()
    world.room = False
    world.comes({"id": 1, "op": "flush"})
    world.work(20)
    assert world.did == ["flush"] and world.sent == []
    world.room = True
    world.work()
    assert world.did == ["flush"] and world.sent[0]["id"] == 1
    assert world.commands.unanswered == 0


def test_a_flood_is_answered_busy_then_ignored_and_every_one_is_counted():
    world = World()
    for n in range(1000):
        world.comes({"id": n, "op": "flush"})
    assert world.commands.ignored == 984 and world.balance()
    world.work(100)
    assert [answer["ok"] for answer in world.sent] == 12 * [True] + 4 * [False]
    assert world.sent[-1] == {"id": 15, "ok": False, "error": "busy; send it again later"}
    assert world.did == 12 * ["flush"]
    g = world.commands.gauges()
    assert (g["received"], g["done"], g["refused"], g["ignored"]) == (1000, 12, 4, 984)


def test_without_acknowledgements_no_more_than_a_few_replies_are_made():
    world = World(acknowledges=False)
    for n in range(12):
        world.comes({"id": n, "op": "flush"})
    for _ in range(200):
        world.ms += 1000
        world.work(2)
    assert len(world.sent) == 4 and world.did == 4 * ["flush"]
    assert world.commands.refused == 8 and "waited" in world.commands.last_refusal
    assert world.balance()
    world.told(ERROR)
    assert world.commands.unanswered == 4
    world.acknowledges = True
    assert world.answer({"id": "after", "op": "flush"})["ok"]


def test_a_repeat_gets_the_same_answer_marked_and_does_nothing():
    world = World()
    said = {"id": 7, "op": "set", "key": "log.level", "value": "debug"}
    first = world.answer(said)
    again = world.answer(said, dup=True)
    assert again == dict(first, repeated=True)
    assert len(world.did) == 1 and world.commands.repeated == 1 and world.balance()
    assert "each needs its own" in world.error(dict(said, value="info"))
    assert world.answer(dict(said, id="7"))["ok"] and len(world.did) == 2


def test_a_refused_command_and_status_may_come_again_under_their_id():
    world = World()
    world.error({"id": 7, "op": "set", "key": "wifi.password", "value": ""})
    assert world.answer({"id": 7, "op": "flush"})["ok"]
    for _ in range(3):
        assert "repeated" not in world.answer({"id": 7, "op": "status"})


def test_only_the_last_ids_are_remembered():
    world = World()
    for n in range(100):
        world.answer({"id": n, "op": "flush"})
    assert len(world.commands._remembered) == 8
    assert world.answer({"id": 92, "op": "flush"})["repeated"] is True
    assert "repeated" not in world.answer({"id": 91, "op": "flush"})


def test_reboot_is_answered_first_and_comes_when_all_is_delivered():
    world = World(acknowledges=False)
    world.held = 5
    world.comes({"id": 1, "op": "reboot"})
    assert not world.work(5)
    assert world.sent == [{"id": 1, "ok": True, "result": {"held": 5}}]
    world.held = 0
    assert not world.work(5)  # the answer is not acknowledged yet
    world.told()
    world.held = 1
    assert not world.work(5)
    world.held = 0
    assert world.work() is True
    assert not world.work(5)


def test_reboot_waits_for_nobody_longer_than_10_s():
    world = World(acknowledges=False)
    world.held = 5
    world.comes({"id": 1, "op": "reboot"})
    for _ in range(10):
        assert not world.work()
        world.ms += 1000
    assert world.work() is True


def test_reboot_happens_once_for_its_id_and_nothing_else_happens_meanwhile():
    world = World()
    world.held = 5
    world.comes({"id": 1, "op": "reboot"})
    world.comes({"id": 1, "op": "reboot"}, dup=True)
    world.comes({"id": 2, "op": "flush"})
    world.work(6)
    assert world.did == ["reboot"]
    assert [answer["ok"] for answer in world.sent] == [True, False, False]


def test_after_a_reset_a_reboot_that_is_marked_as_sent_before_is_refused():
    world = World()
    assert "done already" in world.error({"id": 1, "op": "reboot"}, dup=True)
    assert world.did == [] and not world.work()
    assert world.answer({"id": 2, "op": "flush"}, dup=True)["ok"]


def test_a_reboot_that_fails_leaves_everything_as_it_was():
    world = World()

    def reboot():
        raise ValueError("this board has no way to reset itself")

    world.reboot = reboot
    world.comes({"id": 1, "op": "reboot"})
    assert not any([world.work() for _ in range(5)])
    assert "no way" in world.sent[0]["error"]
    assert world.answer({"id": 2, "op": "flush"})["ok"]


def test_a_callback_of_a_reply_long_gone_changes_nothing():
    world = World(acknowledges=False)
    world.comes({"id": 1, "op": "flush"})
    world.work()
    world.ms += 11000
    world.comes({"id": 2, "op": "flush"})
    world.work(2)
    late = world.waiting.pop(0)
    late[1](late[0], SUCCESS, None, None)
    world.work()
    assert len(world.waiting) == 1 and world.commands._queue.strays == 1


def test_S8_after_close_nothing_is_obeyed_any_more():
    world = World(acknowledges=False)
    for n in range(3):
        world.comes({"id": n, "op": "flush"})
    world.work()
    world.commands.close()
    world.comes({"id": 9, "op": "flush"})
    world.work(3)
    world.told(ERROR)
    assert world.did == ["flush"] and world.commands.ignored == 1
    assert len(world.commands._queue) == 0
