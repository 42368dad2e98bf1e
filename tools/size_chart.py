"""The chart of `python -m tools size`: retention against the size of the buffer, as a PNG.

Both scales are logarithmic, so that one picture serves a board with 64 KB and a gateway with 16 MB,
and equal distances are equal factors: how far apart the two lines run is how much longer the one
encoding lasts than the other.
"""

import math
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tools import shown
from tools.sizing import Plan, curve, retention, side_by_side

WIDTH, HEIGHT = 1600, 1000  # pixels
_DPI = 160

COLOURS = {"f7": "#0b7a75", "json": "#c8553d"}
_NAMES = {"f7": "0xF7, binary", "json": "JSON"}
_INK, _FAINT, _GRID, _PAPER = "#22303c", "#6b7a88", "#e1e6ea", "#fcfdfe"

# How far the chart reaches below and above the buffer that was asked for, in factors.
_BELOW, _ABOVE = 32, 8
_POINTS = 4000

# Where the labels of a dot stand, in points from it: x, y of the time, y of the name, alignment.
_LABELS = {"f7": (-13, 9, 29, "right"), "json": (13, -22, -37, "left")}

# The ticks of the time, by unit.
_TICKS = {
    "s": (1, (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)),
    "min": (60, (1, 3, 10, 30)),
    "h": (3600, (1, 3, 10)),
    "d": (86400, (1, 3, 10, 30, 100)),
    "y": (31557600, [factor * 10**power for power in range(7) for factor in (1, 3)]),
}

# The axes end where these shares of them, on their logarithmic scale, are left free: beside the
# buffer that was asked for, for the words there; below and above the lines.
_BESIDE, _AROUND = 0.22, 0.16
_LEAST_DECADES = 1.5


def draw(plan: Plan, path: Path) -> None:
    """Write the chart to `path`, WIDTH by HEIGHT pixels.

    OSError when that cannot be; ValueError when not even one scan fits the largest buffer shown.
    """
    figure = Figure((WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI, facecolor=_PAPER)
    axes = figure.add_axes((0.095, 0.13, 0.86, 0.68), facecolor=_PAPER)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    plans = side_by_side(plan)
    _set_limits(axes, plan, [_draw_line(axes, each, plan) for each in plans])
    _mark_buffer(axes, plan)
    for each in plans:
        _mark_retention(axes, each)
    _mark_factor(axes, plans)
    _set_ticks(axes)
    _set_titles(figure, axes, plan)
    figure.savefig(path, format="png", dpi=_DPI)


def _draw_line(axes: Axes, plan: Plan, asked: Plan) -> list[tuple[int, float]]:
    """Draw one encoding's line, a step for each scan more; its points where that is not 0."""
    points = curve(plan, plan.buffer // _BELOW, plan.buffer * _ABOVE, _POINTS)
    points = [point for point in points if point[1] > 0]
    if points:
        axes.plot(
            *zip(*points, strict=True),
            color=COLOURS[plan.encoding],
            linewidth=3.0 if plan == asked else 2.2,
            drawstyle="steps-post",
            zorder=3,
        )
    return points


def _set_limits(axes: Axes, plan: Plan, lines: list[list[tuple[int, float]]]) -> None:
    points = [point for line in lines for point in line]
    if not points:
        raise ValueError(f"buffer {plan.buffer}: no scan of {plan.tags} tags fits, nothing to draw")
    sizes, seconds = zip(*points, strict=True)
    asked = math.log(plan.buffer)
    left, right = math.log(min(sizes)), math.log(max(sizes))
    left = min(left, (asked - _BESIDE * right) / (1 - _BESIDE))
    right = max(right, (asked - _BESIDE * left) / (1 - _BESIDE))
    axes.set_xlim(math.exp(left), math.exp(right))
    bottom, top = math.log10(min(seconds)), math.log10(max(seconds))
    margin = _AROUND * (top - bottom) + max(0, _LEAST_DECADES - (top - bottom)) / 2
    axes.set_ylim(10 ** (bottom - margin), 10 ** (top + margin))


def _mark_buffer(axes: Axes, plan: Plan) -> None:
    axes.axvline(plan.buffer, color=_INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=2)
    axes.annotate(
        f"buffer {shown.size(plan.buffer)}",
        (plan.buffer, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 6),
        textcoords="offset points",
        ha="center",
        fontsize=9.5,
        color=_INK,
    )


def _mark_retention(axes: Axes, plan: Plan) -> None:
    """A dot where the line meets the buffer that was asked for, with the encoding and the time."""
    seconds = retention(plan).seconds
    if not seconds:
        return  # less than a scan, which the scale cannot show
    colour = COLOURS[plan.encoding]
    axes.plot(plan.buffer, seconds, "o", ms=9, mfc=_PAPER, mec=colour, mew=2.6, zorder=5)
    x, lower, upper, side = _LABELS[plan.encoding]
    for text, y, size, weight in (
        (shown.duration(seconds), lower, 15, "bold"),
        (_NAMES[plan.encoding], upper, 10, "normal"),
    ):
        axes.annotate(
            text,
            (plan.buffer, seconds),
            xytext=(x, y),
            textcoords="offset points",
            ha=side,
            fontsize=size,
            fontweight=weight,
            color=colour,
            path_effects=[withStroke(linewidth=4, foreground=_PAPER)],
            zorder=6,
        )


def _mark_factor(axes: Axes, plans: list[Plan]) -> None:
    """Between the two dots, how many times longer the one lasts than the other."""
    seconds = sorted(retention(plan).seconds for plan in plans)
    if len(seconds) < 2 or not seconds[0]:
        return
    axes.annotate(
        f"× {seconds[1] / seconds[0]:.1f}",
        (plans[0].buffer, (seconds[0] * seconds[1]) ** 0.5),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        fontsize=10.5,
        color=_FAINT,
        path_effects=[withStroke(linewidth=4, foreground=_PAPER)],
    )


def _set_ticks(axes: Axes) -> None:
    left, right = axes.get_xlim()
    powers = [1 << power for power in range(6, 33) if left <= 1.001 * (1 << power) <= 1.002 * right]
    axes.xaxis.set_major_locator(FixedLocator(powers))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: shown.size(round(size))))
    bottom, top = axes.get_ylim()
    times = {
        number * size: f"{number:,g} {unit}"
        for unit, (size, numbers) in _TICKS.items()
        for number in numbers
        if bottom <= number * size <= top
    }
    axes.set_yticks(list(times), list(times.values()))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.grid(color=_GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=7, labelsize=9.5, labelcolor=_INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)


def _set_titles(figure: Figure, axes: Axes, plan: Plan) -> None:
    axes.set_xlabel("size of the buffer (1 KB = 1,024 bytes)", color=_FAINT, labelpad=9)
    axes.set_ylabel("retention: longest outage without a loss (time)", color=_FAINT, labelpad=9)
    tags = "1 tag" if plan.tags == 1 else f"{plan.tags:,} tags"
    period = shown.duration(plan.period_ms / 1000)
    figure.text(
        0.03, 0.935, "How long an outage the buffer bridges", fontsize=17, weight="bold", color=_INK
    )
    figure.text(
        0.03,
        0.893,
        f"{tags} every {period}, {plan.kind}, in pages of {plan.page:,} bytes",
        fontsize=10.5,
        color=_FAINT,
    )
