"""main.py: runs millpond, and says in a line why when it does not run.

Ends at the REPL, in each of these ways:

    safe mode                  nothing was started (see boot.py)
    the configuration is wrong every problem in a line, no reset: it would be wrong again
    Ctrl-C                     the program waits in memory: status(), counters(), resume()
    the program failed         its traceback; with the hardware watchdog on, a reset after PAUSE_S
                               unless a person presses Ctrl-C

SystemExit goes no further than this file: it would restart the board.
"""

import sys
import time

PAUSE_S = 10


def _main(namespace):
    if namespace.get("SAFE_MODE"):
        print("millpond not started: safe mode; os.remove('safe_mode') and reset to leave it")
        return
    try:
        _run(namespace)
    except KeyboardInterrupt:
        print("millpond not started: interrupted by Ctrl-C")
    except SystemExit:
        print("millpond ended: something in it called sys.exit()")
    except Exception as error:
        print("millpond failed:")
        sys.print_exception(error)
        app = namespace.get("app")
        if app and app.config["watchdog.hardware_timeout_s"]:
            _reset()


def _run(namespace):
    from firmware import console
    from firmware.settings import ConfigError

    try:
        console.start(namespace)
    except ConfigError as error:
        for problem in str(error).split("\n"):
            print("millpond not started:", problem)


def _reset():
    print("reset in {} s; Ctrl-C leads to the REPL instead".format(PAUSE_S))
    try:
        time.sleep(PAUSE_S)
    except KeyboardInterrupt:
        return
    import machine

    machine.reset()


_main(globals())
