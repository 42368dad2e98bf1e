"""The board's JSON reader beside CPython's: the same texts pass, with the same values."""

import json
import random

import pytest

from firmware.strict_json import parse
from tools import config_table

SEEDS = (
    config_table.example(),
    '{"a": [1, -2.5e3, true, null, "x\\n\\u20ac\\\\"], "b": {"c": {}}, "d": []}',
)
PIECES = ["{", "}", "[", "]", ",", ":", '"', "\\", "0", "1", "-", ".", "e", " ", "\n", "tru", "é"]


def mutants(text, count):
    """Texts a few edits away from `text`."""
    rng = random.Random(text)
    for _ in range(count):
        mutant = text
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(mutant) + 1)
            mutant = mutant[:at] + rng.choice(PIECES) + mutant[at + rng.randint(0, 2) :]
        yield mutant


def no_twins(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


@pytest.mark.parametrize("text", SEEDS)
def test_the_same_texts_pass_with_the_same_values(text):
    passed = failed = 0
    for mutant in (text, *mutants(text, 3000)):
        try:
            value = json.loads(mutant, object_pairs_hook=no_twins)
        except ValueError:
            with pytest.raises(ValueError, match=r"^line \d+, column \d+: "):
                parse(mutant.encode())
            failed += 1
        else:
            assert parse(mutant.encode()) == value, mutant
            passed += 1
    assert passed > 100 and failed > 1000
