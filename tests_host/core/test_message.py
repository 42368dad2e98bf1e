"""Constants, tags, Message and TopicTable."""

import millpond.message as message
from millpond.message import Message, TopicTable, encode_topic, make_tag
from tests_host.kit import no_alloc, raises


def test_Q2_constants_have_the_numbers_of_mqtt_and_of_the_seed():
    assert (message.QOS_AT_MOST_ONCE, message.QOS_AT_LEAST_ONCE, message.QOS_EXACTLY_ONCE) == (
        0,
        1,
        2,
    )
    assert (message.LOW, message.NORMAL, message.HIGH, message.CRITICAL) == (0, 1, 2, 3)


def test_R2_tag_holds_topic_qos_and_retained_and_leaves_room_for_the_others():
    assert make_tag(0, 0, False) == 0
    assert make_tag(255, 2, True) == 0x06FF
    for topic in (0, 1, 254, 255):
        for qos in (0, 1, 2):
            for retained in (False, True):
                tag = make_tag(topic, qos, retained)
                assert tag & message.TAG_TOPIC_MASK == topic
                assert (tag & message.TAG_QOS_MASK) >> message.TAG_QOS_SHIFT == qos
                assert bool(tag & message.TAG_RETAINED) == retained
                assert not tag & (message.TAG_BATCH | message.TAG_UNSTAMPED)


def test_R2_tag_bits_do_not_overlap():
    bits = (
        message.TAG_TOPIC_MASK,
        message.TAG_QOS_MASK,
        message.TAG_RETAINED,
        message.TAG_BATCH,
        message.TAG_UNSTAMPED,
    )
    union = 0
    for mask in bits:
        assert not union & mask
        union |= mask
    assert union <= 0xFFFF


def test_R2_tag_of_a_wrong_topic_or_qos_is_an_error():
    assert "256" in raises(ValueError, make_tag, 256, 0, False)
    assert "-1" in raises(ValueError, make_tag, -1, 0, False)
    assert "QoS 3" in raises(ValueError, make_tag, 0, 3, False)
    assert "QoS -1" in raises(ValueError, make_tag, 0, -1, False)


def test_Q1_message_has_every_field_of_the_seed():
    fresh = Message(16)
    assert fresh.id == 0 and fresh.topic == "" and fresh.topic_index == 0
    assert fresh.payload == bytearray(16) and fresh.length == 0
    assert fresh.qos == 1 and fresh.priority == message.NORMAL and fresh.retained is False
    assert fresh.created == 0 and fresh.expiry == 0
    assert fresh.delivery_count == 0 and fresh.acknowledged is False


def test_Q11_message_of_no_size_or_too_large_is_an_error():
    assert "slot size 0: 1 to 65535" in raises(ValueError, Message, 0)
    assert "slot size 65536" in raises(ValueError, Message, 65536)
    assert len(Message(65535).payload) == 65535


def test_Q1_topics_are_numbered_in_the_order_they_came():
    topics = TopicTable(3)
    assert [topics.index(t) for t in ("a", "b", "a", "c/d", "b")] == [0, 1, 0, 2, 1]
    assert len(topics) == 3
    assert [topics.text(i) for i in range(3)] == ["a", "b", "c/d"]
    assert topics.encoded(2) == b"c/d"


def test_Q1_index_of_a_topic_stands_for_it():
    topics = TopicTable(2)
    i = topics.index("a")
    assert topics.index(i) == i and topics.get(i) == i and topics.get("a") == i
    assert topics.get("b") is None and topics.get(1) is None
    assert "topic index 1: 1 topics" in raises(ValueError, topics.index, 1)
    assert "topic index -1" in raises(ValueError, topics.index, -1)
    assert len(topics) == 1


def test_L9_topic_is_encoded_as_utf8():
    """Report: mq#66, lib#746, lib#1073."""
    topics = TopicTable()
    assert topics.encoded(topics.index("halle/21°C")) == "halle/21°C".encode()
    assert len(topics.encoded(0)) == 11


def test_Q11_topic_that_may_not_be_published_to_is_an_error():
    assert "0 bytes" in raises(ValueError, encode_topic, "")
    for bad in ("a/+", "#", "a\0b", "+", "a/#/b"):
        topics = TopicTable()
        assert "not allowed" in raises(ValueError, topics.index, bad)
        assert len(topics) == 0 and topics.get(bad) is None


def test_Q11_topic_length_is_limited_in_utf8_bytes():
    """Report: mq#66, lib#746, lib#1073."""
    assert len(encode_topic("x" * 65535)) == 65535
    assert "65536 bytes" in raises(ValueError, encode_topic, "x" * 65536)
    assert len(encode_topic("°" * 32767)) == 65534
    text = raises(ValueError, encode_topic, "°" * 32768)
    assert "topic of 65536 bytes: 1 to 65535" in text


def test_Q11_topic_that_is_not_text_is_a_type_error():
    for bad in (None, 1.5, ("a",)):
        assert "text" in raises(TypeError, TopicTable().index, bad)
    assert "text" in raises(TypeError, encode_topic, b"a")


def test_Q11_full_topic_table_is_an_error_and_stays_as_it_was():
    topics = TopicTable(2)
    topics.index("a")
    topics.index("b")
    text = raises(ValueError, topics.index, "c")
    assert "'c'" in text and "2 topics is full" in text
    assert len(topics) == 2 and topics.get("c") is None
    assert topics.index("a") == 0 and topics.index("b") == 1


def test_Q11_topic_table_holds_1_to_256_topics():
    for bad in (0, -1, 257):
        assert "topic table of {}: 1 to 256".format(bad) in raises(ValueError, TopicTable, bad)
    topics = TopicTable(256)
    for i in range(256):
        assert topics.index("t{}".format(i)) == i
    raises(ValueError, topics.index, "one more")
    assert topics.text(255) == "t255" and topics.encoded(255) == b"t255"


def test_looking_up_a_known_topic_allocates_nothing():
    topics = TopicTable()
    topics.index("plant/data")
    seen = [0] * 2

    def look_up():
        for _ in range(50):
            seen[0] = topics.index("plant/data") + topics.index(0)
            topics.encoded(0)
            topics.text(0)
        seen[1] = 1

    no_alloc(look_up)
    assert seen == [0, 1]


def test_make_tag_allocates_nothing():
    no_alloc(lambda: make_tag(7, 1, True))
    assert make_tag(7, 1, True) == 0x0507
