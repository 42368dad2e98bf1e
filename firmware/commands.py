"""Commands: what the broker's clients may order on the cmd topic, and what they are answered.

    {"id": 7, "op": "set", "key": "batch.max_age_ms", "value": 1000}
    {"id": 7, "ok": true, "result": {...}}        or  {"id": 7, "ok": false, "error": "reason"}

A command is an item of a DispatchQueue with one in progress:

    pending --looked at and done--> in progress --its reply acknowledged--> SUCCESS
       |          |                      |--------its reply lost----------> ERROR, unanswered
       |          +--refused, no id to answer-----------------------------> ERROR
       +--------waited too long----------+--------no acknowledgement------> TIMEOUT

`take` runs in the link's read path and only lays the bytes aside; `work`, in a task of its own,
does everything else, one command a call. So a flood costs the sensors and the ring nothing: what
finds the queue nearly full is answered "busy", what finds it full is counted and forgotten.

QoS 1 may bring a command twice. The last _REMEMBERED ids that changed something keep their reply;
a repeat gets it again, marked, and does nothing. A reset forgets them, so a reboot that the broker
marks as sent before is only taken when its id is still known. (A reply that the broker has
acknowledged proves that it had our acknowledgement of the command before, and brings none again.)
"""

import json

from micropython import const

from firmware import strict_json
from firmware.settings import nearest
from millpond.dispatch import ERROR, NO_LIMIT, RETRYABLE_ERROR, SUCCESS, TIMEOUT, DispatchQueue

_CAPACITY = const(16)
_OBEYED = const(12)  # what finds so many before it is answered "busy"
_LARGEST = const(384)  # bytes of a command
_LONGEST_ID = const(40)  # bytes
_LONGEST_ERROR = const(160)  # characters
_REMEMBERED = const(8)
_REPLIES = const(4)  # on their way at most
_WAIT_S = const(60)  # in the queue
_ANSWER_S = const(10)  # for the acknowledgement of the reply; before a reboot, for what is held
_ROOM = const(320)  # what a reply needs beside its result

# The fields of each op: name, type (None: any), whether it must be given.
_FIELDS = {
    "set": (("key", str, True), ("value", None, True), ("save", bool, False)),
    "status": (),
    "flush": (),
    "reboot": (),
}
_COMMON = ("id", "op")
_TYPES = {str: "text", bool: "true or false"}


class _Command:
    """A message as it came."""

    def __init__(self, payload, retained, dup, busy):
        self.payload = payload
        self.retained = retained
        self.dup = dup
        self.busy = busy
        self.seen = False  # it was looked at
        self.reboots = False


