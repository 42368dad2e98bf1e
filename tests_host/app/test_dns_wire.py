"""DNS packets: the query's exact bytes, and nothing but a right answer believed."""

from firmware import dns_wire
from firmware.address import is_number
from millpond.message import ProtocolError
from tests_host.kit import raises

QUESTION = b"\x04pond\x07example\x00\x00\x01\x00\x01"
POINTER = b"\xc0\x0c"  # to the question's name
ADDRESS = b"\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x07"


def answer(*records, flags=b"\x81\x80", question=QUESTION, questions=1):
    counts = bytes((0, questions, 0, len(records), 0, 0, 0, 0))
    return b"\x12\x34" + flags + counts + question + b"".join(records)


def read(*records, **options):
    return dns_wire.read(answer(*records, **options), "pond.example")


def refused(data):
    return raises(ProtocolError, dns_wire.read, data, "pond.example")


def test_the_query():
    assert dns_wire.query(0x1234, "pond.example") == (
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + QUESTION
    )
    assert dns_wire.query(1, "pond.example.")[12:] == QUESTION
    assert dns_wire.query(1, "a" * 63)[12:14] == b"\x3fa"


def test_names_that_are_none_are_refused():
    for name in ("a..b", ".a", "", "a" * 64, "b.".join(["a" * 60] * 5)):
        assert "no host name" in raises(ValueError, dns_wire.query, 1, name)


def test_an_address_with_its_time_to_live():
    assert read(POINTER + ADDRESS) == (0, ["192.0.2.7"], 60)
    assert read(b"\x04POND\x07Example\x00" + ADDRESS) == (0, ["192.0.2.7"], 60)


def test_several_addresses_with_the_shortest_time():
    other = b"\x00\x01\x00\x01\x00\x00\x00\x07\x00\x04\x01\x02\x03\x04"
    assert read(POINTER + ADDRESS, POINTER + other) == (0, ["192.0.2.7", "1.2.3.4"], 7)


def test_a_chain_of_other_names_is_followed_with_its_shortest_time():
    alias = POINTER + b"\x00\x05\x00\x01\x00\x00\x00\x05\x00\x07\x04pool\xc0\x11"
    target = b"\x04pool\xc0\x11" + ADDRESS
    assert read(alias, target) == (0, ["192.0.2.7"], 5)


def test_an_alias_may_stand_behind_what_it_stands_for():
    def alias(owner, name):
        return owner + b"\x00\x05\x00\x01\x00\x00\x00\x05\x00\x07\x04" + name + b"\xc0\x11"

    target = b"\x04deep\xc0\x11" + ADDRESS
    one, two = alias(POINTER, b"pool"), alias(b"\x04pool\xc0\x11", b"deep")
    for records in ((target, one, two), (two, target, one), (two, one, target)):
        assert read(*records) == (0, ["192.0.2.7"], 5)


def test_aliases_without_end_lead_nowhere():
    there = POINTER + b"\x00\x05\x00\x01\x00\x00\x00\x05\x00\x07\x04pool\xc0\x11"
    back = b"\x04pool\xc0\x11\x00\x05\x00\x01\x00\x00\x00\x05\x00\x02\xc0\x0c"
    assert read(there, back) == (0, [], 0)


def test_of_an_answer_that_was_cut_what_came_whole_counts():
    cut = b"\x83\x80"
    other = POINTER + ADDRESS[:-1]
    assert read(POINTER + ADDRESS, other, flags=cut) == (0, ["192.0.2.7"], 60)
    for records in ((), (other,), (b"\xc0",)):
        rcode, addresses, _ = read(*records, flags=cut)
        assert dns_wire.RCODES[rcode] == "its answer does not fit a packet" and addresses == []
    # Some say nothing of the cut, which is then made where the packet is received.
    whole = answer(*(40 * [POINTER + ADDRESS]))
    assert len(whole) > 512
    assert dns_wire.read(whole[:512], "pond.example") == (0, 30 * ["192.0.2.7"], 60)
    assert "ends early" in refused(whole[:511])


def test_what_belongs_to_another_name_or_kind_is_passed_over():
    foreign = b"\x04evil\xc0\x11" + ADDRESS
    ipv6 = POINTER + b"\x00\x1c\x00\x01\x00\x00\x00\x3c\x00\x10" + bytes(16)
    chaos = POINTER + b"\x00\x01\x00\x03\x00\x00\x00\x3c\x00\x04\x01\x02\x03\x04"
    assert read(foreign, ipv6, chaos) == (0, [], 0)
    assert read(foreign, ipv6, chaos, POINTER + ADDRESS)[1] == ["192.0.2.7"]
    assert read() == (0, [], 0)


def test_refusals_have_their_RCODE():
    for rcode in (1, 2, 3, 4, 5, 9):
        assert read(flags=bytes((0x81, 0x80 | rcode))) == (rcode, [], 0)
    # A server that understood nothing repeats nothing.
    assert dns_wire.read(answer(flags=b"\x81\x81", question=b"", questions=0), "a") == (1, [], 0)


def test_answers_are_known_by_their_id():
    data = answer(POINTER + ADDRESS)
    assert dns_wire.is_for(data, 0x1234)
    assert not dns_wire.is_for(data, 0x1235)
    assert not dns_wire.is_for(data[:11], 0x1234)
    assert not dns_wire.is_for(b"\x12\x34\x01" + bytes(20), 0x1234)


def test_what_is_not_allowed_for_is_refused():
    for data, words in (
        (b"\x12\x34", "no answer"),
        (answer(flags=b"\x01\x00"), "no answer"),
        (answer(flags=b"\x91\x80"), "no answer"),
        (answer(question=b"\x04evil\x07example\x00\x00\x01\x00\x01"), "another question"),
        (answer(question=b"\x04pond\x07example\x00\x00\x1c\x00\x01"), "another question"),
        (answer(questions=0, question=b""), "0 questions"),
        (answer(POINTER + b"\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x03\x01\x02\x03"), "3 bytes"),
        (answer(b"\xc0\x1e" + ADDRESS), "continues at 30, not before 30"),
        (answer(b"\xc0\xff" + ADDRESS), "continues"),
        (answer(b"\x80" + ADDRESS), "kind 0x80"),
        (answer(b"".join([b"\x3f" + b"a" * 63] * 5) + ADDRESS), "253"),
    ):
        assert words in refused(data), (data, refused(data))


def test_every_truncation_is_refused():
    whole = answer(POINTER + ADDRESS)
    for size in range(len(whole)):
        assert refused(whole[:size])


def test_random_and_damaged_answers_raise_nothing_else():
    state = 12345
    whole = answer(POINTER + b"\x00\x05\x00\x01\x00\x00\x00\x05\x00\x02\xc0\x11", POINTER + ADDRESS)
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(1 + state % 4):
            state = (state * 75 + 74) % 65537
            at = state % len(data)
            state = (state * 75 + 74) % 65537
            data[at] = state & 0xFF
        try:
            rcode, addresses, ttl = dns_wire.read(bytes(data), "pond.example")
        except ProtocolError:
            continue
        assert all([is_number(address) for address in addresses])
