"""The figures of seed 004, beside which `python -m tools size` puts its own. Pure calculation.

Its sizing divides memory by the bytes of a scan and leaves all framing out:

    bytes a scan = tags * (5 + size of a value) + 15         in JSON five times that
    retention = buffer / bytes a scan * period

For 200 tags at 60 s in 2 MB it comes to "~19.2 hours" and, in JSON, "~3.8 hours". It names what a
month costs on a cellular and on a satellite link, but no price of a megabyte. PRICES are made of
the two: the month's price divided by the bytes which that formula gives for that case.
"""

import json

from tools._core import KIND_SIZES, batch
from tools.sizing import F7, JSON, MESSAGE_HEAD, Plan, Retention, framing
from tools.traffic import MEGABYTE, MONTH_S

HOURS = {F7: 19.2, JSON: 3.8}
DOLLARS = {"cellular": {F7: 15, JSON: 75}, "satellite": {F7: 50, JSON: 250}}

_READING = 5
_SCAN = 15
_JSON_TIMES = 5


def scan_bytes(plan: Plan) -> int:
    """Bytes a scan."""
    binary = plan.tags * (_READING + KIND_SIZES[batch.kind_of(plan.kind)]) + _SCAN
    return binary * _JSON_TIMES if plan.encoding == JSON else binary


def seconds(plan: Plan) -> float:
    """Retention by the simple division."""
    return plan.buffer / scan_bytes(plan) * plan.period_ms / 1000


def month_mb(plan: Plan) -> float:
    """Megabytes a month."""
    return scan_bytes(plan) * MONTH_S * 1000 / plan.period_ms / MEGABYTE


PRICES = {link: dollars[F7] / month_mb(Plan()) for link, dollars in DOLLARS.items()}


def why_different(plan: Plan, found: Retention) -> str:
    """One sentence on what parts the true retention from the simple division."""
    bytes_of = framing(plan)
    change = 100 * (found.seconds / seconds(plan) - 1)
    head = f"{abs(change):.1f} % {'longer' if change > 0 else 'shorter'} than by simple division,"
    head += " which fills memory to the last byte with"
    empty = found.spent["left empty"] / found.pages
    tail = f"leaves {empty:.1f} bytes on average that no reading fits; only whole scans count."
    if plan.encoding == F7:
        return (
            f"{head} {_READING} bytes a reading beside its value and {_SCAN} a scan: here a scan"
            f" has a group header of {bytes_of.group}, which comes again where it goes on in the"
            f" next page, and a page spends {MESSAGE_HEAD} on its message header, {bytes_of.head}"
            f" on its batch header, and {tail}"
        )
    return (
        f"{head} {scan_bytes(plan) / plan.tags:.1f} bytes a reading, {_JSON_TIMES} times its"
        f" binary: here one has {bytes_of.upto[-1] / plan.tags:.1f} with its comma, for a value of"
        f" {json.dumps(plan.sample)}, and a page spends {MESSAGE_HEAD} on its message header and"
        f" {tail}"
    )
