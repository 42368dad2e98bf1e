"""Verdict: the first thing found wrong stands, whoever finds it, whoever catches the exception."""


class Failure(Exception):
    """What must hold does not."""


class Verdict:
    """What is wrong with the history that is played, in words; empty while all is well."""

    wrong = ""


verdict = Verdict()


def must(holds, what, *values):
    """Failure, unless it holds: `what` is a text with places for the values."""
    if not holds:
        fail(what.format(*values))


def fail(what):
    """Failure; the first one is kept, in case the firmware catches this one."""
    verdict.wrong = verdict.wrong or what
    raise Failure(verdict.wrong)
