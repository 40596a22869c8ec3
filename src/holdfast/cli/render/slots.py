"""Slots of a worker as lines: the attempts that run in them, and the overruns."""

from __future__ import annotations

from typing import Any

from holdfast.cli.app.terminal import escape, fit, paint
from holdfast.cli.render.formats import format_span, now
from holdfast.service.queries.views import read_time

View = dict[str, Any]


def draw_slots(worker: View, most: int) -> list[str]:
    """What a worker runs, the longest first, in at most so many lines and one for the rest."""
    running, overruns = worker["running"], worker.get("overruns", ())
    lines = [fit(f"  {paint('●', 'cyan')} {_describe_occupant(each)}") for each in running[:most]]
    lines += [
        fit(f"  {paint('●', 'red')} {_describe_occupant(each)}, over: its function goes on")
        for each in overruns[:most]
    ]
    named = len(running[:most]) + len(overruns[:most])
    more = len(running) + len(overruns) - named
    shown = [f"{paint(escape(worker['name']), 'bold')} runs:", *lines] if lines else []
    return [*shown, f"  and {more} more"] if more else shown


def _describe_occupant(occupant: View) -> str:
    took = format_span(now() - (read_time(occupant["began_at"]) or 0))
    run = f" of {occupant['run_id']}" if "run_id" in occupant else ""
    attempt = f", attempt {occupant['attempt']}" if occupant["attempt"] > 1 else ""
    return f"{escape(occupant['name'])}  {occupant['task_id']}{run}  {took}{attempt}"
