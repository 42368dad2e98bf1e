"""PageLists: which page stands in which list (seed 004, "Page States").

The free pages form one singly linked list, last in first out; the used pages of each lane form a
singly linked FIFO, oldest first. A page that stands in neither is somebody's work page. All lists
share one array of links, so that a page can stand in one of them at most.
"""

from array import array

from micropython import const

NONE = const(0xFFFF)


class PageLists:
    """The lists of `pages` pages (at most 65,534) in `lanes` lanes; all begin free."""

    def __init__(self, pages, lanes):
        self.pages = pages
        self.next = array("H", (page + 1 for page in range(pages)))
        self.next[pages - 1] = NONE
        self.free = 0
        self.free_count = pages
        self.first = [NONE] * lanes
        self.last = [NONE] * lanes
        self.high_water = 0

    def take(self):
        """Take a page off the free list, which must not be empty."""
        page = self.free
        self.free = self.next[page]
        self.free_count -= 1
        in_use = self.pages - self.free_count
        if in_use > self.high_water:
            self.high_water = in_use
        return page

    def release(self, page):
        """Put a page that stands in no list on the free list."""
        self.next[page] = self.free
        self.free = page
        self.free_count += 1

    def push(self, lane, page):
        """Put a page that stands in no list at the tail of the lane's FIFO."""
        self.next[page] = NONE
        if self.first[lane] == NONE:
            self.first[lane] = page
        else:
            self.next[self.last[lane]] = page
        self.last[lane] = page

    def remove(self, lane, before, page):
        """Take `page` out of the lane's FIFO; before it stands page `before`, or NONE."""
        after = self.next[page]
        if before == NONE:
            self.first[lane] = after
        else:
            self.next[before] = after
        if after == NONE:
            self.last[lane] = before

    def used(self, lane):
        """The lane's used pages, oldest first, for gauges and proofs."""
        page = self.first[lane]
        while page != NONE:
            yield page
            page = self.next[page]
