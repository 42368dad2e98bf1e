"""What `millpond` offers by name."""

import millpond
from tests_host.kit import raises


def test_every_public_name_leads_to_a_class():
    for name in millpond.__all__:
        assert isinstance(getattr(millpond, name), type), name


def test_names_can_be_imported():
    from millpond import MessageQueue, PagedRing

    assert MessageQueue(4).is_empty() and PagedRing(192, 64).pages == 3


def test_modules_can_be_imported():
    from millpond import sender

    assert sender.IDLE == 1


def test_an_unknown_name_is_an_AttributeError():
    assert "Missing" in raises(AttributeError, lambda: millpond.Missing)
