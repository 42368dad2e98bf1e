"""Console: what a person meets at the serial REPL.

While the program runs, Ctrl-C is an ordinary character (`micropython.kbd_intr(-1)`) that a task
of its own reads. It then stops the event loop between two steps of the tasks, where everything is
consistent, and leads to the REPL with all objects still in memory:

    status()    prints the status page        resume()    goes on, with nothing lost
    counters()  gives the item counters       app         is the application itself

Stopping closes the connection, so that the broker tells others the board is offline; `resume`
makes it anew, and what was in flight is sent first.
"""

import asyncio
import gc
import sys

import micropython
from micropython import const

_CTRL_C = const(3)


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
            self._app.log.warning("interrupted between two instructions")
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
        print("millpond runs; Ctrl-C stops it and leads to the REPL")
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
                if ord(key) == _CTRL_C:
                    return self._app.stop()
        except OSError:
            # Standard input is nothing that can be waited for, such as a file.
            return None


def start(namespace, path="config.json"):
    """Load the configuration, compose the application and run it until Ctrl-C.

    Puts `app`, `status`, `resume` and `counters` into `namespace`, the REPL's globals.
    ConfigError (a ValueError) tells what is wrong with the configuration, one line each.
    """
    from firmware.app import App
    from firmware.settings import load

    config = load(path)
    gc.collect()
    app = App(config, _wlan(config), _wdt())
    gc.collect()
    # Collect early and briefly, rather than late and long when the heap is full.
    gc.threshold(gc.mem_free() // 4)
    console = Console(app)
    namespace["app"] = app
    namespace["status"] = console.status
    namespace["resume"] = console.resume
    namespace["counters"] = console.counters
    console.resume()


def _wlan(config):
    if not config["wifi.ssid"]:
        return None
    import network

    return network.WLAN(network.STA_IF)


def _wdt():
    import machine

    return getattr(machine, "WDT", None)
