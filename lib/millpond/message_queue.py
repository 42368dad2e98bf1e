"""MessageQueue: the circular queue between the sensors and the packer (seed 000).

All slots lie in one bytearray; a slot is a header and `slot_size` payload bytes. There is one slot
more than the queue may hold: a message is written into it before room is made, so that a payload
that cannot be copied leaves the queue as it was. A message never moves: order is kept in
IndexRings, a ring of slot numbers per priority.

`now` is milliseconds on the 2**30 ring of `millpond.clock`. A message whose time is up is dropped
when it is the next to be shown, when it is the first of its priority and a full queue needs room,
and by `expire`, which the application calls every second.

Nothing goes uncounted; `check` proves at any time that

    enqueued - dequeued - displaced - expired - cleared == len(queue)

A refused message was never in, and is counted beside.

Enqueue, displacement, peek, pop and dequeue do the same work however many slots there are, and
allocate nothing. That takes two things which MicroPython does not tell, here and in all that runs
for each message: a function whose arguments, variables and stack exceed 11 words gets its frame
from the heap at each call, so these methods are small and hand a new message on in the `_new_…`
attributes; and one property makes each assignment to any attribute of its class ten times slower,
so there is none here.

With a lock any thread may enqueue, and so may a soft interrupt (Q12): each public method runs under
it (`guard`). An interrupt that has interrupted the queue at work, or a packer moving a message out
of it, cannot wait; its message is refused and counted, in `stats.refused` and `stats.busy`. It may
try again later. One thread only takes out. It uses `dequeue`, or does all from `peek` to `pop` in
one function that runs under `guard.locked`, or else a message shown may be displaced meanwhile.
"""

from struct import pack_into

from micropython import const

from millpond.clock import add, diff
from millpond.index_rings import IndexRings
from millpond.limits import within
from millpond.message import MAX_SLOT_SIZE, NORMAL, TopicTable
from millpond.queue_stats import CLEARED, DISPLACED, EXPIRED, REFUSED, QueueStats

# A slot's header: id in two halves, creation, expiry, length, topic, flags.
_CREATED = const(4)
_EXPIRY = const(8)
_LENGTH = const(12)
_TOPIC = const(14)
_FLAGS = const(15)
_HEADER = const(16)

# Flags: QoS in bits 0-1, priority in bits 2-3, then these.
_RETAINED = const(16)
_MORTAL = const(32)

_LANES = const(4)
_MAX_QOS = const(2)
_MAX_ID = const(0xFFFFFFFF)
_MASK = const(0x3FFFFFFF)
_HALF = const(0x20000000)

# What `_shown` holds when it is not the slot that peek has shown.
_NOTHING = const(-1)
_GONE = const(-2)

MAX_TTL_MS = const(0x1FFFFFFF)
OVERFLOWS = ("displace", "reject", "oldest")


