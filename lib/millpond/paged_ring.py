"""PagedRing: messages wait in fixed pages until the broker has acknowledged them (seed 004).

One bytearray is cut into pages of equal size. A page is always exactly one of

    FREE   in a singly linked list, holding nothing
    WORK   being filled; at most one per lane
    USED   full or promoted, in a singly linked FIFO per lane, oldest first

and moves FREE -> WORK -> USED -> FREE. When no page is free, the oldest USED page of the lowest
lane not above the writer's is stolen: old data makes room for new, low for high. If such a lane
has nothing but a WORK page, that page is closed and stolen, so that four lanes sharing three
pages cannot lock a critical message out.

A page holds messages one after the other, each with an 8-byte header, big-endian:

    packet id u16 | tag u16 | payload size u32 | payload

`head` finds the next message; `sent` pins it; from then on it stays the head, and its page is
neither stolen nor freed, until `ack` or `drop`. `rewind` ends the flight but not the pin.

An encoder may write straight into a page: `reserve`, fill `buffer`, `commit`. The page with the
open reservation may be promoted and read, but it is neither stolen nor freed before the end.

A loss always lies between two pages of a lane or before the unread rest of its first page, so one
number per page, "lost just before what is unread here", is enough to say of each surviving
message how many were lost before it (`head_lost`).

A lane's state is a list, indexed by the constants _AT … _LENGTH below. Nothing is allocated after
construction.

With a lock, threads may write side by side: each public method runs under it (`guard`), and
`head` pins what it finds, so that `head_*` and the bytes they tell of hold until `ack` or `drop`.
One thread only is the consumer (`head`, `sent`, `retag`, `ack`, `rewind`, `drop`). Bytes reserved
are written outside the lock, for nobody else touches them; while they are, that lane is the
writer's alone. Of what changes the ring, only `append` may be called while the same thread is at
work in it, as a soft interrupt or from `on_drop`; it is refused and counted.

What runs for each message keeps its frame within 11 words (see `message_queue`).
"""

from array import array

from micropython import const

from millpond.limits import within
from millpond.page_lists import NONE, PageLists

_HEADER = const(8)
_MIN_PAGES = const(3)
_MIN_PAGE_SIZE = const(64)
_MAX_PAGE_SIZE = const(65536)
_MAX_PACKET_ID = const(65535)
_MAX_LANES = const(4)
_MAX_TAG = const(65535)

# What a lane's state list holds:
_AT = const(0)  # where the next payload would start in the buffer; its header lies before it
_END = const(1)  # where the work page ends; 0 without one, and while a reservation is open
_COUNT = const(2)  # messages in the work page
_PAGE = const(3)  # the work page, or NONE
_RESERVED = const(4)  # the page with the open reservation, or NONE
_SIZE = const(5)  # the size of that reservation
_HEAD = const(6)  # the header of the last message: 8 bytes, ready for one like it
_TAG = const(7)  # the tag in it
_LENGTH = const(8)  # the payload size in it

# What changes the ring, and cannot begin within another call of the same thread.
_CHANGES = ("reserve", "commit", "cancel", "sent", "retag", "ack", "rewind", "drop", "expire")

STOLEN = "stolen"
EXPIRED = "expired"


