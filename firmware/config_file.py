"""Changes of the configuration file: one key, checked by the table, written safely.

The file is read again, so that what a person has changed in it since stays; the whole of it must
still pass the check. It is then written beside the old one and renamed over it: after a power cut
there is the old file or the new one, never half of one. (A FAT file system removes the old one
first; `firmware.config.load` finishes what was cut there.) Passwords in it pass through unseen. Its
layout becomes that of config.example.json.
"""

import json
import os

from firmware import strict_json
from firmware.config import LARGEST_FILE, NEW, SETTABLE, TABLE, check, fits, misfit, read
from firmware.settings import ConfigError, nearest

_LONGEST_SHOWN = 40
_REASONS = {28: "no room is left for it", 30: "the file system is read-only"}


def change(key, value, path=None):
    """Check that `key` may be given `value`, and write it to the file at `path`, if given.

    Whether that is another value than its default. ValueError (ConfigError) says why not; then
    nothing was written.
    """
    row = _row(key)
    if not fits(row, value):
        raise ConfigError(misfit(row, value))
    if path:
        _save(key, value, path)
    return value != row[1]


def _row(key):
    for row in TABLE:
        if row[0] == key:
            break
    else:
        text = "{}: unknown key, did you mean {}?"
        raise ConfigError(text.format(key[:_LONGEST_SHOWN], nearest(key, SETTABLE)))
    if key not in SETTABLE:
        text = "{}: no command may change it; that takes config.json and a reset"
        raise ConfigError(text.format(key))
    return row


def _save(key, value, path):
    text = read(path)
    try:
        tree = strict_json.parse(text)
    except ValueError as error:
        raise ConfigError("{}: {}".format(path, error))
    check(tree, path + ": ")
    text = layout(_with(tree, key, value)).encode()
    if len(text) > LARGEST_FILE:
        raise ConfigError("{}: it would be over {} bytes".format(path, LARGEST_FILE))
    try:
        _replace(path, text)
    except OSError as error:
        why = _REASONS.get(error.errno or 0, error)
        raise ConfigError("{}: it cannot be written ({})".format(path, why))


def _with(tree, key, value):
    section, name = key.split(".")
    sections = {name: tree[name] for name in tree}
    sections[section] = dict(tree.get(section, {}))
    sections[section][name] = value
    return sections


def _replace(path, text):
    try:
        with open(path + NEW, "wb") as file:
            file.write(text)
        os.rename(path + NEW, path)
    except OSError:
        try:
            os.stat(path)  # without the old file the new one is all there is
            os.remove(path + NEW)
        except OSError:
            pass
        raise


def layout(tree):
    """The text of a configuration file: sections and keys in the table's order."""
    sections = []
    for row in TABLE:
        section = row[0].split(".")[0]
        if tree.get(section) and section not in sections:
            sections.append(section)
    return "{\n" + ",\n".join([_section(name, tree[name]) for name in sections]) + "\n}\n"


def _section(name, values):
    keys = [row[0].split(".") for row in TABLE]
    lines = [
        "    {}: {}".format(json.dumps(key), json.dumps(values[key]))
        for section, key in keys
        if section == name and key in values
    ]
    return "  {}: {{\n".format(json.dumps(name)) + ",\n".join(lines) + "\n  }"
