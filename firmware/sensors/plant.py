"""Plant: a simulated plant, for demonstrations, tests, and boards that have no sensor yet.

Eight temperatures and four pressures walk at random between fixed bounds. Two machines start and
stop after a random while; each drives two noisy currents and one counter while it runs. The same
seed gives the same plant, on every interpreter.

A temperature that passes its limit raises an alert, is then cooled until it is well below, and may
raise the next. Such a thing is rare by itself, so one temperature after the other is made to jump
over its limit when there was no alert for `alert_every_s`: the readings show what an alert says.

`scan` counts the reads from 1, so that a listener can tell whether any are missing.

State is whole numbers in steps finer than the resolution of a tag: hundredths of a degree,
thousandths of a bar. All of them, and every product on the way, are small integers on a 32-bit
board; counters go back to 0 after 2**30 - 1.
"""

from micropython import const

_TEMPERATURES = const(8)
_FIRST_TEMPERATURE = const(1)
_FIRST_PRESSURE = const(9)
_FIRST_CURRENT = const(13)
_FIRST_COUNTER = const(17)
_FIRST_RUN = const(19)
_SCAN = const(21)

TAGS = (
    (1, "temp0", "float32", "degC", 0.1),
    (2, "temp1", "float32", "degC", 0.1),
    (3, "temp2", "float32", "degC", 0.1),
    (4, "temp3", "float32", "degC", 0.1),
    (5, "temp4", "float32", "degC", 0.1),
    (6, "temp5", "float32", "degC", 0.1),
    (7, "temp6", "float32", "degC", 0.1),
    (8, "temp7", "float32", "degC", 0.1),
    (9, "press0", "float32", "bar", 0.01),
    (10, "press1", "float32", "bar", 0.01),
    (11, "press2", "float32", "bar", 0.01),
    (12, "press3", "float32", "bar", 0.01),
    (13, "amp0", "float32", "A", 0.1),
    (14, "amp1", "float32", "A", 0.1),
    (15, "amp2", "float32", "A", 0.1),
    (16, "amp3", "float32", "A", 0.1),
    (17, "count0", "uint32", "1", 1),
    (18, "count1", "uint32", "1", 1),
    (19, "run0", "bool", "", 1),
    (20, "run1", "bool", "", 1),
    (21, "scan", "uint32", "1", 1),
)

# Hundredths of a degree: where temp0 starts, from one to the next, a step of the walk, what a hot
# one loses in each step; and, from where each started, how far it walks, how far it jumps, where
# its limit is, and where it has cooled enough.
_COOLEST = const(2000)
_APART = const(500)
_TEMPERATURE_STEP = const(3)
_COOLING = const(5)
_WALK = const(250)
_JUMP = const(245)
_LIMIT = const(230)
_REARM = const(180)

# Thousandths of a bar.
_PRESSURES = (1000, 3000, 5000, 7000)
_PRESSURE_WALK = const(120)
_PRESSURE_STEP = const(2)

# Machine; mean and noise in tenths of an ampere.
_CURRENTS = ((0, 120, 3), (0, 300, 6), (1, 70, 2), (1, 550, 11))
_PARTS_EVERY = (5, 12)  # reads for each part that a machine makes, on average
_SHORTEST_RUN = const(10)  # reads
_LONGEST_RUN = const(200)
_COUNTER_MASK = const(0x3FFFFFFF)

_M1 = const(32363)
_M2 = const(31727)
_M3 = const(31657)


