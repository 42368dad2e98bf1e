"""A driver of PagedRing for recorded traces: see replay_kit."""

from millpond.paged_ring import PagedRing
from tests_host.core.replay_kit import Driver, Lock, digest, payload

LANES = 4
_PER_LANE = ("held", "acked", "stolen", "expired", "refused", "dropped", "appended", "room")


class RingDriver(Driver):
    """Does to a PagedRing what a trace says.

    A message's payload is made from the number of the operation that stored or reserved it. A
    reservation is filled when it is opened and read again when it is committed, so that a page
    lost meanwhile shows. `told` counts the calls of on_drop, `told_last` is a digest of the last.
    With `locked`, the ring has a lock, and so `head` pins what it finds.
    """

    FIELDS = (
        "messages",
        "pages_free",
        "pages_work",
        "pages_used",
        "high_water",
        "fill_percent",
        "bytes_held",
        "oldest_age",
        "in_flight",
        "stray_acks",
        "told",
        "told_last",
    ) + tuple(["{} {}".format(name, lane) for lane in range(LANES) for name in _PER_LANE])

    def __init__(self, pages, page_size, lanes, spare, locked):
        size = pages * page_size + spare
        self.lock = Lock() if locked else None
        self.ring = PagedRing(size, page_size, lanes, self.lock, on_drop=self.on_drop)
        self.count = 0
        self.told = self.told_last = 0
        self.reserved = [None] * LANES  # (offset, payload)

    def on_drop(self, at, length, tag, lane, reason):
        self.told += 1
        data = bytes(self.ring.buffer[at : at + length])
        self.told_last = digest("{} {} {} {}".format(digest(data), tag, lane, reason).encode())

    def state(self):
        ring = self.ring
        out = [
            ring.messages(),
            ring.pages_free(),
            ring.pages_work(),
            ring.pages_used(),
            ring.high_water(),
            ring.fill_percent(),
            ring.bytes_held(),
            ring.oldest_age(),
            ring.in_flight,
            ring.stray_acks,
            self.told,
            self.told_last,
        ]
        for lane in range(ring.lanes):
            out += (ring.held(lane), ring.acked[lane], ring.stolen[lane], ring.expired[lane])
            out += (ring.refused[lane], ring.dropped[lane], ring.appended(lane), ring.room(lane))
        return tuple(out + [0] * (len(self.FIELDS) - len(out)))

    def check(self):
        self.ring.check()
        assert self.lock is None or not self.lock.is_held

    def append(self, size, lane, tag):
        self.count += 1
        return int(self.ring.append(payload(self.count, size), lane, tag))

    def reserve(self, size, lane):
        self.count += 1
        at = self.ring.reserve(size, lane)
        if not at:
            return 0
        assert at >= 8
        data = payload(self.count, size)
        self.ring.buffer[at : at + size] = data
        self.reserved[lane] = at, data
        return 1

    def commit(self, size, lane, tag):
        self.ring.commit(size, lane, tag)
        at, data = self.reserved[lane]
        assert self.ring.buffer[at : at + len(data)] == data, "reservation overwritten"
        self.reserved[lane] = None
        return 1

    def cancel(self, lane):
        self.ring.cancel(lane)

    def head(self):
        """The next message: (digest, tag, lane, packet id, lost before it), or () for none."""
        ring = self.ring
        if not ring.head():
            return ()
        data = bytes(ring.buffer[ring.head_at : ring.head_at + ring.head_length])
        return digest(data), ring.head_tag, ring.head_lane, ring.head_packet_id, ring.head_lost

    def sent(self, packet_id):
        self.ring.sent(packet_id)

    def ack(self, packet_id):
        return int(self.ring.ack(packet_id))

    def rewind(self):
        self.ring.rewind()

    def drop(self, reason):
        return int(self.ring.drop(reason))

    def retag(self, tag):
        """Give the next message another tag; 0 when there is none."""
        if not self.ring.head():
            return 0
        self.ring.retag(tag)
        return 1

    def wait(self, seconds):
        self.ring.seconds += seconds

    def limit_age(self, lane, seconds):
        self.ring.max_age_s[lane] = seconds

    def expire(self):
        return self.ring.expire()
