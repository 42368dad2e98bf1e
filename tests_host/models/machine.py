"""What the three state machines share: the real thing and its model driven side by side.

Each step is one operation done to both. What both gave is compared, then all counters, then the
real thing proves its invariants. What was done is kept as a trace (tests_host/core/replay_kit).
"""

from collections.abc import Callable

from hypothesis.stateful import RuleBasedStateMachine

from tests_host.core.replay_kit import Driver


class Machine(RuleBasedStateMachine):
    """`make_real` and `make_model` make the two drivers; `start` does so for one configuration.

    `recorder`, when set, is called with the trace of each example that ended well.
    """

    make_real: Callable[..., Driver]
    make_model: Callable[..., Driver]
    recorder: Callable[[tuple], None] | None = None

    @staticmethod
    def marks(config: tuple) -> tuple:
        """What is remarkable in a configuration, for the choice of traces (record.py)."""
        raise NotImplementedError

    def __init__(self):
        super().__init__()
        self.real = self.model = None

    def start(self, *config):
        self.real = type(self).make_real(*config)
        self.model = type(self).make_model(*config)
        self.config = config
        self.steps = []
        self.seen = (0,) * len(self.real.FIELDS)
        self.is_sound = True

    def do(self, *operation):
        """Do one operation to both, and compare; the result."""
        self.is_sound = False
        expected = self.model.step(operation)
        given = self.real.step(operation)
        assert given == expected, f"{operation}: {given} given, {expected} expected"
        seen = self.real.state()
        for name, one, other in zip(self.real.FIELDS, seen, self.model.state(), strict=True):
            assert one == other, f"{operation}: {name} is {one}, {other} expected"
        self.real.check()
        changed = []
        for i, (before, now) in enumerate(zip(self.seen, seen, strict=True)):
            if before != now:
                changed += [i, now]
        self.steps.append((operation, given, tuple(changed)))
        self.seen = seen
        self.is_sound = True
        return given

    def teardown(self):
        if self.real is None or not self.is_sound:
            return
        self.finish()
        if self.recorder:
            type(self).recorder((self.config, tuple(self.steps)))

    @classmethod
    def trace(cls, config: tuple, operations: tuple) -> tuple:
        """Do a sequence of operations, and what ends it; its trace."""
        machine = cls()
        machine.start(*config)
        for operation in operations:
            machine.do(*operation)
        machine.finish()
        return config, tuple(machine.steps)

    def finish(self):
        """Empty the real thing by operations, and see that every message has come to an end."""
        raise NotImplementedError
