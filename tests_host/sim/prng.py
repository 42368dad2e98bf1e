"""Numbers from a seed, the same on CPython and MicroPython, from integers below 2**46."""

_MODULUS = 2147483647
_FACTOR = 16807


class Prng:
    """Lehmer's generator; `seed` is any whole number from 0."""

    def __init__(self, seed):
        self._x = seed * 7919 % (_MODULUS - 1) + 1
        for _ in range(4):
            self._next()

    def _next(self):
        self._x = self._x * _FACTOR % _MODULUS
        return self._x

    def below(self, n):
        """A number from 0 to n - 1."""
        return self._next() % n

    def among(self, choices):
        """One of the choices."""
        return choices[self._next() % len(choices)]

    def one_in(self, n):
        """True once in `n` times."""
        return self._next() % n == 0

    def getrandbits(self, n):
        """`n` bits, 30 at most, as the random module gives them."""
        return self._next() & (1 << n) - 1