class Commands:
    """Obeys what comes on `topic`, each op a method of `operations` (firmware.run_time).

    `publish(payload, on_complete)` sends a reply of at most `limit` bytes, and gives 0 when that
    cannot be tracked now. Counters: `received`; of those `done`, `repeated`, `refused` (the last
    reason is in `last_refusal`) and `ignored`, which came too large or too many to be looked at;
    `unanswered` are those whose reply was not acknowledged in time.
    """

    def __init__(self, topic, operations, clock, publish, limit, log):
        self._topic = topic.encode()
        self._operations = operations
        self._clock = clock
        self._publish = publish
        self._limit = limit
        self._log = log
        self._queue = DispatchQueue(
            self._process,
            clock.elapsed_s,
            _CAPACITY,
            window=1,
            max_enqueued_time_s=_WAIT_S,
            max_processing_time_s=_ANSWER_S,
            max_retry_count=NO_LIMIT,  # the time-outs are what ends trying
        )
        self._ended = self._on_end
        self._remembered = []  # (id, hash of the command, reply), the oldest first
        self._unsent = None
        self._replies = 0
        self._reboot_at = None
        self._answered = False
        self.received = self.done = self.repeated = 0
        self.refused = self.ignored = self.unanswered = 0
        self.last_refusal = ""

    def close(self):
        """Shut down: nothing is obeyed any more, and what came meanwhile is ignored."""
        self._queue.close()
        self._unsent = None

    def gauges(self):
        """The counters, for report and status page."""
        return {
            "received": self.received,
            "done": self.done,
            "repeated": self.repeated,
            "refused": self.refused,
            "ignored": self.ignored,
            "unanswered": self.unanswered,
            "last_refusal": self.last_refusal,
        }

    # -- from the link ---------------------------------------------------------------------------

    def take(self, topic, payload, retained, dup):
        """Take a message from the link. Fit for `Link.on_message`; keeps no view."""
        if bytes(topic) != self._topic:
            return
        self.received += 1
        waiting = len(self._queue)
        if len(payload) > _LARGEST or waiting >= _CAPACITY:
            self.ignored += 1
            return
        try:
            command = _Command(bytes(payload), bool(retained), dup, waiting >= _OBEYED)
            self.ignored += not self._queue.add(command, self._ended)
        except MemoryError:
            self.ignored += 1

    # -- in the task -----------------------------------------------------------------------------

    def work(self):
        """Go on with what waits; True when the time has come for an ordered reboot."""
        if self._unsent:
            item, reply = self._unsent
            self._unsent = None
            self._reply(item, reply)
        if not self._queue.is_empty():
            self._queue.do_work()
        return self._reboot_at is not None and self._may_leave()

    def _may_leave(self):
        waited = self._clock.elapsed_s() - self._reboot_at
        if waited < _ANSWER_S and not (self._answered and self._operations.drained()):
            return False
        self._reboot_at = None
        return True

    def _process(self, item, command, complete, context):
        if self._replies >= _REPLIES:
            complete(item, RETRYABLE_ERROR)
            return
        command.seen = True
        reply = self._answer(command)
        if reply:
            self._reply(item, reply)
        else:
            complete(item, ERROR)

    def _reply(self, item, reply):
        def told(payload, result, reason, context):
            self._replies -= 1
            if result != SUCCESS:
                self.unanswered += 1
            self._queue.complete(item, SUCCESS if result == SUCCESS else ERROR)

        if self._publish(reply, told):
            self._replies += 1
        else:
            self._unsent = item, reply

    def _on_end(self, command, result, reason, context):
        if not command.seen:
            if result == TIMEOUT:
                self._count_refusal("it waited for over {} s".format(_WAIT_S))
            return
        if result == TIMEOUT and self._unsent:
            self._unsent = None
            self.unanswered += 1
        if command.reboots:
            self._answered = True

    # -- one command -----------------------------------------------------------------------------

    def _answer(self, command):
        """Do what a command says; the reply, or None when there is no id to answer to."""
        name = None
        try:
            fields = strict_json.parse(command.payload)
            name = _id_of(fields)
            return self._obey(name, fields, command)
        except ValueError as error:
            reason = str(error)
        except Exception as error:
            self._log.exception("command {!r} failed".format(name), error)
            reason = "it failed: {}".format(type(error).__name__)
        reason = reason[:_LONGEST_ERROR]
        self._count_refusal(reason)
        if name is None:
            return None
        return json.dumps({"id": name, "ok": False, "error": reason}).encode()

    def _count_refusal(self, reason):
        self.refused += 1
        self.last_refusal = reason[:_LONGEST_ERROR]
        self._log.debug("command refused: {}".format(reason))

    def _obey(self, name, fields, command):
        if command.retained:
            raise ValueError("retained commands are not obeyed; publish it without retain")
        if command.busy or self._reboot_at is not None:
            raise ValueError("busy; send it again later")
        op, arguments = _read(fields)
        if op == "status":
            result = self._operations.status(self._limit - _ROOM)
            self.done += 1
            return _reply_of(name, result)
        mark = hash(command.payload)
        known = self._known(name, mark)
        if known:
            self.repeated += 1
            return known[:-1] + b', "repeated": true}'
        if op == "reboot" and command.dup:
            raise ValueError("it may have been done already; send it again under another id")
        result = getattr(self._operations, op)(**arguments)
        if op == "reboot":
            command.reboots = True
            self._answered = False
            self._reboot_at = self._clock.elapsed_s()
        reply = _reply_of(name, json.dumps(result).encode())
        self.done += 1
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.pop(0)
        self._remembered.append((name, mark, reply))
        self._log.info("command {}: {}".format(json.dumps(name), op))
        return reply

    def _known(self, name, mark):
        for other, other_mark, reply in self._remembered:
            if other == name:
                if mark != other_mark:
                    text = "id {}: another command had it; each needs its own"
                    raise ValueError(text.format(json.dumps(name)))
                return reply
        return None


def _reply_of(name, result):
    return b'{"id": ' + json.dumps(name).encode() + b', "ok": true, "result": ' + result + b"}"


def _id_of(fields):
    """The command's id; ValueError when there is none that can be given back."""
    if type(fields) is not dict:
        raise ValueError('an object {"id": ..., "op": ...} expected')
    name = fields.get("id")
    if type(name) is int or (type(name) is str and 0 < len(name.encode()) <= _LONGEST_ID):
        return name
    text = "id: a whole number, or text of 1 to {} bytes, expected"
    raise ValueError(text.format(_LONGEST_ID))


def _read(fields):
    """The op and its arguments; ValueError names what is missing, unknown or of a wrong type."""
    op = fields.get("op")
    if type(op) is not str:
        raise ValueError("op: one of {} expected".format(", ".join(sorted(_FIELDS))))
    if op not in _FIELDS:
        text = "op {}: unknown, did you mean {}?"
        raise ValueError(text.format(json.dumps(op[:_LONGEST_ID]), nearest(op, sorted(_FIELDS))))
    arguments = {}
    for name, kind, needed in _FIELDS[op]:
        if name in fields:
            if kind and type(fields[name]) is not kind:
                raise ValueError("{}: {} expected".format(name, _TYPES[kind]))
            arguments[name] = fields[name]
        elif needed:
            raise ValueError("{}: missing, {} needs it".format(name, op))
    for name in sorted(fields):
        if name not in arguments and name not in _COMMON:
            raise ValueError("{}: {} has no such field".format(name[:_LONGEST_ID], op))
    return op, arguments
