"""Deeds: what the steps of a history do, a method for each, to the network, the broker, the clock
and the board. A Run is one, and has what they work on."""

from tests_host.sim.verdict import must

NONSENSE = (
    b"\x00\x00",
    b"\x40\x02\x00\x00",
    b"\x40\x02\x12\x34",
    b"\x50\x02\x12\x34",
    b"\x70\x02\x12\x34",
    b"\x90\x03\x00\x09\x00",
    b"\x20\x02\x00\x00",
    b"\x30\xff\xff\xff\xff",
    b"\xd0\x00",
    b"\x40\x02\x00\x01\x40\x02\x00\x01",
    b"\xf0\x00",
    b"\x30\x03\x00\x01t",
)
COMMANDS = (
    b'{"id": 1, "op": "status"}',
    b'{"id": 2, "op": "flush"}',
    b'{"id": 3, "op": "set", "key": "batch.max_age_ms", "value": 700}',
    b"[" * 300,
    b'{"id": 4, "op": "dance"}',
    bytes(70000),
)
COMMAND_TOPIC = b"millpond/millpond-1/cmd"


class Deeds:
    """The steps by name: `do_x` is done for the step x, with its argument."""

    # -- what is published -----------------------------------------------------------------------

    def put(self, n, lane, qos, size=24, on_complete=None):
        for _ in range(n):
            payload = self._payload(lane, size)
            topic = "sim/{}".format(qos)
            if self.app.publish(topic, payload, lane, on_complete, qos):
                self._made(qos)
            self.numbers += 1

    def _payload(self, lane, size):
        payload = b"%d:%d:" % (lane, self.numbers)
        return payload + bytes(max(0, size - len(payload)))

    def _made(self, qos):
        self.made += 1
        if qos:
            self.owed.add(self.numbers)

    def do_put(self, n):
        self.put(n, 1, 1)

    def do_put_qos0(self, n):
        self.put(n, 1, 0)

    def do_put_qos2(self, n):
        self.put(n, 1, 2)

    def do_urgent(self, n):
        self.put(n, 3, 1)

    def do_urgent_qos2(self, n):
        self.put(n, 3, 2)

    def do_large(self, n):
        for _ in range(n):
            self.track(0, 1, 2000)

    def do_tracked(self, n):
        for _ in range(n):
            self.track(2, 1, 24)

    def do_tracked_qos2(self, n):
        for _ in range(n):
            self.track(2, 2, 24)

    def track(self, lane, qos, size):
        """Publish a message with a receipt."""
        number = self.numbers

        def told(payload, result, reason, _):
            must(number in self.awaited, "told of {} twice", number)
            self.awaited.remove(number)
            if result == 0:
                must(number in self.arrivals.numbers, "{} told delivered, but never came", number)

        self.awaited.add(number)
        made = self.made
        self.put(1, lane, qos, size, told)
        if self.made == made:
            self.awaited.remove(number)

    def do_short_lived(self, n):
        for _ in range(n):
            payload = self._payload(1, 24)
            if self.app.queue.enqueue("sim/x", payload, 1, 1, False, 300, self.app.clock.now()):
                self._made(1)
            self.numbers += 1

    # -- the network -----------------------------------------------------------------------------

    def do_latency(self, ms):
        self.net.latency = ms

    def do_piece(self, size):
        self.net.piece = size

    def do_send_buffer(self, size):
        self.net.send_buffer = size

    def do_refuse(self, ms):
        self.net.refuse = True
        self.broker.restart(True)
        self.loop.at(ms, self._allow)

    def _allow(self, _):
        self.net.refuse = False

    def do_no_answer(self, ms):
        self.net.no_answer = True
        self.loop.at(ms, self._answer)

    def _answer(self, _):
        self.net.no_answer = False

    def do_half_open(self, which):
        if self.net.conn:
            self.net.conn.die(which != 1, which != 0)

    def do_stall(self, ms):
        self.net.stalled_until = self.loop.now + ms

    def do_full(self, _):
        if self.net.conn:
            self.net.conn.full = True

    def do_room_next(self, n):
        self.net.room_next = n

    def do_flaps(self, n):
        self.net.flaps = n
        self.do_reset(0)

    def do_reset(self, _):
        if self.net.conn and not self.net.conn.closed:
            self.net.conn.reset()

    def do_reset_out(self, n):
        if self.net.conn:
            self.net.conn.reset_out = n

    def do_reset_in(self, n):
        if self.net.conn:
            self.net.conn.reset_in = n

    def do_reset_next(self, n):
        self.net.reset_next = (None, n) if n & 1 else (n, None)

    # -- the broker ------------------------------------------------------------------------------

    def do_cut(self, which):
        self.broker.cuts.append(which)

    def do_lose_acks(self, n):
        self.broker.lose_acks = n

    def do_repeat_acks(self, n):
        self.broker.repeat_acks = n

    def do_foreign_acks(self, n):
        self.broker.foreign_acks = n

    def do_ack_delay(self, ms):
        self.broker.ack_delay = ms

    def do_refusal(self, code):
        self.broker.refusal = code
        self.broker.restart(True)
        self.loop.at(3000, self._accept)

    def _accept(self, _):
        self.broker.refusal = 0

    def do_restart(self, keep):
        self.broker.restart(keep)

    def do_forget(self, _):
        self.broker.restart(False)

    def do_take_over(self, _):
        self.broker.close_all()

    def do_mute(self, ms):
        self.broker.mute = True
        self.loop.at(ms, self._speak)

    def _speak(self, _):
        self.broker.mute = False
        self.broker.restart(True)

    def do_nonsense(self, which):
        data = NONSENSE[which]
        if self.app.sender.packet_id != data[-2] << 8 | data[-1]:
            self.broker.say(data)

    def do_command(self, which):
        payload = COMMANDS[which]
        length = 2 + len(COMMAND_TOPIC) + len(payload)
        head = b"\x30"
        while length > 127:
            head += bytes((length & 127 | 128,))
            length >>= 7
        head += bytes((length, 0, len(COMMAND_TOPIC)))
        self.broker.say(head + COMMAND_TOPIC + payload)

    # -- the board -------------------------------------------------------------------------------

    def do_clock_step(self, seconds):
        self.loop.unix += seconds

    def do_freeze(self, ms):
        """The program is held up."""
        self.loop.now += ms
        self.net.stalled_until = max(self.net.stalled_until, self.loop.now)

    def do_ids(self, last):
        """The packet ids go on behind this one."""
        self.app.sender._ids.coming = last % 65535 + 1

    def do_wait(self, ms):
        self.pass_time(ms)

    def do_stop(self, ms):
        """Ctrl-C and, after a while, resume."""
        self.stop()
        self.pass_time(ms)
        self.start()

    def do_interrupt(self, ms):
        """Stopped between two instructions."""
        self.loop.interrupt()
        self.app.abandon()
        self.check()
        self.pass_time(ms)
        self.start()

    def do_power_loss(self, ms):
        """The board is off for a while; what it held is lost, and the harness counts it."""
        self.check()
        for name, number in self.account().items():
            self.past[name] = number
        self.gone += self.app.counters()["held"]
        self.excused |= self.owed - self.arrivals.numbers - self.watch.dropped_numbers
        self.dropped_numbers |= self.watch.dropped_numbers
        self.made = 0
        self.awaited.clear()
        for session in self.broker.sessions.values():
            session.published = {}
        for conn in list(self.net.open):
            conn.vanish()
        self.loop.interrupt()
        self.pass_time(ms, False)
        self.boot()

    def do_heal(self, _):
        self.net.heal()
        self.net.send_buffer = max(self.net.send_buffer, 100)
        mute = self.broker.mute
        self.broker.heal()
        if mute:
            self._speak(None)
