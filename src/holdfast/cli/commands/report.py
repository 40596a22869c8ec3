"""The report of `holdfast` without a command: recent runs, their cost, and open needs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from holdfast.cli.app.command_registry import Store, app
from holdfast.cli.app.session import chosen_store, locate_store, open_service, with_store
from holdfast.cli.app.terminal import escape, paint, print_json, print_line
from holdfast.cli.render.formats import (
    describe_error_line,
    format_ago,
    format_count,
    format_money,
    format_state,
)

View = dict[str, Any]
SHOWN = 10


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print_line(f"holdfast {version('holdfast')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    db: Store = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    chosen_store.set(db)
    if context.invoked_subcommand is None:
        report(json=json)


def report(*, json: bool) -> None:
    if not locate_store().exists and not json:
        _print_welcome()
        return
    since = _yesterday()
    with open_service() as service:
        told = service.report(round(since.timestamp() * 1_000_000))
    if json:
        print_json(told)
        return
    _print_happened(told, since)
    _print_running(told["running"])
    _print_needs(told["needs_you"], [run for run in told["running"] if "budget" in run["holds"]])
    _print_next(told)


def _yesterday() -> datetime:
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=1)


def _print_welcome() -> None:
    print_line("No store here yet: nothing has been run in this folder.")
    print_line("next:  holdfast init            set one up here, with a sample workflow")
    print_line("       holdfast demo            watch a pipeline run, at no cost")
    print_line("       holdfast --help          every command")


def _print_happened(told: View, since: datetime) -> None:
    from holdfast.service.queries.views import read_cost

    counts = [
        f"{number} {format_state(status)}" for status, number in sorted(told["counts"].items())
    ]
    lone = len(told["failed_tasks"])
    alone = f"; {format_count(lone, 'task')} without a run {format_state('failed')}" if lone else ""
    cost = format_money(read_cost(told["usage"]))
    head = f"Since {since:%A %H:%M}: {', '.join(counts) or 'no run has ended'}{alone}"
    print_line(head + (f" · {cost}" if cost else ""))
    _print_failed([(run["workflow"], run) for run in _failed_runs(told)], "run")
    _print_failed([(task["title"], task) for task in told["failed_tasks"]], "task")


def _failed_runs(told: View) -> list[View]:
    return [run for run in told["ended"] if run["status"] == "failed"]


def _print_failed(named: list[tuple[str, View]], noun: str) -> None:
    for name, each in named[:SHOWN]:
        error = describe_error_line(each["error"]) if each.get("error") is not None else ""
        print_line(f"  {paint('✗', 'red')} {escape(name)} {each['id']}  {error}".rstrip())
    if (more := len(named) - SHOWN) > 0:
        listed = with_store(f"holdfast {noun}s --status failed")
        print_line(f"  and {more} more {noun}{'' if more == 1 else 's'} that failed: {listed}")


def _print_running(running: list[View]) -> None:
    from holdfast.service.queries.views import read_time

    if not running:
        return
    print_line(f"{paint('Running', 'bold')}  {format_count(len(running), 'run')}")
    for run in running[:SHOWN]:
        progress = run.get("progress", {"done": 0, "total": 0})
        held = f"  held: {', '.join(run['holds'])}" if run["holds"] else ""
        done = f"{progress['done']}/{progress['total']}"
        began = format_ago(read_time(run["created_at"]))
        print_line(
            f"  {paint('●', 'cyan')} {escape(run['workflow'])} {run['id']}  {done}  {began}{held}"
        )
    if len(running) > SHOWN:
        print_line(
            f"  and {len(running) - SHOWN} more: {with_store('holdfast runs --status running')}"
        )


def _print_needs(tasks: list[View], spent: list[View]) -> None:
    from holdfast.cli.render.formats import advise_spent_run, cost_of
    from holdfast.cli.render.step_status import advise_answer, describe_waiting

    if not tasks and not spent:
        return
    print_line(paint("Needs you", "bold"))
    for run in spent[:SHOWN]:
        used = f"has used up its budget: {cost_of(run)}"
        print_line(f"  {paint('◆', 'yellow')} {escape(run['workflow'])} {run['id']} {used}")
        print_line(f"    {with_store(advise_spent_run(run))}")
    for task in tasks[:SHOWN]:
        print_line(f"  {paint('◆', 'yellow')} {describe_waiting(task)}")
        print_line(f"    {with_store(advise_answer(task))}")
    if len(tasks) > SHOWN:
        print_line(f"  and {len(tasks) - SHOWN} more")


def _print_next(told: View) -> None:
    newest = [*_failed_runs(told)[:1], *told["failed_tasks"][:1]]
    lines = [f"holdfast {verb} {each['id']}" for each in newest for verb in ("why", "retry")]
    if told["running"]:
        lines.append(f"holdfast show {told['running'][0]['id']} --follow")
    if not lines and not told["needs_you"]:
        lines.append("holdfast runs" if told["ended"] else "holdfast run WORKFLOW --wait")
    for number, line in enumerate(lines):
        print_line(f"{'       ' if number else 'next:  '}{with_store(line)}")
