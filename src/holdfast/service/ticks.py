"""The next ticks of a cron expression; no store is needed to reckon them."""

from __future__ import annotations

from itertools import islice

from holdfast.model.schedule import check_cron, first_after, tell_local, ticks_after


def next_ticks(cron: str, zone: str, count: int, now: int) -> list[str]:
    """The ticks after a moment, as times of their zone in ISO 8601."""
    rule, place = check_cron(cron, zone)
    first_after(rule, place, now)
    ticks = islice(ticks_after(rule, place, now), count)
    return [tell_local(tick, place).isoformat() for tick in ticks]
