"""What a logic test needs, on CPython and on MicroPython alike.

A logic test is a plain `test_*` function without arguments. It imports the core, this kit and
what both interpreters have; conftest.py runs it on each of them.
"""

import sys

MICROPYTHON = sys.implementation.name == "micropython"
WEBASSEMBLY = sys.platform == "webassembly"  # the 32-bit build
_SLACK = 512  # bytes


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


def leaves_the_heap_alone(call):
    """Run `call` four times; on MicroPython, assert that it takes nothing from the heap.

    A locked heap shows what is allocated, and where, but not a frame too large for the stack:
    MicroPython takes it from the heap at each call and gives it back, and from the stack when the
    heap is locked. So the collector is set to run after the next _SLACK bytes; if it has run, the
    garbage laid out before is gone. `call` must do what it does at least ten times to be seen.
    """
    call()
    if not MICROPYTHON:
        return
    no_alloc(call)
    if WEBASSEMBLY:
        assert bytes_taken(call) == 0
        return
    import gc

    gc.collect()
    empty = gc.mem_alloc()
    garbage = [None] * 40
    for i in range(40):
        garbage[i] = bytearray(1000)
    before = gc.mem_alloc()
    gc.threshold(before - empty + _SLACK)
    del garbage
    call()
    left = gc.mem_alloc()
    gc.threshold(-1)
    assert left >= before, "the collector ran: {} bytes before, {} left".format(before, left)


def bytes_taken(call):
    """The bytes that `call` took from the heap, on WEBASSEMBLY, where nothing is given back."""
    import gc

    call()
    before = gc.mem_alloc()
    call()
    return gc.mem_alloc() - before
