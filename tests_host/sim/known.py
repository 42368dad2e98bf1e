"""Known: histories by hand, of what the dice would seldom throw and once went wrong."""

from tests_host.sim.history import draw


def _calm(**mqtt):
    """A configuration with nothing in it but what the history does."""
    config = draw(0)[0]
    config["mqtt"].update(clean_session=False, keepalive_s=60, ack_timeout_s=10)
    config["mqtt"].update(mqtt)
    config["mqtt"].update(backoff_max_s=10, max_retries=100)
    config["plant"]["enabled"] = False
    config["counter"] = (0, 0)
    config["health"]["period_s"] = 600
    config["send"]["rate_limit"] = 0
    config["ring"]["max_age_s"] = 0
    return config


KNOWN = {
    "a reset with QoS 2 half way, and the next message under the same id": (
        _calm(),
        0,
        (
            (3000, "lose_acks", 1),
            (0, "put_qos2", 1),
            (1000, "power_loss", 0),
            (3000, "heal", 0),
            (0, "put_qos2", 1),
        ),
    ),
    "a link lost behind the release of an id, and then the message": (
        _calm(),
        0,
        (
            (3000, "lose_acks", 1),
            (0, "put_qos2", 1),
            (1000, "power_loss", 0),
            (3000, "reset_out", 0),
            (0, "put_qos2", 1),
            (3000, "heal", 0),
        ),
    ),
    "a CONNACK is lost, and with it what it said of the session": (
        _calm(),
        0,
        (
            (3000, "put", 3),
            (0, "reset_next", 1),
            (500, "restart", 0),
            (2000, "put", 3),
        ),
    ),
}