class MessageQueue(IndexRings):
    """A queue of up to `capacity` (1 to 65,535) messages of up to `slot_size` bytes (Q1-Q12).

    `topics` is a TopicTable to share, or the number of topics to have room for. `overflow` says
    what a full queue does with a message (Q6): "displace" the oldest of the lowest priority below
    its own, else refuse it; "reject" it always; "oldest": as "displace", and when there is
    nothing lower, displace the oldest of its own priority. `log`, if given, is called with a
    line of text when the queue begins to lose messages and when that is over (Q9). `lock`, if
    given, is an object with acquire() and release(), under which each method runs (Q12); `log` must
    not feed the queue then.

    After `peek` has returned True these describe the next message: `head_at` and `head_length`
    (its payload in `buffer`), `head_payload` (a memoryview of the slot's whole payload, to copy
    out of without allocating), `head_topic` (an index of `topics`), `head_qos`, `head_priority`,
    `head_retained`. They hold until the next call that changes the queue.

    `stats` is a QueueStats (Q8).
    """

    def __init__(
        self,
        capacity,
        slot_size=64,
        topics=None,
        overflow="displace",
        log=None,
        first_id=1,
        lock=None,
    ):
        super().__init__(capacity)
        within("slot size", slot_size, MAX_SLOT_SIZE, 1)
        if overflow not in OVERFLOWS:
            raise ValueError("overflow {!r}: one of {} expected".format(overflow, OVERFLOWS))
        within("first id", first_id, _MAX_ID, 1)
        self.slot_size = slot_size
        if not isinstance(topics, TopicTable):
            topics = TopicTable(16 if topics is None else topics)
        self.topics = topics
        self.stats = QueueStats()
        self._overflow = overflow
        self._log = log
        self._id_high = first_id >> 16
        self._id_low = first_id & 0xFFFF
        self._make_slots()
        self._known_topic = topics.get
        self._new_created = 0
        self._new_expiry = 0
        self._new_topic = 0
        self._new_flags = 0
        self._top = -1  # no lane above this one holds a message
        self._shown = _NOTHING
        self._mortal = False  # whether the queue may hold a message with an expiry
        self._calm = capacity * 4 // 5
        self._overflowing = False
        self._untold = False  # whether `log` has still to hear of the overflow
        self._lost_before = 0
        self.guard = None
        if lock is not None:
            self._share(lock)

    def _share(self, lock):
        """Put every public method under the lock (Q12)."""
        from millpond.guard import Guard

        self.guard = Guard(lock)
        self.guard.cover(self, {"enqueue": self._refuse_interrupt})

    def _refuse_interrupt(self, *_, **__):
        """`enqueue` within another call of the same thread: counts only, so it tears nothing."""
        self.stats.was_busy()
        return 0

    def _make_slots(self):
        self._stride = _HEADER + self.slot_size
        self.buffer = bytearray((self.capacity + 1) * self._stride)
        self._view = memoryview(self.buffer)
        starts = range(_HEADER, len(self.buffer), self._stride)
        self._payloads = [self._view[at : at + self.slot_size] for at in starts]
        self.head_at = 0
        self.head_length = 0
        self.head_payload = self._payloads[0]
        self.head_topic = 0
        self.head_qos = 0
        self.head_priority = 0
        self.head_retained = False

    def enqueue(self, topic, payload, qos=1, priority=NORMAL, retained=False, ttl_ms=0, now=0):
        """Copy a message in; return its id, or 0 when it was refused (Q4, Q6).

        `topic` is text, or an index got from `topics.index`. `payload` is bytes-like. `ttl_ms`
        (0 to MAX_TTL_MS, 6.2 days) is how long it may wait, 0 for ever; it has expired when that
        time is up. On ValueError or TypeError (Q11) the queue is as it was.
        """
        if len(payload) > self.slot_size or payload.__class__ is str:
            _bad_payload(payload, self.slot_size)
        if not 0 <= priority < _LANES:
            raise ValueError("priority %r: 0 to 3 expected" % priority)
        if not 0 <= qos <= _MAX_QOS:
            raise ValueError("QoS %r: 0 to 2 expected" % qos)
        if not 0 <= ttl_ms <= MAX_TTL_MS:
            raise ValueError("ttl_ms %r: 0 to 536870911 expected" % ttl_ms)
        self._new_topic = self._known_topic(topic)
        if self._new_topic is None:
            self._new_topic = self.topics.index(topic)
        self._new_flags = qos | priority << 2
        if retained:
            self._new_flags |= _RETAINED
        self._new_created = now & _MASK
        self._new_expiry = 0
        if ttl_ms:
            self._new_flags |= _MORTAL
            self._mortal = True
            self._new_expiry = add(self._new_created, ttl_ms)
        self._write(payload)
        if self._count == self.capacity and not self._make_room(priority):
            return self._refuse()
        return self._link(priority)

    def _write(self, payload):
        """Write the new message into the free slot that is next, which stays free."""
        at = self._free[self._count] * self._stride
        self._view[at + _HEADER : at + _HEADER + len(payload)] = payload
        pack_into(
            "<HHII",
            self.buffer,
            at,
            self._id_low,
            self._id_high,
            self._new_created,
            self._new_expiry,
        )
        at += _LENGTH
        pack_into("<HBB", self.buffer, at, len(payload), self._new_topic, self._new_flags)

    def _link(self, lane):
        """Put the new message at the end of its lane; return its id."""
        tail = self._tails[lane]
        self._rings[lane][tail] = self._free[self._count]
        self._tails[lane] = (tail + 1) % self.capacity
        self._counts[lane] += 1
        self._count += 1
        self.stats.took_in(self._count)
        if lane > self._top:
            self._top = lane
        low = self._id_low
        high = self._id_high
        self._id_low = low + 1
        if low == 0xFFFF:
            self._carry_id()
        if self._untold:
            self._tell_full()  # last, for a log may itself feed the queue
        return high << 16 | low

    def _carry_id(self):
        self._id_high = (self._id_high + 1) & 0xFFFF
        self._id_low = 0 if self._id_high else 1

    def _make_room(self, priority):
        """Drop what has to go for a message of this priority; False when nothing may (Q6)."""
        new = self._free[self._count]
        if self._mortal:
            self._drop_expired_heads()
        if self._count == self.capacity:
            victim = self._victim(priority)
            if victim < 0:
                return False
            self._drop(victim, DISPLACED)
            if not self._overflowing:
                self._begin_overflow()
        # The slot just written is to be the next one again.
        self._free[self.capacity] = self._free[self._count]
        self._free[self._count] = new
        return True

    def _drop_expired_heads(self):
        for lane in range(_LANES):
            while self._counts[lane] and self._is_over(self._head_slot(lane), self._new_created):
                self._drop(lane, EXPIRED)

    def _victim(self, priority):
        """The lane whose oldest message has to go for one of this priority, or -1."""
        if self._overflow == "reject":
            return -1
        for lane in range(priority):
            if self._counts[lane]:
                return lane
        if self._overflow == "oldest" and self._counts[priority]:
            return priority
        return -1

    def _refuse(self):
        self.stats.lost(REFUSED)
        if not self._overflowing:
            self._begin_overflow()
            if self._untold:
                self._tell_full()
        return 0

    def _begin_overflow(self):
        """The first message was lost to the queue being full, and is counted."""
        self._overflowing = True
        self._untold = self._log is not None
        self._lost_before = self.stats.refused + self.stats.displaced - 1

    def _tell_full(self):
        self._untold = False
        self._log("Queue full: all {} slots taken, dropping messages".format(self.capacity))

    def _end_overflow(self):
        self._overflowing = False
        if self._log:
            lost = self.stats.refused + self.stats.displaced - self._lost_before
            self._log("Queue no longer full: {} messages dropped meanwhile".format(lost))

    def peek(self, now):
        """Show the next message in the head_… attributes; False when there is none (Q4, Q5, Q7).

        The message shown is the one that the next `pop` removes.
        """
        lane = self._top
        while lane >= 0:
            if not self._counts[lane]:
                lane -= 1
                continue
            slot = self._rings[lane][self._heads[lane]]
            at = slot * self._stride
            buffer = self.buffer
            flags = buffer[at + _FLAGS]
            if flags & _MORTAL and self._is_over(slot, now):
                self._drop(lane, EXPIRED)
                continue
            self._top = lane
            self._shown = slot
            self.head_at = at + _HEADER
            self.head_length = buffer[at + _LENGTH] | buffer[at + _LENGTH + 1] << 8
            self.head_payload = self._payloads[slot]
            self.head_topic = buffer[at + _TOPIC]
            self.head_qos = flags & 3
            self.head_priority = lane
            self.head_retained = flags & _RETAINED != 0
            return True
        self._top = -1
        self._shown = _NOTHING
        return False

    def pop(self, now):
        """Remove the message that `peek` has shown, or else the next one; False: none removed.

        A message of higher priority that came after the peek does not change what is removed.
        When the message shown has been dropped since (displaced, expired, cleared), nothing is
        removed: that one is counted as dropped, and a copy of it is not to be used.
        """
        if self._shown < 0:
            if self._shown == _GONE:
                self._shown = _NOTHING
                return False
            if not self.peek(now):
                return False
        slot = self._shown
        self._shown = _NOTHING
        lane = self.head_priority
        self._heads[lane] = (self._heads[lane] + 1) % self.capacity
        self._counts[lane] -= 1
        self._count -= 1
        self._free[self._count] = slot
        self.stats.gave_out((now - self._moment(slot * self._stride + _CREATED)) & _MASK)
        if self._overflowing and self._count <= self._calm:
            self._end_overflow()
        return True

    def dequeue(self, message, now):
        """Copy the next message into `message` (a Message) and remove it; False: there is none.

        ValueError when the message's payload is smaller than a slot; nothing is removed.
        Allocates nothing but an id beyond the small ints (2**30 on a 32-bit board).
        """
        if len(message.payload) < self.slot_size:
            raise ValueError(
                "message payload of {} bytes: a slot's {} expected".format(
                    len(message.payload), self.slot_size
                )
            )
        if not self.peek(now):
            return False
        message.payload[: self.slot_size] = self.head_payload
        message.length = self.head_length
        message.topic_index = self.head_topic
        message.topic = self.topics.text(self.head_topic)
        message.qos = self.head_qos
        message.priority = self.head_priority
        message.retained = self.head_retained
        message.delivery_count = 0
        message.acknowledged = False
        at = self.head_at - _HEADER
        message.id = self._word(at) | self._word(at + 2) << 16
        message.created = self._moment(at + _CREATED)
        message.expiry = 0
        if self.buffer[at + _FLAGS] & _MORTAL:
            message.expiry = self._moment(at + _EXPIRY) or 1
        return self.pop(now)

    def expire(self, now):
        """Drop every message whose time is up and return how many; call it every second (Q7).

        It looks at every slot, but only while there are messages with a `ttl_ms`. It also keeps
        the books of `stats` in order (QueueStats.roll).
        """
        before = self._count
        if self._mortal:
            self._mortal = False
            for lane in range(_LANES):
                self._sweep(lane, now)
        gone = before - self._count
        self.stats.roll(now)
        if self._overflowing and self._count <= self._calm:
            self._end_overflow()
        return gone

    def _sweep(self, lane, now):
        """Drop a lane's expired messages and close up its ring over them, in order."""
        read = write = self._heads[lane]
        left = self._counts[lane]
        while left:
            left -= 1
            slot = self._rings[lane][read]
            read = (read + 1) % self.capacity
            if self._is_over(slot, now):
                self._counts[lane] -= 1
                self._release(slot, EXPIRED)
                continue
            self._rings[lane][write] = slot
            write = (write + 1) % self.capacity
            if self.buffer[slot * self._stride + _FLAGS] & _MORTAL:
                self._mortal = True
        self._tails[lane] = write

    def clear(self):
        """Drop every message, counted as cleared; return how many."""
        before = self._count
        for lane in range(_LANES):
            while self._counts[lane]:
                self._drop(lane, CLEARED)
        if self._overflowing:
            self._end_overflow()
        return before

    def oldest_ms(self, now):
        """Milliseconds that the oldest message has waited; 0 when there is none."""
        oldest = 0
        for lane in range(_LANES):
            if self._counts[lane]:
                created = self._moment(self._head_slot(lane) * self._stride + _CREATED)
                oldest = max(oldest, diff(now, created))
        return oldest

    def _moment(self, at):
        """The moment (30 bits) stored at an offset of the buffer."""
        b = self.buffer
        return b[at] | b[at + 1] << 8 | b[at + 2] << 16 | b[at + 3] << 24

    def _word(self, at):
        """The 16 bits stored at an offset of the buffer."""
        return self.buffer[at] | self.buffer[at + 1] << 8

    def _is_over(self, slot, now):
        at = slot * self._stride
        if not self.buffer[at + _FLAGS] & _MORTAL:
            return False
        return (now - self._moment(at + _EXPIRY)) & _MASK < _HALF

    def _drop(self, lane, reason):
        head = self._heads[lane]
        self._heads[lane] = (head + 1) % self.capacity
        self._counts[lane] -= 1
        self._release(self._rings[lane][head], reason)

    def _release(self, slot, reason):
        """A slot that has left its ring becomes free; its message is lost."""
        self._count -= 1
        self._free[self._count] = slot
        self.stats.lost(reason)
        if slot == self._shown:
            self._shown = _GONE

    def print_stats(self, name, out=print):
        """Print one line in the form of seed 000 (Q9)."""
        out(
            "[STATS] {} Queue: size={}/{}, enqueued={}, dequeued={}, dropped={}".format(
                name,
                self._count,
                self.capacity,
                self.stats.enqueued,
                self.stats.dequeued,
                self.stats.dropped,
            )
        )

    def check(self):
        """Prove the invariants; AssertionError says what is wrong. For tests: it allocates."""
        from millpond.queue_check import check

        check(self)


def _bad_payload(payload, slot_size):
    if isinstance(payload, str):
        raise TypeError("payload {!r}: bytes expected, not text".format(payload))
    raise ValueError("payload of {} bytes: at most {} expected".format(len(payload), slot_size))
