"""Settings: the configuration as the running program keeps it, apart from what checked it.

The table of keys, the checker and the JSON reader take some 17 KB of heap on a board and have
nothing to do once the file is read. `load` brings them in, and takes out of memory again what it
brought, before the application makes its large buffers; so does `change`, for the moment that one
key is checked. What stays is a Config: the values.

A text from outside is looked at as bytes: MicroPython keeps each single character that is taken out
of a str, or made by `chr`, for ever, and there are 65,536 of them and more.
"""

import sys

_CHECKER = ("config", "config_file", "spelling", "strict_json")
_MASKS = {False: "(none)", True: "(set)"}


class ConfigError(ValueError):
    """The configuration is wrong: one line for each problem."""


class Config:
    """The effective configuration: `config["mqtt.host"]`.

    `values` has each key's value; `keys` is their order, and `changed` those of them whose value
    is not the default. `path` is the file they came from, or None.
    """

    def __init__(self, values, keys, changed, path=None):
        self.path = path
        self._values = values
        self._keys = keys
        self._changed = changed

    def __getitem__(self, key):
        return self._values[key]

    def change(self, key, value, save=False):
        """Give `key` another value, for good when `save`. ValueError says why that may not be.

        Only the keys in `firmware.config.SETTABLE` may be changed, and only with `save` is the
        file written. Whoever has a copy of the value must be told by the caller.
        """
        changed = _borrowed("config_file", "change", key, value, self.path if save else None)
        self._values[key] = value
        self._changed = tuple([name for name in self._changed if name != key])
        if changed:
            self._changed += (key,)

    def explain(self, out=print):
        """Print key and value, one a line; `*` marks what differs from its default."""
        for key in self._keys:
            mark = "*" if key in self._changed else " "
            value = self._values[key]
            text = _MASKS[value != ""] if is_secret(key) else shown(value)
            out("{} {:<28} {}".format(mark, key, text))


def load(path="config.json"):
    """`firmware.config.load`, leaving nothing in memory but the Config."""
    return _borrowed("config", "load", path)


def _borrowed(module, function, *arguments):
    """Call a function of the checker, and take out of memory what that has brought in."""
    before = ["firmware." + name in sys.modules for name in _CHECKER]
    try:
        __import__("firmware." + module)
        return getattr(sys.modules["firmware." + module], function)(*arguments)
    finally:
        for name, was_there in zip(_CHECKER, before):
            if not was_there:
                _forget(name)


def nearest(name, known):
    """The one of `known` that begins and ends most like `name`.

    Cheap, whatever `name` is, for it comes over the network; `firmware.spelling` sees more.
    """
    name = name.encode()
    return max(known, key=lambda candidate: _likeness(name, candidate.encode()))


def printable(text):
    """`text` with question marks for control characters, which a terminal would obey."""
    data = bytearray(text.encode())
    for i in range(len(data)):
        if data[i] < 0x20 or data[i] == 0x7F:
            data[i] = 0x3F
        elif data[i] == 0xC2 and data[i + 1] < 0xA0:
            data[i] = data[i + 1] = 0x3F
    return bytes(data).decode()


def _likeness(name, other):
    most = min(len(name), len(other))
    same = 0
    while same < most and name[same] == other[same]:
        same += 1
    end = 0
    while end < most - same and name[-1 - end] == other[-1 - end]:
        end += 1
    return 2 * (same + end) - len(other)


def is_secret(key):
    """Whether the value of `key` must not be shown."""
    return key.endswith("password")


def shown(value):
    """A value of the configuration as JSON has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return '"{}"'.format(value) if isinstance(value, str) else str(value)


def _forget(name):
    package = sys.modules["firmware"]
    sys.modules.pop("firmware." + name, None)
    if hasattr(package, name):
        delattr(package, name)
