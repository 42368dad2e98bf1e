"""millpond: store-and-forward for telemetry, the portable core.

Nothing is imported before it is asked for, so that a board spends memory only on what it uses:

    from millpond import MessageQueue, PagedRing
"""

_WHERE = {
    "Clock": "clock",
    "DeliveryWatchdog": "watchdog",
    "DispatchQueue": "dispatch",
    "Ledger": "ledger",
    "Message": "message",
    "MessageQueue": "message_queue",
    "Packer": "packer",
    "PagedRing": "paged_ring",
    "ProtocolError": "message",
    "Sender": "sender",
    "TopicTable": "message",
}

__all__ = tuple(_WHERE)  # pyright: ignore[reportUnsupportedDunderAll]
__version__ = "0.1.0"


def __getattr__(name):
    try:
        module = __import__("millpond." + _WHERE.get(name, name), None, None, (name,))
    except ImportError:
        raise AttributeError(name)
    return getattr(module, name) if name in _WHERE else module
