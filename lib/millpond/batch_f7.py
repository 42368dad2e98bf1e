"""0xF7 batches: many readings in one binary payload, each moment written once (seed 004).

Everything is big-endian, the values too:

    0xF7 | number of groups u32
    each group:  timestamp u32 | device type u16 | serial u32 | number of values u32
    each value:  tag id u16 | status u8, and for status 0: count u8 | size u8 (1, 2, 4) | values

Writer: `begin`, `add` for each reading, `end`. Consecutive readings of the same second share a
group. Invariant: what `add` accepted fits between `begin`'s bounds, and what it did not accept
changed nothing. Both numbers are known only at the end, so the bytes are a batch only after it.

The strict reader is `batch_reader`.
"""

from micropython import const

from millpond.limits import within
from millpond.reading import KIND_SIZES, RECORD_HEAD, UNIX_FROM

MAGIC = const(0xF7)

_BATCH_HEAD = const(5)
_GROUP_HEAD = const(14)
_VALUE_HEAD = const(5)
_STATUS_SIZE = const(3)  # a value that is a status
_GROUP_COUNT_AT = const(10)


class F7Writer:
    """Writes the readings of one device as an 0xF7 batch into a buffer; allocates nothing.

    `device_type` is a u16 and `serial` a u32. `count` is the number of readings in the batch, and
    `unstamped` whether any of them was written before the clock knew the time.
    """

    def __init__(self, device_type, serial):
        within("device type", device_type, 65535)
        within("serial", serial, 4294967295)
        self._device = device_type.to_bytes(2, "big") + serial.to_bytes(4, "big")
        self._buf = bytearray()
        self.at = self._pos = self._limit = 0
        self._groups = self._group_at = self._group_count = 0
        self._seconds = -1
        self.count = 0
        self.unstamped = False

    def begin(self, buf, at, limit):
        """Start an empty batch of at most `limit` bytes at buf[at]; ValueError with no room."""
        if limit < _BATCH_HEAD or at < 0 or at + limit > len(buf):
            raise ValueError("batch of {} bytes: no room in {} from {}".format(limit, len(buf), at))
        buf[at] = MAGIC
        self._buf = buf
        self.at = at
        self._pos = at + _BATCH_HEAD
        self._limit = at + limit
        self._groups = self.count = 0
        self._seconds = -1
        self.unstamped = False

    def add(self, record, at, clock):
        """Append the reading whose record (`pack_reading`) is at record[at]; False if no room."""
        seconds = record[at + 2] << 24 | record[at + 3] << 16 | record[at + 4] << 8 | record[at + 5]
        end = self._pos + _value_size(record, at)
        if seconds != self._seconds:
            end += _GROUP_HEAD
        if end > self._limit:
            return False
        if seconds != self._seconds:
            self._open_group(seconds, clock)
        _put_value(self._buf, self._pos, record, at)
        self._pos = end
        self._group_count += 1
        self.count += 1
        return True

    def end(self):
        """Complete the batch; its length in bytes."""
        self._close_group()
        _put32(self._buf, self.at + 1, self._groups)
        return self._pos - self.at

    def _open_group(self, seconds, clock):
        self._close_group()
        buf = self._buf
        at = self._pos
        clock.stamp(buf, at, seconds)
        if not clock.known:
            self.unstamped = True
        buf[at + 4 : at + _GROUP_COUNT_AT] = self._device
        self._group_at = at
        self._group_count = 0
        self._groups += 1
        self._seconds = seconds
        self._pos = at + _GROUP_HEAD

    def _close_group(self):
        if self._groups:
            _put32(self._buf, self._group_at + _GROUP_COUNT_AT, self._group_count)


def _value_size(record, at):
    """How many bytes a record's reading takes in a batch."""
    if record[at + 6]:
        return _STATUS_SIZE
    return _VALUE_HEAD + record[at + 8] * KIND_SIZES[record[at + 7]]


def _put_value(buf, pos, record, at):
    buf[pos] = record[at]
    buf[pos + 1] = record[at + 1]
    buf[pos + 2] = record[at + 6]
    if record[at + 6]:
        return
    size = KIND_SIZES[record[at + 7]]
    buf[pos + 3] = record[at + 8]
    buf[pos + 4] = size
    pos += _VALUE_HEAD
    at += RECORD_HEAD
    size *= record[at - 1]
    while size:
        size -= 1
        buf[pos + size] = record[at + size]


def count_f7(buf, at, length):
    """How many readings the batch at buf[at:at + length] holds. Allocates nothing."""
    end = at + length
    at += _BATCH_HEAD
    count = 0
    while at + _GROUP_HEAD <= end:
        count += _get32(buf, at + _GROUP_COUNT_AT)
        at = _skip_group(buf, at, end)
    return count


def restamp_f7(buf, at, length, clock):
    """Turn seconds since the start into Unix time, in place, where a group still has them."""
    length += at  # the end; one more variable would take the frame from the heap
    at += _BATCH_HEAD
    while at + _GROUP_HEAD <= length:
        if buf[at] < UNIX_FROM:
            clock.stamp(buf, at, _get32(buf, at))
        at = _skip_group(buf, at, length)


def _skip_group(buf, pos, end):
    """The position behind the group at `pos`; near or past `end` if the group is cut short."""
    left = _get32(buf, pos + _GROUP_COUNT_AT)
    pos += _GROUP_HEAD
    while left and pos + _STATUS_SIZE <= end:
        left -= 1
        if buf[pos + 2]:
            pos += _STATUS_SIZE
        elif pos + _VALUE_HEAD <= end:
            pos += _VALUE_HEAD + buf[pos + 3] * buf[pos + 4]
        else:
            return end
    return pos


def _get32(buf, at):
    return buf[at] << 24 | buf[at + 1] << 16 | buf[at + 2] << 8 | buf[at + 3]


def _put32(buf, at, number):
    buf[at] = number >> 24
    buf[at + 1] = (number >> 16) & 0xFF
    buf[at + 2] = (number >> 8) & 0xFF
    buf[at + 3] = number & 0xFF
