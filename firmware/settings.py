"""Settings: the configuration as the running program keeps it, apart from what checked it.

The table of keys, the checker and the JSON reader take some 17 KB of heap on a board and have
nothing to do once the file is read. `load` brings them in, and takes out of memory again what it
brought, before the application makes its large buffers. What stays is a Config: the values.
"""

import sys

_CHECKER = ("config", "strict_json")
_MASKS = {False: "(none)", True: "(set)"}


class ConfigError(ValueError):
    """The configuration is wrong: one line for each problem."""


class Config:
    """The effective configuration: `config["mqtt.host"]`.

    `values` has each key's value; `keys` is their order, and `changed` those of them whose value
    is not the default.
    """

    def __init__(self, values, keys, changed):
        self._values = values
        self._keys = keys
        self._changed = changed

    def __getitem__(self, key):
        return self._values[key]

    def explain(self, out=print):
        """Print key and value, one a line; `*` marks what differs from its default."""
        for key in self._keys:
            mark = "*" if key in self._changed else " "
            value = self._values[key]
            text = _MASKS[value != ""] if is_secret(key) else shown(value)
            out("{} {:<28} {}".format(mark, key, text))


def load(path="config.json"):
    """`firmware.config.load`, leaving nothing in memory but the Config."""
    before = ["firmware." + name in sys.modules for name in _CHECKER]
    try:
        from firmware import config

        return config.load(path)
    finally:
        for name, was_there in zip(_CHECKER, before):
            if not was_there:
                _forget(name)


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