class Plant:
    """The simulated plant: 21 tags every `period_ms` milliseconds.

    `seed` (an int from 0) chooses the plant. An alert comes at the latest every `alert_every_s`
    seconds of reads; with 0 only when a temperature has walked over its limit.
    """

    name = "plant"
    tags = TAGS

    def __init__(self, period_ms=1000, seed=1, alert_every_s=300):
        self._below = _Random(seed).below
        self._temperatures = [_COOLEST + i * _APART for i in range(_TEMPERATURES)]
        self._hot = [False] * _TEMPERATURES
        self._pressures = list(_PRESSURES)
        self._running = [True, False]
        self._left = [self._run_length(), self._run_length()]
        self._parts = [0, 0]
        self._scan = 0
        self._next_jump = 0
        self._quiet = 0
        self.pace(period_ms, alert_every_s)

    def pace(self, period_ms, alert_every_s):
        """Set the period and the alerts, as in the constructor."""
        self.period_ms = period_ms
        # Reads without an alert before a temperature jumps; 0: it never does.
        self._patience = max(1, alert_every_s * 1000 // period_ms) if alert_every_s else 0

    def read(self, out):
        """Advance the plant by one step and report every tag, and an alert now and then."""
        self._scan = (self._scan + 1) & _COUNTER_MASK
        self._quiet += 1
        if self._patience and self._quiet >= self._patience:
            self._jump()
        for i in range(_TEMPERATURES):
            self._read_temperature(i, out)
        for i in range(len(_PRESSURES)):
            self._read_pressure(i, out)
        for machine in range(2):
            self._work(machine)
        for i in range(len(_CURRENTS)):
            self._read_current(i, out)
        for machine in range(2):
            out.reading(_FIRST_COUNTER + machine, self._parts[machine])
        for machine in range(2):
            out.reading(_FIRST_RUN + machine, self._running[machine])
        out.reading(_SCAN, self._scan)

    def _jump(self):
        i = self._next_jump
        self._next_jump = (i + 1) % _TEMPERATURES
        self._temperatures[i] = _COOLEST + i * _APART + _JUMP
        self._hot[i] = False

    def _read_temperature(self, i, out):
        start = _COOLEST + i * _APART
        away = self._temperatures[i] - start
        away = self._walk(away, _TEMPERATURE_STEP, _WALK)
        if self._hot[i]:
            away -= _COOLING
        self._temperatures[i] = start + away
        tenths = (start + away + 5) // 10
        limit = (start + _LIMIT) // 10
        out.reading(_FIRST_TEMPERATURE + i, tenths / 10)
        if away < _REARM:
            self._hot[i] = False
        elif tenths > limit and not self._hot[i]:
            self._hot[i] = True
            self._quiet = 0
            out.alert(
                "overtemp", "temp{} {} degC over {}".format(i, _tenths(tenths), _tenths(limit))
            )

    def _read_pressure(self, i, out):
        start = _PRESSURES[i]
        away = self._walk(self._pressures[i] - start, _PRESSURE_STEP, _PRESSURE_WALK)
        self._pressures[i] = start + away
        out.reading(_FIRST_PRESSURE + i, (start + away + 5) // 10 / 100)

    def _work(self, machine):
        self._left[machine] -= 1
        if self._left[machine] == 0:
            self._running[machine] = not self._running[machine]
            self._left[machine] = self._run_length()
        if self._running[machine] and self._below(_PARTS_EVERY[machine]) == 0:
            self._parts[machine] = (self._parts[machine] + 1) & _COUNTER_MASK

    def _read_current(self, i, out):
        machine, mean, noise = _CURRENTS[i]
        tenths = 0
        if self._running[machine]:
            below = self._below
            span = 2 * noise + 1
            tenths = mean + below(span) + below(span) - 2 * noise
        out.reading(_FIRST_CURRENT + i, tenths / 10)

    def _walk(self, away, step, furthest):
        """One random step of up to `step` either way, no further than `furthest` from 0."""
        away += self._below(2 * step + 1) - step
        return max(-furthest, min(furthest, away))

    def _run_length(self):
        return _SHORTEST_RUN + self._below(_LONGEST_RUN - _SHORTEST_RUN)


def _tenths(n):
    return "{}.{}".format(n // 10, n % 10)


class _Random:
    """Three linear congruential generators in one (after L'Ecuyer, 1988).

    Each keeps its state and its products far below 2**30; together they repeat after some 8e12
    numbers.
    """

    def __init__(self, seed):
        self._a = 1 + seed % (_M1 - 1)
        self._b = 1 + seed // (_M1 - 1) % (_M2 - 1)
        self._c = 1
        for _ in range(10):
            self.below(1)

    def below(self, n):
        """A number from 0 to n - 1; n at most 32,362."""
        self._a = a = self._a * 157 % _M1
        self._b = b = self._b * 146 % _M2
        self._c = c = self._c * 142 % _M3
        return (a - b + c) % (_M1 - 1) * n // (_M1 - 1)
