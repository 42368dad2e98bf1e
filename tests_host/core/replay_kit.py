"""Recorded traces: what was done to a queue or ring, and what a model said must come of it.

A trace is `(config, steps)`, and a step `(operation, result, changed)`: `operation` is a tuple of
a name and its arguments, `result` what it must give, and `changed` the places and new values,
alternating, of what `state()` must show otherwise than before.

A driver does such operations to the real thing: `step(operation)` gives the result, or the name
of the error raised; `state()` gives the tuple whose places FIELDS names; `check()` proves the
invariants. A model (tests_host/models) has the same three, so that the state machines drive both
side by side, record what they do, and any interpreter can do it again (`replay`).
"""

from binascii import crc32

_BASE = bytes([(i * i * 7 + i * 13) % 251 for i in range(509)])


def payload(n, size):
    """The payload of message `n`: other bytes for each of 509 messages in a row."""
    start = n * 31 % len(_BASE)
    return (_BASE * (size // len(_BASE) + 2))[start : start + size]


def digest(data):
    """Length and contents of bytes as one small int."""
    return (crc32(data) + len(data) * 65537) & 0x3FFFFFFF


class Driver:
    """Operations by name: `step(("peek", 5))` calls `peek(5)` and gives what it returns."""

    FIELDS = ()
    ERRORS = (ValueError, TypeError)

    def step(self, operation):
        try:
            return getattr(self, operation[0])(*operation[1:])
        except self.ERRORS as error:
            return type(error).__name__
        except NotImplementedError:  # MicroPython's for a slice to be set from what is no bytes
            return "TypeError"

    def check(self):
        """Prove the invariants, where there are any to be proven."""


class Lock:
    """One that would wait for ever where it is taken twice, and so fails there."""

    def __init__(self):
        self.is_held = False

    def acquire(self):
        assert not self.is_held, "taken twice"
        self.is_held = True

    def release(self):
        assert self.is_held, "given back twice"
        self.is_held = False


def replay(make, traces):
    """Do each trace again with `make(*config)`; AssertionError names the step that differs."""
    assert traces
    for number, (config, steps) in enumerate(traces):
        driver = make(*config)
        state = [0] * len(driver.FIELDS)
        for at, (operation, result, changed) in enumerate(steps):
            for i in range(0, len(changed), 2):
                state[changed[i]] = changed[i + 1]
            where = "trace {} {}, step {} {}".format(number, config, at, operation)
            _compare(where, driver, driver.step(operation), result, state)


def _compare(where, driver, given, result, state):
    if given != result:
        raise AssertionError("{}: {} given, {} expected".format(where, given, result))
    for name, one, other in zip(driver.FIELDS, driver.state(), state):
        if one != other:
            raise AssertionError("{}: {} is {}, {} expected".format(where, name, one, other))
    try:
        driver.check()
    except (AssertionError, RuntimeError) as error:
        raise AssertionError("{}: {}".format(where, error))
