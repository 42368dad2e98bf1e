"""Runs inside MicroPython: import one logic test module by path and call one of its functions."""

import sys


def main(path, name):
    folder, _, stem = path.rpartition("/")
    sys.path.insert(0, folder)
    module = __import__(stem[:-3])
    getattr(module, name)()


main(sys.argv[1], sys.argv[2])
