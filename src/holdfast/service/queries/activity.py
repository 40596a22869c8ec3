"""Activity: what was done, waited for and paid by hour and by day, counted from the events."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.read.pages import number
from holdfast.model.budget import to_dollars
from holdfast.model.event import read_event_data
from holdfast.service.queries.run_history import StoreReader
from holdfast.service.queries.views import View, format_time
from holdfast.store.database import Row, Transaction

HOUR = 3_600_000_000
DAY = 24 * HOUR
MAX_HOURS = 24 * 31
MAX_DAYS = 366
# The times of so many attempts are looked at, the latest of them.
MAX_DISPATCHES = 20_000
# The minutes by which the day of a place begins before or after that of UTC.
MAX_OFFSET = 14 * 60
# An event may be numbered after one that was written later, by no more than this.
_LATE_COMMIT = HOUR
_RUN_TYPES = {
    "run.started": "started",
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
}
_TASK_TYPES = {
    "task.done": "done",
    "task.failed": "failed",
    "task.retrying": "retried",
    "task.lost": "lost",
}


def view_activity(read_store: StoreReader, hours: int) -> View:
    """What ended, failed and was lost in each of the last hours, and how long work waited.

    `dispatch` tells how long tasks were ready before an attempt began, in seconds.
    """
    count = number("hours", hours, least=1, most=MAX_HOURS)

    def read(tx: Transaction) -> View:
        last = _read_now(tx) // HOUR
        since = (last - count + 1) * HOUR
        first = find_first_event(tx, since)
        told = {hour: _empty_hour(hour) for hour in range(last - count + 1, last + 1)}
        for row in tx.read("activity_by_hour", first=first, since=since):
            hour = told.get(row["hour"])
            if hour is not None:
                of_run = _RUN_TYPES.get(row["type"])
                part = hour["runs"] if of_run else hour["tasks"]
                part[of_run or _TASK_TYPES[row["type"]]] += int(row["events"])
        rows = tx.read("dispatches_since", first=first, since=since, count=MAX_DISPATCHES)
        for at, waits in _read_waits(rows).items():
            if at in told:
                told[at]["dispatch"] = _describe_waits(waits)
        return {"items": list(told.values())}

    return read_store(read)


def _empty_hour(hour: int) -> View:
    return {
        "hour": format_time(hour * HOUR),
        "runs": dict.fromkeys(_RUN_TYPES.values(), 0),
        "tasks": dict.fromkeys(_TASK_TYPES.values(), 0),
        "dispatch": {"attempts": 0},
    }


def _read_waits(rows: Sequence[Row]) -> dict[int, list[int]]:
    """How long the tasks of some attempts were ready before, by the hour of the attempts."""
    waits: dict[int, list[int]] = {}
    for row in rows:
        waits.setdefault(row["at"] // HOUR, []).append(0 if row["direct"] else _read_wait(row))
    return waits


def _read_wait(row: Row) -> int:
    due = read_event_data(row["readiness"]).get("scheduled_for")
    ready = max(row["ready_at"], due) if isinstance(due, int) else row["ready_at"]
    return max(0, int(row["at"] - ready))


def _describe_waits(waits: list[int]) -> View:
    waits.sort()

    def share(part: float) -> float:
        return round(waits[min(len(waits) - 1, int(len(waits) * part))] / 1_000_000, 6)

    return {"attempts": len(waits), "p50": share(0.5), "p95": share(0.95)}


def view_costs(read_store: StoreReader, days: int, offset: int = 0) -> View:
    """What was paid on each of the last days, by workflow; days begin `offset` minutes off UTC."""
    count = number("days", days, least=1, most=MAX_DAYS)
    apart = number("offset", offset, least=-MAX_OFFSET, most=MAX_OFFSET) * (HOUR // 60)

    def read(tx: Transaction) -> View:
        last = (_read_now(tx) + apart) // DAY
        begin = last - count + 1
        since = begin * DAY - apart
        told = {day: _empty_day(day) for day in range(begin, last + 1)}
        first = find_first_event(tx, since)
        for row in tx.read("costs_by_day", first=first, since=since, offset=apart):
            day = told.get(row["day"])
            if day is not None:
                usd = to_dollars(int(row["usd"]))
                day["usd"] = round(day["usd"] + usd, 6)
                day["attempts"] += int(row["attempts"])
                if row["workflow"] is not None:
                    day["workflows"][row["workflow"]] = usd
        items = list(told.values())
        return {"items": items, "usd": round(sum(each["usd"] for each in items), 6)}

    return read_store(read)


def _empty_day(day: int) -> View:
    date = (format_time(day * DAY) or "").partition("T")[0]
    return {"day": date, "usd": 0.0, "attempts": 0, "workflows": {}}


def find_first_event(tx: Transaction, since: int) -> int:
    """The number of an event at or before the first one since a moment, by halving.

    Numbers grow with time but for transactions that commit late.
    """
    low, high = 0, int(tx.read("newest_number")[0]["event"] or 0) + 1
    while low < high:
        middle = (low + high) // 2
        found = tx.read("event_from", seq=middle)
        if found and found[0]["at"] < since - _LATE_COMMIT:
            low = found[0]["seq"] + 1
        else:
            high = middle
    return low


def _read_now(tx: Transaction) -> int:
    (row,) = tx.read("now")
    return int(row["now"])
