"""A data pipeline: fans out over the days of a week, and back in to one report.

The days are read side by side, four at a time. One of them fails at first and is tried again; the
others do not wait for it, and the report waits for all.

Run it, in this folder:   holdfast run pipeline:week -i days=7 --wait
Or without the program:   python pipeline.py
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from holdfast import Holdfast, needs

hf = Holdfast(os.environ.get("HOLDFAST_DB", "sqlite:///pipeline.db"))
week = hf.workflow("week")


@dataclass
class Sale:
    product: str
    pounds: int


@dataclass
class Day:
    number: int
    total: int


@week.step
def plan(days: int) -> list[int]:
    return list(range(1, days + 1))


each_day = week.loop("each_day", over=needs(plan), parallel=4)


@each_day.step(max_attempts=3, backoff="200ms")
def extract(item: int, attempt: int) -> list[Sale]:
    if item == 2 and attempt == 1:  # noqa: PLR2004
        message = "the till of day 2 did not answer"
        raise ConnectionError(message)
    return [Sale("tea", 3 * item), Sale("mug", 10), Sale("returned", -item)]


@each_day.step
def transform(item: int, sales: list[Sale] = needs(extract)) -> Day:
    return Day(item, sum(sale.pounds for sale in sales if sale.pounds > 0))


@week.step
def report(days: list[Day] = needs(each_day)) -> str:
    best = max(days, key=lambda day: day.total)
    total = sum(day.total for day in days)
    return f"{len(days)} days, {total} pounds in all, day {best.number} the best with {best.total}"


if __name__ == "__main__":
    with hf, hf.worker():
        print(week.start(days=7).result(timeout="1m"))
