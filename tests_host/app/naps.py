"""In the place of asyncio: a task that a test drives on, nap by nap."""


class Turn:
    """Awaited, it gives the turn to whoever drives the coroutine."""

    def __await__(self):
        yield

    __iter__ = __await__


class Naps:
    """Stands in for asyncio in `module`: notes the sleeps, each of which ends when driven on."""

    def __init__(self, module):
        self.ms = []
        self._module = module
        self._kept = module.asyncio

    def __enter__(self):
        self._module.asyncio = self
        return self

    def __exit__(self, *_):
        self._module.asyncio = self._kept

    async def sleep_ms(self, ms):
        self.ms.append(ms)
        await Turn()
