"""Packer: takes items from the intake queue and puts them into the ring, readings as batches.

A reading is a message on the data topic whose payload is a reading's record. Each lane of the
ring (a lane for each priority) has at most one open batch, written straight into a reserved part
of the lane's page:

    CLOSED --a reading--> OPEN --full, many, old, told to, or a message comes--> CLOSED

While the link is up a batch is small and prompt: it is closed at `max_readings` and at
`max_age_ms`, and all are closed when the link comes up. While it is down a batch ends only with
its page. Anything that is not a reading passes as it is, after the open batch of its lane.

Invariants: items of a priority keep their order. An item is written before it is popped, so an
interruption may repeat it but not lose it. What the ring refuses stays in the intake and holds
back what comes after it, and the intake's own rule for overflow decides and counts; so the packer
loses only what no page could hold and what is no reading, and counts it in the ledger.
"""

from micropython import const

from millpond.batch import restamp
from millpond.clock import diff
from millpond.ledger import MALFORMED, REFUSED, TOO_LARGE
from millpond.limits import within
from millpond.message import QOS_AT_LEAST_ONCE, TAG_BATCH, TAG_UNSTAMPED, make_tag
from millpond.reading import is_record

_LANES = const(4)
_MAX_AGE_MS = const(0x1FFFFFFF)
_MAX_READINGS = const(65535)

# A batch begins in the rest of a page if that is at least 1/16 of a page and the smallest batch,
# else in a new page.
_ROOM_SHIFT = const(4)
_MIN_ROOM = const(24)

_ADDED = const(0)
_REFUSED = const(1)
_TOO_LARGE = const(2)


