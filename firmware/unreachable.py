"""Unreachable: what a step towards the broker raises that cannot succeed, the reason in words."""


class Unreachable(Exception):
    """No connection can be made now; the reason in words."""


class Hopeless(Unreachable):
    """No connection can be made, and trying again will not mend that."""
