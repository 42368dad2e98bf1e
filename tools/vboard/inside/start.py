# The script that MicroPython runs on a virtual board: everything is in launcher.py, so that
# __main__, where the user's names live, stays as empty as on a board.
import launcher

try:
    launcher.run(globals())
except KeyboardInterrupt:
    pass
launcher.vanish(globals())
