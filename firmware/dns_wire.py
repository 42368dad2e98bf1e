"""DNS on the wire (RFC 1035): a query for the IPv4 addresses of a name, and a strict reader.

No I/O. An answer is read once, from front to back; a name in it may continue at an earlier place,
and only there, so that every name ends. What is not allowed for, or reaches beyond the end, is a
ProtocolError; but of an answer that was cut to fit a packet, the records before the cut count.
The records may stand in any order: not every server puts an alias before what it stands for.
"""

from micropython import const

from millpond.message import ProtocolError

NO_SUCH_NAME = const(3)
LARGEST = const(512)  # bytes of an answer
_CUT_SHORT = const(16)  # no RCODE: the answer was cut before the first address

# RCODEs (RFC 1035, 4.1.1), where the server could not or would not say.
RCODES = {
    1: "it did not understand the question",
    2: "it has failed",
    4: "it does not answer such questions",
    5: "it refuses to",
    _CUT_SHORT: "its answer does not fit a packet",
}

_HEADER = const(12)
_RECURSE = const(0x01)  # in the third byte: recursion desired
_ANSWER = const(0x80)  # there too
_OPCODE = const(0x78)
_TRUNCATED = const(0x02)
_RCODE = const(0x0F)  # in the fourth
_A = const(1)
_CNAME = const(5)
_IN = const(1)
_POINTER = const(0xC0)
_LONGEST_LABEL = const(63)
_LONGEST_NAME = const(253)
_LONGEST_CHAIN = const(8)  # of aliases


def query(packet_id, name):
    """The packet that asks for the address of `name`; ValueError when that is no host name."""
    return (
        bytes((packet_id >> 8, packet_id & 0xFF, _RECURSE, 0, 0, 1, 0, 0, 0, 0, 0, 0))
        + _encoded(name)
        + bytes((0, _A, 0, _IN))
    )


def is_for(data, packet_id):
    """Whether the packet is an answer to the query of that id: others may stray in."""
    return len(data) >= _HEADER and _word(data, 0) == packet_id and data[2] & _ANSWER != 0


def read(data, name):
    """(RCODE, addresses, TTL in s) of an answer; the addresses are texts, as many as are given."""
    if len(data) < _HEADER or data[2] & (_ANSWER | _OPCODE) != _ANSWER:
        raise ProtocolError("no answer to a query")
    wanted = _encoded(name.lower())
    rcode = data[3] & _RCODE
    at = _HEADER
    if _word(data, 4) == 1:
        asked, at = _name(data, at)
        if asked != wanted or _bytes(data, at, 4) != bytes((0, _A, 0, _IN)):
            raise ProtocolError("the answer is to another question")
        at += 4
    elif not rcode:
        raise ProtocolError("{} questions in the answer".format(_word(data, 4)))
    if rcode:
        return rcode, [], 0
    is_cut = data[2] & _TRUNCATED or len(data) >= LARGEST
    addresses, ttl = _follow(_records(data, at, is_cut), wanted)
    if is_cut and not addresses:
        return _CUT_SHORT, [], 0
    return 0, addresses, ttl


def _records(data, at, is_cut):
    """(owner, kind, TTL, address or other name) of each record from `at` on that is of use."""
    found = []
    try:
        for _ in range(_word(data, 6)):
            owner, at = _name(data, at)
            head = _bytes(data, at, 10)
            at += 10
            size = _word(head, 8)
            body = _bytes(data, at, size)
            kind = _word(head, 0)
            ttl = _word(head, 4) << 16 | _word(head, 6)
            if _word(head, 2) == _IN and kind == _A:
                if size != 4:
                    raise ProtocolError("an address of {} bytes: 4 expected".format(size))
                found.append((owner, kind, ttl, "{}.{}.{}.{}".format(*body)))
            elif _word(head, 2) == _IN and kind == _CNAME:
                found.append((owner, kind, ttl, _name(data, at)[0]))
            at += size
    except ProtocolError:
        if not is_cut:
            raise
    return found


def _follow(records, wanted):
    """The addresses of `wanted`, or of what it is another name for, and their shortest TTL."""
    ttl = 0x7FFFFFFF
    for _ in range(_LONGEST_CHAIN):
        mine = [record for record in records if record[0] == wanted]
        addresses = [record[3] for record in mine if record[1] == _A]
        aliases = [record for record in mine if record[1] == _CNAME]
        if addresses:
            return addresses, min([ttl] + [record[2] for record in mine])
        if not aliases:
            break
        wanted = aliases[0][3]
        ttl = min(ttl, aliases[0][2])
    return [], 0


def _encoded(name):
    labels = name.encode().split(b".")
    if labels[-1] == b"" and len(labels) > 1:
        labels.pop()
    out = b""
    for label in labels:
        if not 0 < len(label) <= _LONGEST_LABEL:
            raise ValueError("{}: no host name: parts of 1 to 63 bytes expected".format(name))
        out += bytes((len(label),)) + label
    if len(out) > _LONGEST_NAME + 1:
        raise ValueError("{}: no host name: 253 bytes at most".format(name))
    return out + b"\0"


def _name(data, at):
    """The name that stands at `at`, in small letters as `_encoded` gives it, and where it ends."""
    out = b""
    end = 0
    limit = at
    while True:
        size = _bytes(data, at, 1)[0]
        if size & _POINTER == _POINTER:
            target = _word(_bytes(data, at, 2), 0) & 0x3FFF
            if target >= limit:
                raise ProtocolError(
                    "a name that continues at {}, not before {}".format(target, limit)
                )
            end = end or at + 2
            at = limit = target
            continue
        if size > _LONGEST_LABEL:
            raise ProtocolError("part of a name of kind 0x{:02x}".format(size & _POINTER))
        out += _bytes(data, at, 1 + size)
        at += 1 + size
        if len(out) > _LONGEST_NAME + 2:
            raise ProtocolError("a name of more than 253 bytes")
        if not size:
            return bytes(out).lower(), end or at


def _word(data, at):
    return data[at] << 8 | data[at + 1]


def _bytes(data, at, n):
    if at + n > len(data):
        raise ProtocolError("an answer that ends early")
    return bytes(data[at : at + n])
