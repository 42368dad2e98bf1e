"""Receipts: what became of a message, told to whoever published it (S8).

A message published with a callback is an item of a DispatchQueue:

    pending --handed to the ring--> in progress --acknowledged--> SUCCESS
       ^                                |-------dropped---------> ERROR, with the reason
       +--- the ring refused it ---+    |-------too late--------> TIMEOUT
                                        +-------shut down-------> CANCELLED

In the ring it carries the tag TRACKED, and is known by where its payload stands there, which is
its own as long as it is stored. Acknowledgements and drops are noted when they happen, in the
middle of the ring's work, and told at the next `work`; so a callback may do anything, such as
publish again. A message without the tag pays one comparison.
"""

from millpond.dispatch import ERROR, NO_LIMIT, RETRYABLE_ERROR, SUCCESS, DispatchQueue
from millpond.message import TAG_TRACKED, make_tag


class Receipts:
    """Tracks up to `capacity` messages published with a callback.

    `hand_to` says where they go. `timeout_s` is how long a message may take from `publish` to its
    acknowledgement; it may still be delivered after that.
    """

    def __init__(self, ledger, topics, clock, capacity=16, timeout_s=3600):
        self._ledger = ledger
        self._topics = topics
        self._packer = self._pack = None
        self._items = {}
        self._noted = []
        self._end = self._on_end
        self._queue = DispatchQueue(
            self._process,
            clock.elapsed_s,
            capacity,
            max_enqueued_time_s=timeout_s,
            max_retry_count=NO_LIMIT,  # the time-out is what ends trying
        )

    def hand_to(self, packer, pack):
        """Messages go to `packer`, after `pack()` has brought it what the intake holds."""
        self._packer = packer
        self._pack = pack

    def publish(self, topic, payload, priority, qos, retained, on_complete):
        """Track a message; its id, or 0 when `capacity` of them are on their way.

        `on_complete(payload, result, reason, None)` is called once, from `work`; the results are
        those of `millpond.dispatch`. ValueError: a bad topic, QoS or priority, or a payload larger
        than a page.
        """
        self._packer.check_size(len(payload), priority)
        tag = make_tag(self._topics.index(topic), qos, retained) | TAG_TRACKED
        return self._queue.add((payload, priority, tag), self._end, on_complete)

    def work(self):
        """Tell what was noted, and hand on what is pending; to be called often."""
        while self._noted:
            item, result, reason = self._noted.pop(0)
            self._queue.complete(item, result, reason)
        if not self._queue.is_empty():
            self._queue.do_work()

    def close(self):
        """Shut down: whatever is on its way is told CANCELLED."""
        self._queue.close()

    def delivered(self, at, length, tag):
        """The broker has the message at `at`. Fit for the Sender's callback."""
        self._ledger.delivered(at, length, tag)
        if tag & TAG_TRACKED:
            self._note(at, SUCCESS, None)

    def lost(self, at, length, tag, lane, reason):
        """The message at `at` is lost. Fit for the ring's `on_drop`."""
        self._ledger.lost(at, length, tag, lane, reason)
        if tag & TAG_TRACKED:
            self._note(at, ERROR, reason)

    def _note(self, at, result, reason):
        item = self._items.pop(at, None)
        if item is not None:
            self._noted.append((item, result, reason))

    def _process(self, item, message, complete, context):
        payload, priority, tag = message
        self._pack()
        at = self._packer.try_put(payload, priority, tag)
        if at:
            self._items[at] = item
        else:
            complete(item, RETRYABLE_ERROR, "refused")

    def _on_end(self, message, result, reason, on_complete):
        on_complete(message[0], result, reason, None)
