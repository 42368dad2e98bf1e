"""What a logic test needs, on CPython and on MicroPython alike.

A logic test is a plain `test_*` function without arguments. It imports the core, this kit and
what both interpreters have; conftest.py runs it on each of them.
"""

import sys

MICROPYTHON = sys.implementation.name == "micropython"


def raises(kind, call, *args, **kwargs):
    """Assert that `call(*args, **kwargs)` raises `kind`; return its message as text."""
    try:
        call(*args, **kwargs)
    except kind as error:
        return str(error)
    raise AssertionError("{} was not raised".format(kind.__name__))


def no_alloc(call):
    """Run `call()` with the heap locked on MicroPython (an allocation raises MemoryError)."""
    if not MICROPYTHON:
        return call()
    import micropython

    micropython.heap_lock()
    try:
        return call()
    finally:
        micropython.heap_unlock()
