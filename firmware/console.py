"""Console: what a person meets at the serial REPL.

While the program runs, Ctrl-C is an ordinary character (`micropython.kbd_intr(-1)`) that a task
of its own reads. It then stops the event loop between two steps of the tasks, where everything is
consistent, and leads to the REPL with all objects still in memory:

    status()    prints the status page        resume()    goes on, with nothing lost
    counters()  gives the item counters       app         is the application itself

`s`, typed while it runs, prints the status page between two marks and stops nothing.

Stopping closes the connection, so that the broker tells others the board is offline; `resume`
makes it anew, and what was in flight is sent first.
"""

import asyncio
import gc
import sys

import machine
import micropython
from micropython import const

from firmware.settings import ConfigError, load

_CTRL_C = const(3)
_STATUS_KEY = const(115)  # s

_CAUSES = (
    ("PWRON_RESET", "power on"),
    ("HARD_RESET", "reset"),
    ("WDT_RESET", "the watchdog"),
    ("DEEPSLEEP_RESET", "deep sleep"),
    ("SOFT_RESET", "soft reset"),
)


class Console:
    """Runs an App and gives a person the words to deal with it."""

    def __init__(self, app):
        self._app = app

    def resume(self):
        """Run the program until Ctrl-C."""
        asyncio.new_event_loop()
        micropython.kbd_intr(-1)
        try:
            asyncio.run(self._run())
        except KeyboardInterrupt:
            self._app.abandon()
            self._app.log.warning("interrupted between two instructions")
        except BaseException:
            self._app.abandon()
            raise
        finally:
            micropython.kbd_intr(_CTRL_C)
            asyncio.new_event_loop()
        print("millpond is stopped and keeps what it holds: status(), counters(), resume()")

    def status(self):
        """Print the status page."""
        print(self._app.status_text())

    def counters(self):
        """The item counters, as a dict."""
        return self._app.counters()

    async def _run(self):
        watcher = asyncio.create_task(self._watch_keys())
        print("millpond runs; s shows its status, Ctrl-C stops it and leads to the REPL")
        await self._app.run()
        watcher.cancel()

    async def _watch_keys(self):
        """Stop the application at Ctrl-C. Whatever comes after it is left to the REPL."""
        stdin = asyncio.StreamReader(sys.stdin)
        try:
            while True:
                key = await stdin.read(1)
                if not key:
                    return None
                code = ord(key)
                if code == _CTRL_C:
                    return self._app.stop()
                if code == _STATUS_KEY:
                    print("--- status\n{}\n--- end".format(self._app.status_text()))
        except OSError:
            # Standard input is nothing that can be waited for, such as a file.
            return None


class _NotStarted:
    """Stands where the Console would, and says why there is none."""

    def __init__(self, problems):
        self._problems = problems

    def status(self):
        """Say why the program was not started."""
        for problem in self._problems.split("\n"):
            print("millpond not started:", problem)
        print("when that is mended, Ctrl-D or a reset starts it")

    resume = status

    def counters(self):
        """Nothing was counted."""
        self.status()
        return {}


def start(namespace, path="config.json"):
    """Load the configuration, compose the application and run it until Ctrl-C.

    Puts `app`, `status`, `resume` and `counters` into `namespace`, the REPL's globals.
    ConfigError (a ValueError) tells what is wrong with the configuration, one line each.
    """
    try:
        app = _compose(path)
    except ConfigError as error:
        _offer(namespace, _NotStarted(str(error)))
        raise
    console = Console(app)
    namespace["app"] = app
    _offer(namespace, console)
    console.resume()


def _offer(namespace, console):
    namespace["status"] = console.status
    namespace["resume"] = console.resume
    namespace["counters"] = console.counters


def _compose(path):
    config = load(path)
    from firmware.app import App

    gc.collect()
    try:
        app = App(
            config,
            _wlan(config),
            getattr(machine, "WDT", None),
            _started_by(),
            _reset(),
            getattr(machine, "RTC", None),
        )
    except MemoryError:
        gc.collect()
        text = "{}: out of memory with ring.bytes {} and intake.slots {}: {} bytes are free"
        size, slots = config["ring.bytes"], config["intake.slots"]
        raise ConfigError(text.format(path, size, slots, gc.mem_free()))
    gc.collect()
    # Collect early and briefly, rather than late and long when the heap is full.
    gc.threshold(gc.mem_free() // 4)
    return app


def _wlan(config):
    if not config["wifi.ssid"]:
        return None
    import network

    return network.WLAN(network.STA_IF)


def _reset():
    """What resets the board, or None."""
    return getattr(machine, "reset", None)


def _started_by():
    """The cause of the last reset, in words."""
    if not hasattr(machine, "reset_cause"):
        return "the host"
    cause = machine.reset_cause()
    for name, words in _CAUSES:
        if cause == getattr(machine, name, None):
            return words
    return "reset cause {}".format(cause)
