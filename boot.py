"""boot.py: tells main.py how to start, and starts nothing itself.

SAFE_MODE is true when flash holds a file `safe_mode`; main.py then stays at the REPL. An exception
here would keep main.py from running, and SystemExit would reset the board for ever.
"""

import os

SAFE_MODE = False
try:
    os.stat("safe_mode")
    SAFE_MODE = True
except OSError:
    pass