class Packer:
    """Moves items from `queue` (a MessageQueue) to `ring` (a PagedRing of four lanes).

    `ledger` counts them; `ledger.lost` should be the ring's `on_drop`. `new_writer` is a callable
    that makes an F7Writer or JsonWriter; it is called once a lane. `data_topic` is the readings'
    topic, text or index, and `qos` that of their batches. `max_readings` is 1 to 65,535,
    `max_age_ms` 0 to 2**29 - 1.

    `blocked` is True when the last `poll` ended because the ring had no page to give.
    """

    def __init__(
        self,
        queue,
        ring,
        clock,
        ledger,
        new_writer,
        data_topic,
        qos=QOS_AT_LEAST_ONCE,
        max_readings=50,
        max_age_ms=5000,
    ):
        if ring.lanes != _LANES:
            raise ValueError("ring of {} lanes: 4 expected".format(ring.lanes))
        self.set_limits(max_readings, max_age_ms)
        self._queue = queue
        self._ring = ring
        self._clock = clock
        self._ledger = ledger
        ledger.buffer = ring.buffer
        self._topic = queue.topics.index(data_topic)
        self._tag = make_tag(self._topic, qos, False) | TAG_BATCH
        self._least_room = max(_MIN_ROOM, ring.page_payload >> _ROOM_SHIFT)
        self._writers = [new_writer() for _ in range(_LANES)]
        self._open = [False] * _LANES
        self._opened = [0] * _LANES
        self._link_up = False
        self.blocked = False
        if queue.guard:
            self._drain_locked = queue.guard.locked(self._drain)
            self._drain = self._drain_one_by_one

    def set_limits(self, max_readings, max_age_ms):
        """Set when a batch is closed; it holds for those that are open too."""
        within("max_readings", max_readings, _MAX_READINGS, 1)
        within("max_age_ms", max_age_ms, _MAX_AGE_MS)
        self._max_readings = max_readings
        self._max_age_ms = max_age_ms

    def poll(self, now, link_up, limit=65535):
        """Take what the intake holds now, at most `limit` items; how many were taken.

        Allocates nothing for a reading in 0xF7, or for a message.
        """
        if link_up and not self._link_up:
            self.flush()
        self._link_up = link_up
        limit = min(limit, len(self._queue))
        taken = self._drain(now, limit)
        if link_up:
            self._close_old(now)
        return taken

    def put(self, payload, lane, tag):
        """Store a message that bypasses the intake, after what its lane has open.

        False when the ring refused it, which is counted as an item lost. ValueError as for
        `PagedRing.append`; nothing is counted then.
        """
        if self.try_put(payload, lane, tag):
            return True
        self._ledger.items_taken += 1
        # The ring counts what it refuses only here; or another thread has made room meanwhile.
        if self._ring.append(payload, lane, tag):
            return True
        self._ledger.lose(lane, REFUSED)
        return False

    def check_size(self, size, lane):
        """ValueError unless a message of `size` bytes may be put on `lane`."""
        within("lane", lane, _LANES - 1)
        if size > self._ring.page_payload:
            raise ValueError(
                "message of {} bytes: a page holds at most {}".format(size, self._ring.page_payload)
            )

    def try_put(self, payload, lane, tag):
        """As `put`, but where the payload stands in the ring, or 0 with nothing counted.

        With a lock on the ring that place is sure only while no other thread opens pages.
        """
        size = len(payload)
        self.check_size(size, lane)
        self._close(lane)
        at = self._reserve(size, lane)
        if at:
            # The message stands where it was reserved: in the lane's work page, or, when that was
            # opened for it and `cancel` freed it, in the page freed last, which is taken first.
            self._ring.cancel(lane)
            if not self._ring.append(payload, lane, tag):
                return 0
            self._ledger.items_taken += 1
        return at

    def flush(self):
        """Close every open batch, so that it can be sent."""
        for lane in range(_LANES):
            self._close(lane)

    def prepare(self, at, length, tag):
        """Give an unstamped batch its Unix times, if the clock knows them by now; its new tag.

        Fit for the Sender, which calls it before such a batch leaves.
        """
        if not (tag & TAG_UNSTAMPED and tag & TAG_BATCH and self._clock.known):
            return tag
        restamp(self._ring.buffer, at, length, self._clock)
        return tag & ~TAG_UNSTAMPED

    def open_readings(self):
        """How many readings are in open batches."""
        return sum([self._writers[lane].count for lane in range(_LANES) if self._open[lane]])

    def _drain(self, now, limit):
        queue = self._queue
        taken = 0
        self.blocked = False
        while taken < limit and queue.peek(now):
            if queue.head_topic == self._topic:
                done = self._take_reading(queue.head_priority, now)
            else:
                done = self._take_message(queue.head_priority)
            if not done:
                self.blocked = True
                break
            self._ledger.items_taken += 1
            queue.pop(now)
            taken += 1
        return taken

    def _drain_one_by_one(self, now, limit):
        """As `_drain`, with the queue's lock held from the peek to the pop of each item (Q12)."""
        taken = 0
        self.blocked = False
        while taken < limit and self._drain_locked(now, 1):
            taken += 1
        return taken

    # -- readings --------------------------------------------------------------------------------

    def _take_reading(self, lane, now):
        """Write the queue's head into the lane's batch, or count it; False if it must wait."""
        queue = self._queue
        if not is_record(queue.buffer, queue.head_at, queue.head_length):
            self._ledger.lose(lane, MALFORMED)
            return True
        writer = self._writers[lane]
        if not (self._open[lane] and writer.add(queue.buffer, queue.head_at, self._clock)):
            self._close(lane)
            outcome = self._begin(lane, now)
            if outcome == _REFUSED:
                return False
            if outcome == _TOO_LARGE:
                self._ledger.lose(lane, TOO_LARGE)
                return True
        if self._link_up and writer.count >= self._max_readings:
            self._close(lane)
        return True

    def _begin(self, lane, now):
        """Open a batch with the queue's head in it, in the rest of the lane's page or a new one."""
        ring = self._ring
        room = ring.room(lane)
        if room >= self._least_room and self._begin_in(lane, now, room) == _ADDED:
            return _ADDED
        return self._begin_in(lane, now, ring.page_payload)

    def _begin_in(self, lane, now, size):
        at = self._reserve(size, lane)
        if not at:
            return _REFUSED
        writer = self._writers[lane]
        writer.begin(self._ring.buffer, at, size)
        if not writer.add(self._queue.buffer, self._queue.head_at, self._clock):
            self._ring.cancel(lane)
            return _TOO_LARGE
        self._open[lane] = True
        self._opened[lane] = now
        return _ADDED

    def _close(self, lane):
        """Make the lane's open batch, if there is one, a message of the ring."""
        if not self._open[lane]:
            return
        writer = self._writers[lane]
        length = writer.end()
        tag = self._tag
        if writer.unstamped:
            tag = self.prepare(writer.at, length, tag | TAG_UNSTAMPED)
        self._ring.commit(length, lane, tag)
        self._open[lane] = False

    def _close_old(self, now):
        for lane in range(_LANES):
            if self._open[lane] and diff(now, self._opened[lane]) >= self._max_age_ms:
                self._close(lane)

    # -- messages --------------------------------------------------------------------------------

    def _take_message(self, lane):
        """Copy the queue's head into the ring, or count it; False if it must wait."""
        queue = self._queue
        self._close(lane)
        if queue.head_length > self._ring.page_payload:
            self._ledger.lose(lane, TOO_LARGE)
            return True
        size = self._copy_size(lane)
        at = self._reserve(size, lane)
        if not at:
            return False
        self._copy_head(at, size)
        tag = make_tag(queue.head_topic, queue.head_qos, queue.head_retained)
        self._ring.commit(queue.head_length, lane, tag)
        return True

    def _copy_size(self, lane):
        """How many bytes of the head's slot to copy: all, where there is room for a whole slot.

        That needs no slice object. Else it is the message alone, byte by byte.
        """
        size = self._queue.slot_size
        length = self._queue.head_length
        room = self._ring.room(lane)
        return length if length <= room < size or size > self._ring.page_payload else size

    def _copy_head(self, at, size):
        queue = self._queue
        if size == queue.slot_size:
            self._ring.buffer[at : at + size] = queue.head_payload
        else:
            _copy(queue.buffer, queue.head_at, self._ring.buffer, at, size)

    # -- pages -----------------------------------------------------------------------------------

    def _reserve(self, size, lane):
        """Reserve in the ring; 0 if refused, even with the open batches of lower lanes closed.

        An open batch keeps its page from being stolen, so it would shut out its betters.
        """
        at = self._ring.reserve(size, lane)
        for lower in range(lane):
            if at:
                break
            if self._open[lower]:
                self._close(lower)
                at = self._ring.reserve(size, lane)
        return at


def _copy(source, start, target, at, size):
    while size:
        size -= 1
        target[at + size] = source[start + size]