class PagedRing:
    """A paged store of messages in `lanes` lanes; a higher lane number goes first (R1-R11).

    `size` and `page_size` are bytes; what remains beyond whole pages is not used. `lock`, if given,
    is an object with acquire() and release(), under which each method runs (R9). `on_drop`, if
    given, is called as `on_drop(at, length, tag, lane, reason)` for each stored message that is
    lost, while its payload still stands in `buffer[at:at + length]`.

    After `head` has returned True these describe the next message: `head_at` and `head_length`
    (its payload in `buffer`), `head_tag`, `head_lane`, `head_packet_id` (0 until it was sent) and
    `head_lost` (how many of its lane were lost just before it, R4). `in_flight` is the packet id
    that waits for its acknowledgement, or 0. `max_age_s` holds for each lane the age in seconds
    beyond which `expire` drops its pages, 0 for never (R10). `seconds` is the time, which the
    application sets: whole seconds since any start.

    `acked`, `stolen`, `expired`, `dropped` and `refused` (never got in) count for each lane the
    messages that went that way; `stray_acks` counts what `ack` refused. `pages` is how many there
    are, `page_payload` the largest payload of one, and `pinned` the page that stays until the
    head has gone, or NONE.
    """

    def __init__(self, size, page_size=4096, lanes=1, lock=None, *, on_drop=None):
        within("page_size", page_size, _MAX_PAGE_SIZE, _MIN_PAGE_SIZE)
        pages = size // page_size
        if not _MIN_PAGES <= pages < NONE:
            raise ValueError(
                "size {}: 3 to 65534 pages of {} bytes expected".format(size, page_size)
            )
        within("lanes", lanes, _MAX_LANES, 1)
        self.pages = pages
        self.page_size = page_size
        self.page_payload = page_size - _HEADER
        self.lanes = lanes
        self.buffer = bytearray(pages * page_size)
        self._view = memoryview(self.buffer)
        self._on_drop = on_drop

        self.lists = PageLists(pages, lanes)
        self._first = self.lists.first
        self._read = array("I", bytes(4 * pages))
        self._write = array("I", bytes(4 * pages))
        self._unread = array("H", bytes(2 * pages))
        self._lost = array("I", bytes(4 * pages))
        self._born = array("I", bytes(4 * pages))

        # Four whatever `lanes`, so that one comparison serves `append` for room and for the lane.
        self._work = [
            [_HEADER, 0, 0, NONE, NONE, 0, bytearray(_HEADER), 0, 0] for _ in range(_MAX_LANES)
        ]
        self._lost_at_end = [0] * lanes
        self._reason = STOLEN

        self.seconds = 0
        self.max_age_s = [0] * lanes
        self.in_flight = 0
        self.pinned = NONE
        self._head_page = NONE
        self.head_at = self.head_length = self.head_tag = self.head_lane = 0
        self.head_packet_id = self.head_lost = 0

        self._closed_in = [0] * lanes
        self.acked = [0] * lanes
        self.stolen = [0] * lanes
        self.expired = [0] * lanes
        self.refused = [0] * lanes
        self.dropped = [0] * lanes
        self.stray_acks = 0
        if lock is not None:
            self._share(lock)

    def _share(self, lock):
        """Put every public method under the lock (R9)."""
        from millpond.guard import Guard

        guard = Guard(lock)
        inside: dict = {name: _refuse_call for name in _CHANGES}
        inside["append"] = self._refuse_append
        guard.cover(self, inside)
        self.head = guard.locked(self._pin_head)

    def _refuse_append(self, _, lane=0, tag=0):
        """`append` within another call of the same thread."""
        return self._refuse(lane)

    # -- writing ---------------------------------------------------------------------------------

    def append(self, payload, lane=0, tag=0):
        """Store a bytes-like `payload`; True, or False when it was refused and counted (R3, R4).

        ValueError when it is larger than `page_payload`, or `lane` or `tag` (16 bits) is out of
        range, or a reservation is open on the lane; nothing changes then.
        """
        work = self._work[lane & 3]
        end = work[_AT] + len(payload)
        if end > work[_END] or tag != work[_TAG] or len(payload) != work[_LENGTH] or lane >> 2:
            if not self._make_ready(len(payload), lane, tag):
                return False
            end = work[_AT] + len(payload)
        self._view[work[_AT] : end] = payload
        self._view[work[_AT] - _HEADER : work[_AT]] = work[_HEAD]
        work[_AT] = end + _HEADER
        work[_COUNT] += 1
        return True

    def _make_ready(self, size, lane, tag):
        """Make room and the header for a message; False when there is no room, counted."""
        self._check_message(size, lane, tag)
        work = self._work[lane]
        self._make_header(work, size, tag)
        if work[_AT] + size <= work[_END] or self._turn(lane):
            return True
        return self._refuse(lane)

    def _refuse(self, lane):
        self.refused[lane] += 1
        self._lost_at_end[lane] += 1
        return False

    @staticmethod
    def _make_header(work, size, tag):
        """Make the header of a message; it serves until one differs from the last."""
        work[_TAG] = tag
        work[_LENGTH] = size
        header = work[_HEAD]
        header[2] = tag >> 8
        header[3] = tag & 0xFF
        header[6] = size >> 8
        header[7] = size & 0xFF

    def room(self, lane=0):
        """The largest payload in bytes that fits the lane's work page now; 0 without one."""
        work = self._work[lane]
        return max(0, work[_END] - work[_AT])

    def reserve(self, n, lane=0):
        """Set `n` bytes aside; their offset in `buffer`, or 0 when no page can be had (R3).

        Nothing is lost or counted by a refusal. Errors as for `append`.
        """
        self._check_message(n, lane, 0)
        work = self._work[lane]
        if work[_AT] + n > work[_END] and not self._turn(lane):
            return 0
        work[_END] = 0
        work[_RESERVED] = work[_PAGE]
        work[_SIZE] = n
        return work[_AT]

    def commit(self, n, lane=0, tag=0):
        """Make the first `n` reserved bytes a message. ValueError beyond the reservation (R3)."""
        work = self._work[lane & 3]
        page = work[_RESERVED]
        if page == NONE or not 0 <= n <= work[_SIZE] or tag >> 16 or lane >> 2:
            self._refuse_commit(n, lane, tag)
        self._make_header(work, n, tag)
        self._view[work[_AT] - _HEADER : work[_AT]] = work[_HEAD]
        work[_AT] += n + _HEADER
        if work[_PAGE] == page:
            work[_COUNT] += 1
        else:
            self._write[page] += n + _HEADER
            self._unread[page] += 1
            self._closed_in[lane] += 1
        self._end_reservation(lane, page)

    def _refuse_commit(self, n, lane, tag):
        if lane >> 2 or self._work[lane][_RESERVED] == NONE:
            raise ValueError("lane {}: no open reservation to commit".format(lane))
        within("tag", tag, _MAX_TAG)
        reserved = self._work[lane][_SIZE]
        raise ValueError("commit of {} bytes: {} are reserved".format(n, reserved))

    def cancel(self, lane=0):
        """Give an open reservation up; without one, nothing happens.

        A page opened for it is free again, or what comes later would be as old as the reservation.
        """
        work = self._work[lane]
        if work[_RESERVED] != NONE:
            self._end_reservation(lane, work[_RESERVED])
            if not work[_COUNT]:
                self._close(lane)

    def _end_reservation(self, lane, page):
        work = self._work[lane]
        work[_RESERVED] = NONE
        if work[_PAGE] == page:
            work[_END] = (page + 1) * self.page_size
            return
        work[_AT] = _HEADER
        if self._read[page] == self._write[page]:
            self._lost_at_end[lane] += self._lost[page]
            self.lists.remove(lane, NONE, page)
            self.lists.release(page)

    def _check_message(self, size, lane, tag):
        if not 0 <= lane < self.lanes or tag >> 16:
            within("lane", lane, self.lanes - 1)
            within("tag", tag, _MAX_TAG)
        if not 0 <= size <= self.page_payload:
            raise ValueError(
                "message of {} bytes: a page holds at most {}".format(size, self.page_payload)
            )
        if self._work[lane][_RESERVED] != NONE:
            raise ValueError("lane {}: its reservation is still open".format(lane))

    # -- pages -----------------------------------------------------------------------------------

    def _turn(self, lane):
        """Close the lane's work page and open a new one; False when none can be had."""
        lists = self.lists
        self._close(lane)
        if lists.free == NONE and not self._steal(lane):
            return False
        page = lists.take()
        self._read[page] = 0
        self._lost[page] = self._lost_at_end[lane]
        self._lost_at_end[lane] = 0
        self._born[page] = self.seconds
        work = self._work[lane]
        work[_PAGE] = page
        work[_AT] = page * self.page_size + _HEADER
        work[_END] = (page + 1) * self.page_size
        return True

    def _close(self, lane):
        """WORK -> tail of USED; an empty work page (by `cancel`) goes back to FREE."""
        work = self._work[lane]
        page = work[_PAGE]
        if page == NONE:
            return
        count = work[_COUNT]
        self._write[page] = work[_AT] - _HEADER - page * self.page_size
        self._unread[page] = count
        self._closed_in[lane] += count
        work[_COUNT] = 0
        work[_PAGE] = NONE
        if work[_RESERVED] == NONE:
            work[_AT] = _HEADER
            work[_END] = 0
        if count:
            self.lists.push(lane, page)
        else:
            self._lost_at_end[lane] += self._lost[page]
            self.lists.release(page)

    def _steal(self, lane):
        """Free one page that `lane` may overwrite; False when there is none (R4)."""
        for victim in range(lane + 1):
            if self._steal_used(victim):
                return True
            work = self._work[victim]
            if victim < lane and work[_PAGE] != NONE and work[_RESERVED] == NONE:
                self._close(victim)
                return self._steal_used(victim)
        return False

    def _steal_used(self, lane):
        """Free the lane's oldest used page, neither pinned nor reserved; its messages are lost."""
        lists = self.lists
        before = NONE
        page = lists.first[lane]
        while page != NONE and (page == self.pinned or page == self._work[lane][_RESERVED]):
            before = page
            page = lists.next[page]
        if page == NONE:
            return False
        self._reason = STOLEN
        self._lose_page(lane, before, page)
        return True

    def _lose_page(self, lane, before, page):
        """Free a used page, which stands behind `before`; its messages are lost for `_reason`."""
        if self._on_drop:
            self._tell_of_drops(page, lane)
        count = self._unread[page]
        (self.stolen if self._reason == STOLEN else self.expired)[lane] += count
        count += self._lost[page]
        self._lose_before(lane, self.lists.next[page], count)
        self.lists.remove(lane, before, page)
        self.lists.release(page)

    def expire(self):
        """Drop the pages older than their lane's `max_age_s`, and return how many messages (R10).

        To be called once a second or so, link up or down. A page is as old as its first message,
        and what came later goes with it. The page whose message is in flight, or waits to be sent
        again, and one with an open reservation stay.
        """
        before = sum(self.expired)
        for lane in range(self.lanes):
            if self.max_age_s[lane]:
                self._expire_lane(lane, self.seconds - self.max_age_s[lane])
        return sum(self.expired) - before

    def _expire_lane(self, lane, since):
        """Drop the lane's pages that were begun before `since`."""
        work = self._work[lane]
        if work[_COUNT] and work[_RESERVED] == NONE and self._born[work[_PAGE]] < since:
            self._close(lane)
        before = NONE
        page = self._first[lane]
        while page != NONE and self._born[page] < since:
            after = self.lists.next[page]
            if page == self.pinned or page == work[_RESERVED]:
                before = page
            else:
                self._reason = EXPIRED
                self._lose_page(lane, before, page)
            page = after

    def _tell_of_drops(self, page, lane):
        at = page * self.page_size + self._read[page] + _HEADER
        left = self._unread[page]
        while left:
            left -= 1
            at = self._tell_of_drop(at, lane)

    def _tell_of_drop(self, at, lane):
        self._on_drop(at, self._word(at - 2), self._word(at - 6), lane, self._reason)
        return at + self._word(at - 2) + _HEADER

    def _word(self, at):
        return self.buffer[at] << 8 | self.buffer[at + 1]

    def _lose_before(self, lane, page, count):
        """Note `count` messages lost just before `page`, or before what the lane gets next."""
        if page == NONE:
            page = self._work[lane][_PAGE]
        if page == NONE:
            self._lost_at_end[lane] += count
        else:
            self._lost[page] += count

    # -- reading ---------------------------------------------------------------------------------

    def head(self):
        """Find the next message; True when there is one, described by `head_*` (R5)."""
        if self.pinned != NONE:
            return True
        first = self._first
        lane = self.lanes
        while lane:
            lane -= 1
            page = first[lane]
            if page == NONE:
                if not self._work[lane][_COUNT]:
                    continue
                self._close(lane)
                page = first[lane]
            read = self._read[page]
            if read == self._write[page]:
                continue
            buf = self.buffer
            at = page * self.page_size + read + _HEADER
            self.head_at = at
            self.head_length = (buf[at - 2] << 8) | buf[at - 1]
            self.head_tag = (buf[at - 6] << 8) | buf[at - 5]
            self.head_packet_id = (buf[at - 8] << 8) | buf[at - 7]
            self.head_lane = lane
            self.head_lost = self._lost[page]
            self._head_page = page
            return True
        return False

    def _pin_head(self):
        """`head` of a ring with a lock: what it finds stays the head, whatever others write."""
        found = PagedRing.head(self)
        if found:
            self.pinned = self._head_page
        return found

    def sent(self, packet_id):
        """The head is in flight as `packet_id` (1 to 65,535), and pinned (R6).

        ValueError for another id, without a head, or with one in flight already.
        """
        if self.in_flight or not 0 < packet_id <= _MAX_PACKET_ID:
            self._refuse_flight(packet_id)
        if self.pinned == NONE:
            if not self.head():
                raise ValueError("packet id {}: the ring is empty".format(packet_id))
            self.pinned = self._head_page
        at = self.head_at
        self.buffer[at - 8] = packet_id >> 8
        self.buffer[at - 7] = packet_id & 0xFF
        self.head_packet_id = packet_id
        self.in_flight = packet_id

    def _refuse_flight(self, packet_id):
        if self.in_flight:
            raise ValueError("packet id {}: {} is in flight".format(packet_id, self.in_flight))
        within("packet id", packet_id, _MAX_PACKET_ID, 1)

    def retag(self, tag):
        """Give the head another tag (16 bits), such as one without the unstamped mark."""
        within("tag", tag, _MAX_TAG)
        at = self.head_at
        self.buffer[at - 6] = tag >> 8
        self.buffer[at - 5] = tag & 0xFF
        self.head_tag = tag

    def ack(self, packet_id):
        """The broker has it: go on to the next. False, and counted, for any other id (R6)."""
        if packet_id != self.in_flight or not packet_id:
            self.stray_acks += 1
            return False
        self.acked[self.head_lane] += 1
        self._advance(0)
        return True

    def rewind(self):
        """The link is lost: the head is no longer in flight and will be sent again (R7).

        It keeps its pin and its `head_packet_id`, for a broker that still knows the session.
        """
        self.in_flight = 0

    def drop(self, reason):
        """Set the head aside for `reason` (a word), counted as dropped; False without a head."""
        if not self.head():
            return False
        lane = self.head_lane
        self.pinned = self._head_page
        if self._on_drop:
            self._on_drop(self.head_at, self.head_length, self.head_tag, lane, reason)
        self.dropped[lane] += 1
        self._advance(self.head_lost + 1)
        return True

    def _advance(self, lost):
        """Leave the pinned head behind, `lost` messages of its lane having gone before the next."""
        page = self.pinned
        lane = self.head_lane
        self.pinned = NONE
        self.in_flight = 0
        read = self._read[page] + self.head_length + _HEADER
        self._read[page] = read
        self._unread[page] -= 1
        if lost or self.head_lost:
            self._lost[page] = lost
        if read == self._write[page] and page != self._work[lane][_RESERVED]:
            self._lost[page] = 0
            self._lose_before(lane, self.lists.next[page], lost)
            self.lists.remove(lane, NONE, page)
            self.lists.release(page)

    # -- gauges ----------------------------------------------------------------------------------

    def appended(self, lane):
        """Messages ever stored on `lane` = acked + stolen + expired + dropped + held."""
        return self._closed_in[lane] + self._work[lane][_COUNT]

    def held(self, lane):
        """Messages now stored on `lane`."""
        gone = self.acked[lane] + self.stolen[lane] + self.expired[lane] + self.dropped[lane]
        return self.appended(lane) - gone

    def messages(self):
        """Messages now stored."""
        return sum(self.held(lane) for lane in range(self.lanes))

    def pages_free(self):
        """Pages holding nothing."""
        return self.lists.free_count

    def pages_work(self):
        """Pages being filled."""
        return sum(work[_PAGE] != NONE for work in self._work)

    def pages_used(self):
        """Pages waiting to be sent."""
        return self.pages - self.pages_free() - self.pages_work()

    def high_water(self):
        """The most pages that were ever in use at a time."""
        return self.lists.high_water

    def fill_percent(self):
        """Pages not free, in percent of all."""
        return 100 * (self.pages - self.pages_free()) // self.pages

    def bytes_held(self):
        """Bytes of unread messages with their headers; takes a walk over all used pages."""
        total = 0
        for lane in range(self.lanes):
            work = self._work[lane]
            if work[_PAGE] != NONE:
                total += work[_AT] - _HEADER - work[_PAGE] * self.page_size
            for page in self.lists.used(lane):
                total += self._write[page] - self._read[page]
        return total

    def oldest_age(self):
        """Seconds since the oldest page with unread messages was begun; 0 when all is empty."""
        born = self.seconds
        for lane in range(self.lanes):
            page = self.lists.first[lane]
            if page == NONE and self._work[lane][_COUNT]:
                page = self._work[lane][_PAGE]
            elif page != NONE and not self._unread[page]:
                page = NONE  # all read, and kept for the reservation that is open in it
            if page != NONE and self._born[page] < born:
                born = self._born[page]
        return self.seconds - born

    def born(self, page):
        """When a page in use was begun, in `seconds`."""
        return self._born[page]

    def check(self):
        """Prove the invariants: RuntimeError naming the first that is broken (R1)."""
        from millpond.ring_check import check

        check(self)


def _refuse_call(*_):
    raise RuntimeError("PagedRing: changed by the thread that is at work in it")
