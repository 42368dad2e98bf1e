"""How much of the processors' time other tenants of the machine took: it explains a wide spread."""

from pathlib import Path

_STEAL = 7  # field of the first line of /proc/stat, behind its name


class Stolen:
    """Counts from when it is made."""

    def __init__(self):
        self._before = _counters()

    def percent(self) -> float | None:
        """Of all processor time so far; None where the system does not say."""
        passed = [now - then for now, then in zip(_counters(), self._before, strict=True)]
        if not sum(passed):
            return None
        return round(100 * passed[_STEAL] / sum(passed), 1)


def _counters() -> list[int]:
    try:
        first = Path("/proc/stat").read_text().splitlines()[0]
    except OSError:
        return []
    return [int(field) for field in first.split()[1:9]]
