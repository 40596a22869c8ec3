"""What work used up: the numbers of each attempt's usage, added by name."""

from __future__ import annotations

import json
from collections.abc import Iterable

from holdfast.model.budget import is_amount
from holdfast.model.event import read_data
from holdfast.store.database import Row

Usage = dict[str, float]


def usage_by_owner(rows: Iterable[Row]) -> dict[str, Usage]:
    """What runs or tasks used up: the ends of attempts, and what is running."""
    totals: dict[str, Usage] = {}
    for row in rows:
        ended = row["data"] is not None
        used = read_data(row["data"]).get("usage") if ended else json.loads(row["usage"])
        add(totals.setdefault(row["owner"], {}), used)
    return totals


def add(total: Usage, used: object) -> None:
    if not isinstance(used, dict):
        return
    for name, value in used.items():
        if is_amount(value):
            total[name] = total.get(name, 0) + value


def usd(used: object) -> float | None:
    """What it cost, where that is known."""
    match used:
        case {"usd": bool()}:
            return None
        case {"usd": int() | float() as cost}:
            return float(cost)
        case _:
            return None
