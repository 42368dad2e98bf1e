"""What a board's firmware does between reset and REPL, for the MicroPython unix port.

Order, as on an ESP32: load the stand-ins for `machine` and `network`, make the given directory
the whole filesystem, run boot.py, then main.py unless boot.py failed or the raw REPL is wanted,
then leave the REPL to MicroPython. SystemExit from either file is a soft reset.
"""

import io
import os
import sys

import flash
import vfs
import wire

_STANDINS = ("machine", "network")


def run(namespace):
    """Boot; `namespace` is the dict of __main__, in which boot.py and main.py run."""
    _load_standins(os.getenv("VBOARD_STANDINS"))
    _mount_root(os.getenv("VBOARD_ROOT"), int(os.getenv("VBOARD_FLASH")))
    sys.path[:] = ["", ".frozen", "/lib"]
    sys.argv[:] = [""]
    wire.say("hello")
    booted = False
    try:
        booted = _run_file("boot.py", namespace)
    except KeyboardInterrupt:
        pass
    if os.getenv("VBOARD_RAW") == "1":
        wire.ask("booted")
    elif booted:
        _run_file("main.py", namespace)


def vanish(namespace):
    """Remove every trace of the launcher from what the user sees."""
    for name in ("launcher", "flash"):
        sys.modules.pop(name, None)
        namespace.pop(name, None)
    namespace.pop("__file__", None)


def _load_standins(folder):
    sys.path.insert(0, folder)
    for name in _STANDINS:
        __import__(name)


def _mount_root(root, flash_bytes):
    disk = flash.Flash(vfs.VfsPosix(root), flash_bytes)
    vfs.umount("/")
    vfs.mount(disk, "/")
    os.chdir("/")


def _exists(name):
    try:
        os.stat(name)
        return True
    except OSError:
        return False


def _run_file(name, namespace):
    """Run one of the board's files; True when it came to its end or is not there."""
    if not _exists(name):
        return True
    try:
        execfile(name, namespace)  # noqa: F821
        return True
    except SystemExit:
        wire.say("soft")
        wire.halt()
    except BaseException as error:
        _print_exception(error)
    return False


def _print_exception(error):
    """Print the traceback as a board does: from the board's file inwards."""
    text = io.StringIO()
    sys.print_exception(error, text)
    for line in text.getvalue().split("\n")[:-1]:
        if 'launcher.py", line' not in line and 'start.py", line' not in line:
            print(line)
