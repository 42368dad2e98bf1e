"""What a PagedRing must do, in lists and deques of messages (R1-R11).

It knows pages only as deques of messages with a size, and foretells which page is taken, given
back or stolen. How many were lost before a message is kept by message, not by page, as the
requirement (R4) puts it.
"""

from collections import deque

from tests_host.core.replay_kit import Driver, digest, payload
from tests_host.core.ring_driver import RingDriver

HEADER = 8


class Message:
    def __init__(self, data, tag, lost):
        self.data, self.tag, self.lost = data, tag, lost
        self.packet_id = 0

    def size(self):
        return HEADER + len(self.data)


class Page:
    def __init__(self, born):
        self.born = born
        self.unread = deque()
        self.written = 0


class Lane:
    """`used` pages, oldest first; a `work` page or None; `open`, None or (page, payload)."""

    def __init__(self):
        self.used = deque()
        self.work = None
        self.open = None
        self.lost_at_end = 0
        self.appended = self.acked = self.refused = self.dropped = 0
        self.lost = {"stolen": 0, "expired": 0}
        self.max_age = 0

    def pages(self):
        return [*self.used, *([self.work] if self.work else [])]

    def messages(self):
        return [message for page in self.pages() for message in page.unread]

    def lose_before(self, page, count):
        """`count` messages before this page, or before what is next to come, are lost."""
        pages = self.pages()
        rest = pages[pages.index(page) :] if page else []
        first = next((page.unread[0] for page in rest if page.unread), None)
        if first:
            first.lost += count
        else:
            self.lost_at_end += count


