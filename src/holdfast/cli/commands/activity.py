"""The commands `activity` and `costs`: what was done and paid lately, by hour and by day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import Json
from holdfast.cli.app.session import open_service
from holdfast.cli.app.terminal import escape, print_json, print_line, print_table
from holdfast.cli.render.formats import SECOND, format_span

View = dict[str, Any]


@command("activity", example="holdfast activity --hours 8")
def activity(
    hours: Annotated[int, typer.Option(min=1, max=744, help="How many hours, this one too.")] = 12,
    json: Json = False,
) -> None:
    """Show by hour what was done, and how long ready work waited."""
    with open_service() as service:
        told = service.activity(hours)
    if json:
        print_json(told)
        return
    headings = ("HOUR", "STARTED", "COMPLETED", "FAILED", "TASKS", "FAILED", "LOST", "P50", "P95")
    print_table(headings, [_hour_row(each) for each in told["items"]])


@command("costs", example="holdfast costs --days 7")
def costs(
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days, today too.")] = 7,
    json: Json = False,
) -> None:
    """Show what attempts have cost by day and workflow."""
    offset = datetime.now(UTC).astimezone().utcoffset()
    minutes = 0 if offset is None else round(offset.total_seconds() / 60)
    with open_service() as service:
        told = service.costs(days, minutes)
    if json:
        print_json(told)
        return
    print_table(("DAY", "COST", "ATTEMPTS", ""), [_day_row(each) for each in told["items"]])
    print_line(f"{_dollars(told['usd'])} in all")


def _hour_row(hour: View) -> list[str]:
    runs, tasks, waits = hour["runs"], hour["tasks"], hour["dispatch"]
    begun = datetime.fromisoformat(hour["hour"]).astimezone().strftime("%d %b %H:%M")
    waited = [format_span(round(waits[each] * SECOND)) if each in waits else "" for each in PARTS]
    counts = (runs["started"], runs["completed"], runs["failed"], tasks["done"], tasks["failed"])
    return [begun, *map(_count, counts), _count(tasks["lost"]), *waited]


PARTS = ("p50", "p95")


def _count(number: int) -> str:
    return str(number or "")


def _day_row(day: View) -> list[str]:
    paid = sorted(day["workflows"].items(), key=lambda each: -each[1])
    shown = ", ".join(f"{escape(name)} {_dollars(usd)}" for name, usd in paid[:3])
    return [
        day["day"],
        _dollars(day["usd"]) if day["attempts"] else "",
        _count(day["attempts"]),
        shown,
    ]


def _dollars(usd: float) -> str:
    return f"${usd:.2f}"
