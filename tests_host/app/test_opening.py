"""Opening: what is sent in which order before the first message, against L3, L7 and S7."""

from firmware.opening import Opening

GREETINGS = (("m/status", b"on"), ("m/tags", b"huge"))
SUBSCRIPTIONS = (("m/cmd", 1), ("m/more", 0))


class Line:
    """Link, Sender, Clock and Log in one; `takes` is how many packets the socket yet takes."""

    def __init__(self, greetings=GREETINGS):
        self.sent = []
        self.takes = 99
        self.time = self.last_id = 0
        self.suspicious = False
        self.said = []
        self.opening = Opening(self, self, self, self, lambda: greetings, SUBSCRIPTIONS)

    def _send(self, what):
        self.sent.append(what)
        self.takes -= 1
        return self.takes >= 0

    def publish(self, topic, payload, retain):
        assert retain
        if topic == "m/too_large":
            raise ValueError("too large")
        return self._send(topic)

    def subscribe(self, topic, qos, packet_id):
        return self._send((topic, qos, packet_id))

    def ping(self):
        return self._send("ping")

    def next_packet_id(self):
        self.last_id += 1
        return self.last_id

    def suspects(self):
        return self.suspicious

    def now(self):
        return self.time

    def error(self, text):
        self.said.append(text)

    def opened(self, present=True):
        """What a connection sends in one go, and whether that is the whole opening."""
        self.sent = []
        self.opening.begin(present)
        return self.opening.proceed(), self.sent


def test_greetings_and_subscriptions_go_one_behind_the_other():
    line = Line()
    assert not line.opening.proceed()
    whole = ["m/status", "m/tags", ("m/cmd", 1, 1), ("m/more", 0, 2)]
    assert line.opened(False) == (True, whole)
    assert not line.opening.proceed()
    line = Line()
    line.takes = 0
    assert line.opened(False) == (False, whole[:1])
    for n in (2, 3, 4):
        line.takes = 0
        assert not line.opening.proceed()
        assert line.sent == whole[:n]
    assert line.opening.proceed() and line.sent == whole


def test_L7_only_what_is_not_confirmed_is_asked_for():
    line = Line(())
    line.opened(False)
    line.on_subscribed(1, 1)
    line.on_subscribed(7, 1)
    line.on_subscribed(2, 0x80)
    assert line.opening.subscribed == {"m/cmd"} and line.opening.refused == {"m/more"}
    line.opening.end()
    assert line.opened(True) == (True, [("m/more", 0, 3)])
    line.on_subscribed(3, 0)
    assert not line.opening.refused
    line.opening.end()
    assert line.opened(True) == (True, [])
    assert line.opened(False)[1] == [("m/cmd", 1, 4), ("m/more", 0, 5)]


def test_a_lost_connections_greetings_end_with_it():
    """The next CONNECT may leave in pieces too, and then what waited is asked to go on."""
    line = Line()
    line.takes = 0
    line.opened()
    line.opening.end()
    line.takes = 99
    assert not line.opening.proceed()
    assert line.sent == ["m/status"]
    line.on_subscribed(1, 1)
    assert not line.opening.subscribed


def test_a_greeting_that_the_link_cannot_hold_is_left_out_with_a_word():
    line = Line((("m/too_large", b""), ("m/status", b"")))
    assert line.opened(False)[1][0] == "m/status"
    assert line.said == ["greeting on m/too_large left out: too large"]


def test_S7_a_suspected_message_waits_for_a_ping_behind_the_greetings():
    line = Line()
    line.suspicious = True
    assert line.opened(False)[1][-1] == "ping"
    assert not line.opening.proceed()
    assert line.sent.count("ping") == 1
    line.opening.ponged()
    assert line.opening.proceed() and not line.opening.proceed()


def test_S7_a_broker_that_closes_on_the_greetings_again_and_again_is_named():
    line = Line()
    line.suspicious = True
    for words in (False, False, True, True):
        line.opened()
        assert ("in a row on the greetings" in line.opening.closed_by_peer()) is words
        line.opening.end()
    line.opened()
    line.opening.ponged()
    assert line.opening.closed_by_peer() == ""
    line.opening.end()
    line.opened()
    assert line.opening.closed_by_peer() == ""


def test_L3_an_answer_that_is_owed_has_a_deadline_across_the_tick_wrap():
    wrap = 1 << 30
    line = Line()
    line.time = wrap - 5000
    line.opened(False)
    opening = line.opening
    assert opening.overdue(4999, 10) is None
    assert opening.overdue(5000, 10) == (
        "no answer to the subscription to m/cmd, m/more within 10 s"
    )
    line.on_subscribed(1, 1)
    assert "to m/more within" in opening.overdue(5000, 10)
    line.on_subscribed(2, 1)
    assert opening.overdue(5000, 10) is None
    opening.end()
    line.suspicious = True
    line.opened(True)
    assert opening.overdue(4999, 10) is None
    assert opening.overdue(5000, 10) == "no answer to a ping within 10 s"
    opening.ponged()
    assert opening.overdue(5000, 10) is None