class RingModel(Driver):
    FIELDS = RingDriver.FIELDS

    def __init__(self, pages, page_size, lanes, spare, locked):
        self.pages, self.page_size, self.locked = pages, page_size, locked
        self.lanes = [Lane() for _ in range(lanes)]
        self.high_water = self.seconds = self.count = 0
        self.pinned = None  # the lane whose first page is kept for its first message
        self.in_flight = self.stray_acks = self.told = self.told_last = 0

    # -- what there is to see --------------------------------------------------------------------

    def free(self):
        return self.pages - sum(len(lane.pages()) for lane in self.lanes)

    def state(self):
        messages = [lane.messages() for lane in self.lanes]
        work = sum(lane.work is not None for lane in self.lanes)
        born = [p.born for lane in self.lanes for p in lane.pages() if p.unread]
        out = [
            sum(map(len, messages)),
            self.free(),
            work,
            self.pages - self.free() - work,
            self.high_water,
            100 * (self.pages - self.free()) // self.pages,
            sum(message.size() for held in messages for message in held),
            self.seconds - min(born, default=self.seconds),
            self.in_flight,
            self.stray_acks,
            self.told,
            self.told_last,
        ]
        for lane, held in zip(self.lanes, messages, strict=True):
            gone = lane.acked + lane.dropped + sum(lane.lost.values())
            assert lane.appended == gone + len(held)
            out += [len(held), lane.acked, *lane.lost.values(), lane.refused, lane.dropped]
            out += [lane.appended, self.room(lane)]
        return tuple(out + [0] * (len(self.FIELDS) - len(out)))

    def room(self, lane):
        if lane.work is None or lane.open:
            return 0
        return max(0, self.page_size - lane.work.written - HEADER)

    # -- operations ------------------------------------------------------------------------------

    def append(self, size, lane, tag):
        self.count += 1
        lane = self.checked(size, lane, tag)
        if not self.make_room(size, lane):
            lane.refused += 1
            lane.lost_at_end += 1
            return 0
        self.store(lane, lane.work, payload(self.count, size), tag)
        return 1

    def reserve(self, size, lane):
        self.count += 1
        lane = self.checked(size, lane, 0)
        if not self.make_room(size, lane):
            return 0
        lane.open = lane.work, payload(self.count, size)
        return 1

    def commit(self, size, lane, tag):
        lane = self.lane(lane)
        if not lane.open or not 0 <= tag <= 65535:
            raise ValueError("none open, or bad tag")
        page, data = lane.open
        if not 0 <= size <= len(data):
            raise ValueError("more than reserved")
        lane.open = None
        self.store(lane, page, data[:size], tag)
        return 1

    def cancel(self, lane):
        lane = self.lane(lane)
        page = lane.open and lane.open[0]
        lane.open = None
        if page and not page.unread:
            if page is lane.work:
                lane.work = None
            else:
                lane.used.remove(page)

    def head(self):
        lane = self.find()
        if not lane:
            return ()
        if self.locked:
            self.pinned = lane
        first = lane.used[0].unread[0]
        number = self.lanes.index(lane)
        return digest(first.data), first.tag, number, first.packet_id, first.lost

    def sent(self, packet_id):
        if self.in_flight or not 1 <= packet_id <= 65535 or not self.find():
            raise ValueError("in flight, bad id, or nothing there")
        self.pinned = self.find()
        self.in_flight = self.pinned.used[0].unread[0].packet_id = packet_id

    def ack(self, packet_id):
        if packet_id != self.in_flight or packet_id == 0:
            self.stray_acks += 1
            return 0
        self.pinned.acked += 1
        self.advance(self.pinned)
        return 1

    def rewind(self):
        self.in_flight = 0

    def drop(self, reason):
        lane = self.find()
        if not lane:
            return 0
        first = lane.used[0].unread[0]
        self.tell(first, lane, reason)
        lane.dropped += 1
        page = self.advance(lane)
        lane.lose_before(page, first.lost + 1)
        return 1

    def retag(self, tag):
        lane = self.find()
        if not lane:
            return 0
        if self.locked:
            self.pinned = lane
        if not 0 <= tag <= 65535:
            raise ValueError("bad tag")
        lane.used[0].unread[0].tag = tag
        return 1

    def wait(self, seconds):
        self.seconds += seconds

    def limit_age(self, lane, seconds):
        self.lanes[lane].max_age = seconds

    def expire(self):
        """Lose the pages begun longer ago than their lane allows, but what is in use (R10)."""
        gone = 0
        for lane in self.lanes:
            since = self.seconds - lane.max_age if lane.max_age else 0
            if lane.work and lane.work.unread and not lane.open and lane.work.born < since:
                self.close(lane)
            for page in self.losable(lane):
                if page.born < since:
                    gone += len(page.unread)
                    self.lose(lane, page, "expired")
        return gone

    # -- how -------------------------------------------------------------------------------------

    def lane(self, number):
        if not 0 <= number < len(self.lanes):
            raise ValueError("no such lane")
        return self.lanes[number]

    def checked(self, size, lane, tag):
        lane = self.lane(lane)
        if not 0 <= size <= self.page_size - HEADER or not 0 <= tag <= 65535 or lane.open:
            raise ValueError("too large, bad tag, or a reservation open")
        return lane

    def store(self, lane, page, data, tag):
        message = Message(data, tag, lane.lost_at_end)
        lane.lost_at_end = 0
        lane.appended += 1
        page.unread.append(message)
        page.written += message.size()

    def make_room(self, size, lane):
        """A work page with room for a message of `size`: this one, a free or a stolen one (R3)."""
        if lane.work and lane.work.written + HEADER + size <= self.page_size:
            return True
        self.close(lane)
        if not self.free() and not self.steal(lane):
            return False
        lane.work = Page(self.seconds)
        self.high_water = max(self.high_water, self.pages - self.free())
        return True

    def close(self, lane):
        """The work page becomes the newest used one."""
        if lane.work and lane.work.unread:
            lane.used.append(lane.work)
        lane.work = None

    def steal(self, writer):
        """Free a page of the lowest lane not above the writer's; False when there is none (R4)."""
        for lane in self.lanes[: self.lanes.index(writer) + 1]:
            if self.steal_used(lane):
                return True
            if lane is not writer and lane.work and not lane.open:
                self.close(lane)
                if self.free() or self.steal_used(lane):
                    return True
        return False

    def steal_used(self, lane):
        victims = self.losable(lane)
        if victims:
            self.lose(lane, victims[0], "stolen")
        return bool(victims)

    def losable(self, lane):
        """The used pages that are neither read from nor written to."""
        kept = [lane.open and lane.open[0], lane.used[0] if lane is self.pinned else None]
        return [page for page in lane.used if page not in kept]

    def lose(self, lane, page, reason):
        for message in page.unread:
            self.tell(message, lane, reason)
        lane.lost[reason] += len(page.unread)
        lost = sum(message.lost + 1 for message in page.unread)
        pages = lane.pages()
        after = pages[pages.index(page) + 1 :]
        lane.used.remove(page)
        lane.lose_before(after[0] if after else None, lost)

    def find(self):
        """The lane of the next message, its work page promoted if need be; or None (R5)."""
        if self.pinned:
            return self.pinned
        for lane in reversed(self.lanes):
            if not lane.used and lane.work and lane.work.unread:
                self.close(lane)
            if lane.used and lane.used[0].unread:
                return lane
        return None

    def advance(self, lane):
        """The first message is gone; the page that is first then, or None."""
        page = lane.used[0]
        page.unread.popleft()
        if not page.unread and not (lane.open and lane.open[0] is page):
            lane.used.popleft()
        self.pinned = None
        self.in_flight = 0
        pages = lane.pages()
        return pages[0] if pages else None

    def tell(self, message, lane, reason):
        self.told += 1
        number = self.lanes.index(lane)
        text = f"{digest(message.data)} {message.tag} {number} {reason}"
        self.told_last = digest(text.encode())
