"""RunTime: what a command may do to the running application.

Each op of `firmware.commands` is a method that does it at once and gives what is to be answered.
_APPLY brings a changed key to the objects that have its value; those that read the configuration
whenever they need it are told nothing. Its keys are those of `firmware.config.SETTABLE`.
"""

from firmware import report


def _batch(app, _value):
    app.packer.set_limits(app.config["batch.max_readings"], app.config["batch.max_age_ms"])


def _max_age(app, value):
    for lane in range(app.ring.lanes):
        app.ring.max_age_s[lane] = value


def _plant(app, _value):
    if app.plant:
        c = app.config
        app.plant.pace(c["plant.period_ms"], c["plant.alert_every_s"])


def _period(name):
    def apply(app, value):
        for sampler in app.samplers:
            if sampler.name == name:
                sampler.set_period(value)

    return apply


def _plant_period(app, value):
    _plant(app, value)
    _period("plant")(app, value)


_APPLY = {
    "send.rate_limit": lambda app, value: app.uplink.pace(value),
    "ring.max_age_s": _max_age,
    "batch.max_readings": _batch,
    "batch.max_age_ms": _batch,
    "watchdog.delivery_timeout_s": lambda app, value: app.delivery_watchdog.set_timeout(value),
    "watchdog.check_period_s": None,
    "health.period_s": None,
    "plant.period_ms": _plant_period,
    "plant.alert_every_s": _plant,
    "board.period_ms": _period("board"),
    "log.level": lambda app, value: app.log.set_level(value),
}


class RunTime:
    """Does to `app` what a command says; `can_reset` tells whether there is a way to."""

    def __init__(self, app, can_reset):
        self._app = app
        self._can_reset = can_reset

    def set(self, key, value, save=False):
        """Change a key at once, and with `save` in the file first. ValueError if it may not be."""
        app = self._app
        if save and not app.config.path:
            raise ValueError("save: there is no configuration file")
        app.config.change(key, value, save)
        apply = _APPLY[key]
        if apply:
            apply(app, value)
        return {"key": key, "value": value, "saved": save}

    def status(self, limit):
        """The health message, as JSON of at most `limit` bytes."""
        return report.health(self._app, limit)

    def flush(self):
        """Close the open batches and send; how many messages wait now."""
        self._app.flush()
        return {"waiting": self._app.ring.messages()}

    def reboot(self):
        """Get ready for a reset: sample no more, and send what there is; how much is held."""
        if not self._can_reset:
            raise ValueError("this board has no way to reset itself")
        app = self._app
        app.stop_sensors()
        app.flush()
        return {"held": self._app.counters()["held"]}

    def drained(self):
        """Whether everything has been delivered."""
        return not self._app.counters()["held"]
