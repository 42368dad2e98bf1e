"""The answer of `python -m tools size`, as one nested dict: for a machine as it is, for a person
through `tools.size_view`, so that the two cannot disagree."""

import math

from tools import seed_figures, sizing, traffic
from tools.sizing import LIMITS, Plan

ASSUMPTIONS = (
    "One value a reading; all tags of a scan are read at one moment; the ring is empty when the"
    " link fails. Alerts come on top; health messages give way to readings.",
    f"On the wire: MQTT at QoS 1 to a topic of {len(traffic.TOPIC)} bytes; TCP/IPv4 segments with"
    f" 40 bytes of headers; pings at half a keepalive of {traffic.KEEPALIVE_S} s; no TLS, nothing"
    " sent twice, the link up all month.",
    f"Health messages come on top: about {traffic.health_month() / traffic.MEGABYTE:.0f} MB a"
    f" month at one each {traffic.HEALTH_PERIOD_S} s (health.period_s).",
    "The default prices are assumed from seed 004: $15 a month on cellular and $50 on satellite"
    f" for its binary case, which by its own bytes is {seed_figures.month_mb(Plan()):.1f} MB.",
)
_IN_CONFIG = (("buffer", "ring.bytes"), ("page", "ring.page_bytes"))


def answer(plan: Plan, prices: dict[str, float], rtt_ms: float = 0, rate_kbit: float = 0) -> dict:
    """All that is known of a plan.

    `prices` are dollars a megabyte by link. `drain_s` is None when neither a round trip nor a rate
    is given; a rate of 0 is no limit.
    """
    found = sizing.retention(plan)
    seed_s = seed_figures.seconds(plan)
    return {
        "tags": plan.tags,
        "period_s": plan.period_ms / 1000,
        "encoding": plan.encoding,
        "kind": plan.kind,
        "value": plan.sample,
        "buffer_bytes": plan.buffer,
        "page_bytes": plan.page,
        "pages": found.pages,
        "max_readings": plan.max_readings,
        "max_age_ms": plan.max_age_ms,
        "readings": found.readings,
        "readings_per_page": found.readings / found.pages,
        "scans": found.scans,
        "retention_s": found.seconds,
        "retention_h": found.seconds / 3600,
        "bytes": found.spent,
        "seed": {
            "bytes_per_scan": seed_figures.scan_bytes(plan),
            "retention_s": seed_s,
            "retention_h": seed_s / 3600,
            "its_case_h": seed_figures.HOURS[plan.encoding],
            "difference_percent": 100 * (found.seconds / seed_s - 1),
            "why": seed_figures.why_different(plan, found),
        },
        "month": _month(plan, prices),
        "drain_s": _drain(found, rtt_ms, rate_kbit),
        "notes": _notes(plan),
    }


def _month(plan: Plan, prices: dict[str, float]) -> dict:
    month = traffic.month(plan)
    return {
        "days": traffic.MONTH_S // 86400,
        "messages": month.messages,
        "bytes": {
            "total": month.total,
            "batches": month.payload,
            "mqtt": month.mqtt,
            "tcp_ip": month.tcp_ip,
            "pings": month.keepalive,
        },
        "prices": {
            link: {
                "dollars_per_mb": price,
                "dollars": month.price(price),
                "seed_dollars": seed_figures.month_mb(plan) * price,
                "seed_its_case_dollars": seed_figures.DOLLARS[link][plan.encoding],
            }
            for link, price in prices.items()
        },
    }


def _drain(found: sizing.Retention, rtt_ms: float, rate_kbit: float) -> float | None:
    if not rtt_ms and not rate_kbit:
        return None
    batches = ("readings", "group headers", "batch headers")
    payload = round(sum(found.spent[part] for part in batches) / found.pages)
    bits_per_s = 1000 * rate_kbit if rate_kbit else math.inf
    return traffic.drain_seconds(found.pages, payload, rtt_ms / 1000, bits_per_s)


def _notes(plan: Plan) -> list[str]:
    """What the plan asks for beyond what a board's config.json takes."""
    notes = []
    for name, key in _IN_CONFIG:
        value = getattr(plan, name)
        least, most = LIMITS[key]
        if not least <= value <= most:
            notes.append(f"A board's config.json takes {key} of {least} to {most}, not {value}.")
    return notes
