"""Ledger: what became of every item the packer took, to the last reading.

An item is what one `enqueue` or one `put` brought: a reading or a message. The ring counts its
messages; a batch is one message of many items, so items are counted here, by looking into each
batch when it is delivered or lost, while its bytes still stand in the ring's buffer. Invariant,
after every call of the packer and the sender:

    taken = delivered + lost, whatever the reason + held (in the ring or in an open batch)

Together with the intake's own counters (refused, displaced, expired, cleared) this accounts for
every item ever produced.
"""

from millpond.batch import count_readings
from millpond.message import PRIORITIES, TAG_BATCH
from millpond.paged_ring import STOLEN
from millpond.sender import POISON

TOO_LARGE = "too_large"
MALFORMED = "malformed"
REFUSED = "refused"


class Ledger:
    """Counts items. `buffer` is the ring's; the Packer that is given the ledger sets it.

    `items_taken` and `items_delivered` are numbers; `items_lost` has for each reason (a word) a
    list of numbers by lane. The reasons: "stolen" by the ring for newer or more urgent ones,
    "refused" by the ring when put, "too_large" for a page, "malformed" as a reading, "poison" to
    the broker, and any word that the ring is told to drop a message for.
    """

    def __init__(self):
        self.buffer = b""
        self.items_taken = 0
        self.items_delivered = 0
        self.items_lost = {}
        for reason in (STOLEN, TOO_LARGE, MALFORMED, REFUSED, POISON):
            self.items_lost[reason] = [0] * PRIORITIES

    def delivered(self, at, length, tag):
        """The broker has the message at buffer[at:at + length]. Fit for the Sender's callback."""
        self.items_delivered += self.items_in(at, length, tag)

    def lost(self, at, length, tag, lane, reason):
        """The message at buffer[at:at + length] is lost. Fit for the ring's `on_drop` (R4)."""
        # Into an argument: one more variable would take the frame from the heap.
        length = self.items_in(at, length, tag)
        self.lose(lane, reason, length)

    def lose(self, lane, reason, items=1):
        """Count `items` that never were in the ring, or left it, for `reason`."""
        if reason not in self.items_lost:
            self.items_lost[reason] = [0] * PRIORITIES
        self.items_lost[reason][lane] += items

    def items_in(self, at, length, tag):
        """How many items a stored message is: its readings if it is a batch, else itself."""
        return count_readings(self.buffer, at, length) if tag & TAG_BATCH else 1

    def lost_for(self, reason):
        """Items lost for a reason, on all lanes."""
        return sum(self.items_lost.get(reason, ()))

    def lost_in_all(self):
        """Items lost, whatever the reason."""
        return sum([sum(by_lane) for by_lane in self.items_lost.values()])

    def held(self):
        """Items taken that are still on their way."""
        return self.items_taken - self.items_delivered - self.lost_in_all()
