"""Stand-ins for what a sensor reports to, and short ways to read one."""


class Seen:
    """What one read handed over."""

    def __init__(self):
        self.order = []
        self.values = {}
        self.alerts = []

    def reading(self, tag_id, value, status=0):
        assert status == 0
        self.order.append(tag_id)
        self.values[tag_id] = value

    def alert(self, name, text, priority=3):
        assert priority == 3
        self.alerts.append((name, text))


class Nothing:
    """Takes everything and keeps nothing."""

    def reading(self, tag_id, value, status=0):
        pass

    def alert(self, name, text, priority=3):
        pass


def read(sensor):
    seen = Seen()
    sensor.read(seen)
    return seen


def values_of(sensor, tag_id, reads):
    return [read(sensor).values[tag_id] for _ in range(reads)]
