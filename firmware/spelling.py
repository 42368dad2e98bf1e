"""Spelling: which known key a person has probably meant.

For the checker of a whole file, which is read once and may take its time: edits are counted, and a
right name in the wrong section is nearly right. (`settings.nearest` is for what comes over the
network: it sees less, and costs next to nothing whatever it is given.)
"""


def meant(name, known):
    """The one of the dotted names `known` that takes the fewest edits of `name`."""
    return min(known, key=lambda candidate: _unlikeness(name, candidate))


def _unlikeness(name, known):
    whole = _distance(name, known)
    last = _distance(name.split(".")[-1], known.split(".")[-1])
    return min(2 * whole, 2 * last + 1)


def _distance(a, b):
    """How many letters to add, take away or change to make `b` of `a` (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a):
        above_left, row[0] = row[0], i + 1
        for j, other in enumerate(b):
            change = above_left + (letter != other)
            above_left = row[j + 1]
            row[j + 1] = min(change, above_left + 1, row[j] + 1)
    return row[-1]
