"""JSON batches: the readable alternative to 0xF7, an array of the objects of seed 004.

    [{"id":42,"values":[23.7],"ts":1709337600},{"id":43,"status":3,"ts":1709337600}]

Writer: the same three calls as F7Writer. A timestamp is always ten characters wide, with spaces
in front while it is seconds since the start, so that it can be rewritten in place; and nothing
but an object's end has a `}`, which is how a stored batch is counted. JSON knows neither NaN nor
infinity: such a value becomes null. Small strings are allocated for each reading.

The strict reader is `batch_reader`.
"""

from struct import pack, unpack_from

from micropython import const

from millpond.reading import BOOL, FLOAT32, KIND_FORMATS, KIND_SIZES, RECORD_HEAD

OPENING = const(0x5B)  # [

_CLOSING = const(0x5D)  # ]
_COMMA = const(0x2C)
_SPACE = const(0x20)
_BRACE = const(0x7D)  # }
_ZERO = const(0x30)
_STAMP_SIZE = const(10)
_MIN_OBJECT = const(36)  # ,{"id":0,"status":1,"ts":1709337600}

_FLOAT_FORMS = ("%.6g", "%.7g", "%.8g", "%.9g")


class JsonWriter:
    """Writes readings as a JSON batch into a buffer; members and methods as in F7Writer.

    `device_type` and `serial` do not appear in JSON, where the topic and the announcement name
    the device; they are accepted so that either writer can be made in the same way.
    """

    def __init__(self, device_type=0, serial=0):
        self._buf = bytearray()
        self.at = self._pos = self._limit = 0
        self.count = 0
        self.unstamped = False

    def begin(self, buf, at, limit):
        """Start an empty batch of at most `limit` bytes at buf[at]; ValueError with no room."""
        if limit < 2 or at < 0 or at + limit > len(buf):
            raise ValueError("batch of {} bytes: no room in {} from {}".format(limit, len(buf), at))
        buf[at] = OPENING
        self._buf = buf
        self.at = at
        self._pos = at + 1
        self._limit = at + limit
        self.count = 0
        self.unstamped = False

    def add(self, record, at, clock):
        """Append the reading whose record (`pack_reading`) is at record[at]; False if no room."""
        body = _body(record, at)
        pos = self._pos
        comma = 1 if self.count else 0
        end = pos + comma + len(body) + _STAMP_SIZE + 1
        if end >= self._limit:
            return False
        buf = self._buf
        if comma:
            buf[pos] = _COMMA
            pos += 1
        buf[pos : pos + len(body)] = body
        seconds = record[at + 2] << 24 | record[at + 3] << 16 | record[at + 4] << 8 | record[at + 5]
        _put_stamp(buf, end - 1 - _STAMP_SIZE, seconds, clock)
        buf[end - 1] = _BRACE
        if not clock.known:
            self.unstamped = True
        self._pos = end
        self.count += 1
        return True

    def end(self):
        """Complete the batch; its length in bytes."""
        self._buf[self._pos] = _CLOSING
        return self._pos + 1 - self.at


def count_json(buf, at, length):
    """How many readings the batch at buf[at:at + length] holds. Allocates nothing."""
    end = at + length
    count = 0
    while at < end:
        if buf[at] == _BRACE:
            count += 1
            at += _MIN_OBJECT
        else:
            at += 1
    return count


def restamp_json(buf, at, length, clock):
    """Turn seconds since the start into Unix time, in place, where an object still has them."""
    for i in range(at + _STAMP_SIZE, at + length):
        if buf[i] == _BRACE and buf[i - _STAMP_SIZE] == _SPACE:
            seconds = 0
            for k in range(i - _STAMP_SIZE, i):
                if buf[k] != _SPACE:
                    seconds = 10 * seconds + buf[k] - _ZERO
            _put_stamp(buf, i - _STAMP_SIZE, seconds, clock)


def _body(record, at):
    """The reading's object as bytes, up to the place of its timestamp."""
    tag_id = record[at] << 8 | record[at + 1]
    status = record[at + 6]
    if status:
        return b'{"id":%d,"status":%d,"ts":' % (tag_id, status)
    kind = record[at + 7]
    size = KIND_SIZES[kind]
    start = at + RECORD_HEAD
    stop = start + record[at + 8] * size
    values = ",".join([_text(kind, record, pos) for pos in range(start, stop, size)])
    return b'{"id":%d,"values":[%s],"ts":' % (tag_id, values.encode())


def _text(kind, record, at):
    """The value at record[at] as JSON: true, false, digits, or null for a float without them."""
    value = unpack_from(KIND_FORMATS[kind], record, at)[0]
    if kind == BOOL:
        return "true" if value else "false"
    if kind != FLOAT32:
        return str(value)
    if value - value != 0:
        return "null"
    return _float_text(value)


def _float_text(value):
    """As few digits as give the same float32 back."""
    wanted = pack(">f", value)
    text = ""
    for form in _FLOAT_FORMS:
        text = form % value
        if pack(">f", float(text)) == wanted:
            break
    return text


def _put_stamp(buf, at, seconds, clock):
    stamp = bytearray(4)
    clock.stamp(stamp, 0, seconds)
    buf[at : at + _STAMP_SIZE] = b"%10d" % int.from_bytes(stamp, "big")
