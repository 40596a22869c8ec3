"""The report of recent runs: what ended and its cost, what runs, and what needs a person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from holdfast.cli.app.session import with_store
from holdfast.cli.app.terminal import escape, paint, wrap_line
from holdfast.cli.render.formats import (
    advise_spent_run,
    cost_of,
    describe_error_line,
    format_ago,
    format_count,
    format_money,
    format_state,
)
from holdfast.cli.render.step_status import advise_answer, describe_waiting
from holdfast.service.queries.views import read_cost, read_time

View = dict[str, Any]
SHOWN = 10


def draw_report(told: View, since: datetime) -> Iterator[str]:
    yield from _draw_ended(told, since)
    yield from _draw_standstills(told["standstills"])
    yield from _draw_running(told["running"])
    spent = [run for run in told["running"] if "budget" in run["holds"]]
    yield from _draw_needs(told["needs_you"], spent)
    yield from _draw_next(told)


def _draw_ended(told: View, since: datetime) -> Iterator[str]:
    counts = [
        f"{number} {format_state(status)}" for status, number in sorted(told["counts"].items())
    ]
    lone = len(told["failed_tasks"])
    alone = f"; {format_count(lone, 'task')} without a run {format_state('failed')}" if lone else ""
    cost = format_money(read_cost(told["usage"]))
    head = f"Since {since:%A %H:%M}: {', '.join(counts) or 'no run has ended'}{alone}"
    yield head + (f" · {cost}" if cost else "")
    yield from _draw_failed([(run["workflow"], run) for run in _failed_runs(told)], "run")
    yield from _draw_failed([(task["title"], task) for task in told["failed_tasks"]], "task")


def _failed_runs(told: View) -> list[View]:
    return [run for run in told["ended"] if run["status"] == "failed"]


def _draw_failed(named: list[tuple[str, View]], noun: str) -> Iterator[str]:
    for name, each in named[:SHOWN]:
        error = describe_error_line(each["error"]) if each.get("error") is not None else ""
        yield f"  {paint('✗', 'red')} {escape(name)} {each['id']}  {error}".rstrip()
    if (more := len(named) - SHOWN) > 0:
        listed = with_store(f"holdfast {noun}s --status failed")
        yield f"  and {more} more {noun}{'' if more == 1 else 's'} that failed: {listed}"


def _draw_running(running: list[View]) -> Iterator[str]:
    if not running:
        return
    yield f"{paint('Running', 'bold')}  {format_count(len(running), 'run')}"
    for run in running[:SHOWN]:
        progress = run.get("progress", {"done": 0, "total": 0})
        held = f"  held: {', '.join(run['holds'])}" if run["holds"] else ""
        done = f"{progress['done']}/{progress['total']}"
        began = format_ago(read_time(run["created_at"]))
        yield f"  {paint('●', 'cyan')} {escape(run['workflow'])} {run['id']}  {done}  {began}{held}"
    if len(running) > SHOWN:
        listed = with_store("holdfast runs --status running")
        yield f"  and {len(running) - SHOWN} more: {listed}"


def _draw_standstills(standstills: list[View]) -> Iterator[str]:
    if not standstills:
        return
    yield paint("Stands still", "bold")
    for each in standstills[:SHOWN]:
        yield from wrap_line(f"  {paint('◆', 'yellow')} {escape(each['detail'])}", 4)
        if "fix" in each:
            yield from wrap_line(f"    {each['fix']}", 6, joiner=" \\")
    if (more := len(standstills) - SHOWN) > 0:
        yield f"  and {more} more: {with_store('holdfast doctor')}"


def _draw_needs(tasks: list[View], spent: list[View]) -> Iterator[str]:
    if not tasks and not spent:
        return
    yield paint("Needs you", "bold")
    for run in spent[:SHOWN]:
        used = f"has used up its budget: {cost_of(run)}"
        yield f"  {paint('◆', 'yellow')} {escape(run['workflow'])} {run['id']} {used}"
        yield f"    {with_store(advise_spent_run(run))}"
    for task in tasks[:SHOWN]:
        yield f"  {paint('◆', 'yellow')} {describe_waiting(task)}"
        yield f"    {with_store(advise_answer(task))}"
    if len(tasks) > SHOWN:
        yield f"  and {len(tasks) - SHOWN} more"


def _draw_next(told: View) -> Iterator[str]:
    newest = [*_failed_runs(told)[:1], *told["failed_tasks"][:1]]
    lines = [f"holdfast {verb} {each['id']}" for each in newest for verb in ("why", "retry")]
    if told["running"]:
        lines.append(f"holdfast show {told['running'][0]['id']} --follow")
    if not lines and told["standstills"]:
        lines = [each["fix"] for each in told["standstills"][:1] if "fix" in each]
        yield from (f"next:  {line}" for line in lines)
        return
    if not lines and not told["needs_you"]:
        lines.append("holdfast runs" if told["ended"] else "holdfast run WORKFLOW --wait")
    for number, line in enumerate(lines):
        yield f"{'       ' if number else 'next:  '}{with_store(line)}"
