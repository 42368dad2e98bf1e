"""The proof of a PagedRing's invariants, kept apart because only tests and doubters run it."""

from millpond.page_lists import NONE

_HEADER = 8

# Where a lane's state list has these (see paged_ring).
_COUNT = 2
_PAGE = 3
_RESERVED = 4


def check(ring):
    """RuntimeError naming the first invariant of `ring` that is broken (R1)."""
    lists = ring.lists
    seen = bytearray(ring.pages)
    page = lists.free
    for _ in range(lists.free_count):
        _visit(page, seen)
        page = lists.next[page]
    _require(page == NONE, "free list longer than its count")
    for lane in range(ring.lanes):
        _check_lane(ring, lane, seen)
    _require(sum(seen) == ring.pages, "page in no list")
    pinned = ring.pinned
    if pinned != NONE:
        _require(lists.first[ring.head_lane] == pinned, "pinned page is not first")
    _require(not ring.in_flight or pinned != NONE, "in flight without a pin")


def _check_lane(ring, lane, seen):
    lists = ring.lists
    state = ring._work[lane]
    unread = state[_COUNT]
    page = NONE
    for page in lists.used(lane):
        _visit(page, seen)
        unread += _check_used(ring, page)
        _require(ring._unread[page] or page == state[_RESERVED], "empty page in USED")
    if page != NONE:
        _require(lists.last[lane] == page, "last page of a lane")
    if state[_PAGE] != NONE:
        _visit(state[_PAGE], seen)
    _require(unread == ring.held(lane), "messages held in a lane")


def _check_used(ring, page):
    """Walk the unread messages of a used page; their number."""
    start = page * ring.page_size
    at = start + ring._read[page]
    end = start + ring._write[page]
    _require(end <= (page + 1) * ring.page_size, "page written beyond its end")
    count = 0
    while at < end:
        at += _HEADER + (ring.buffer[at + 6] << 8) + ring.buffer[at + 7]
        count += 1
    _require(at == end, "message across a page's end")
    _require(count == ring._unread[page], "messages unread in a page")
    return count


def _visit(page, seen):
    _require(page < len(seen) and not seen[page], "page in two lists")
    seen[page] = 1


def _require(truth, what):
    if not truth:
        raise RuntimeError("PagedRing: " + what)
