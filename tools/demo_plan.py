"""The demonstration's plan: how its board is configured and how its time is spent."""

from tools._core import PLANT_TAGS

MIN_SECONDS, MAX_SECONDS = 20, 86400
PREFIX = "demo"
SCAN = len(PLANT_TAGS)  # readings in a scan of the plant
_DEVICE = "millpond-demo"


def board_config(port: int) -> dict:
    """The board's config.json: much to tell, and short deadlines, so that a minute shows all."""
    return {
        "device": {"name": _DEVICE, "type": 7, "serial": 1001},
        "mqtt": {
            "host": "127.0.0.1",
            "port": port,
            "prefix": PREFIX,
            "keepalive_s": 6,
            "connect_timeout_s": 2,
            "ack_timeout_s": 2,
            "backoff_max_s": 2,
        },
        "ring": {"bytes": 49152, "page_bytes": 2048},
        "batch": {"max_readings": SCAN, "max_age_ms": 300},
        "plant": {"period_ms": 200, "alert_every_s": 10},
        "board": {"period_ms": 1000},
        "health": {"period_s": 5},
        "log": {"status_s": 1},
    }


def cut_lengths(seconds: float) -> tuple[float, float]:
    """How long to cut the link, the first and the second time, of `seconds` in all."""
    spare = 0.88 * seconds - 10
    return 0.45 * spare, 0.55 * spare
