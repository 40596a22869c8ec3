"""`holdfast` alone: what happened since yesterday, what it cost, what needs you, what to type."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from holdfast.cli.app.command_registry import Store, app
from holdfast.cli.app.session import chosen_store, opened, place, with_store
from holdfast.cli.app.terminal import escape, paint, say, say_json
from holdfast.cli.render.formats import ago, coloured, count, error_line, money

View = dict[str, Any]
SHOWN = 10


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"holdfast {version('holdfast')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    db: Store = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    chosen_store.set(db)
    if context.invoked_subcommand is None:
        report(json=json)


def report(*, json: bool) -> None:
    if not place().exists and not json:
        _greet()
        return
    since = _yesterday()
    with opened() as service:
        told = service.report(round(since.timestamp() * 1_000_000))
    if json:
        say_json(told)
        return
    _say_happened(told, since)
    _say_running(told["running"])
    _say_needs(told["needs_you"], [run for run in told["running"] if "budget" in run["holds"]])
    _say_next(told)


def _yesterday() -> datetime:
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=1)


def _greet() -> None:
    say("No store here yet: nothing has been run in this folder.")
    say("next:  holdfast init            set one up here, with a sample workflow")
    say("       holdfast demo            watch a pipeline run, at no cost")
    say("       holdfast --help          every command")


def _say_happened(told: View, since: datetime) -> None:
    from holdfast.service.queries.views import usd

    counts = [f"{number} {coloured(status)}" for status, number in sorted(told["counts"].items())]
    lone = len(told["failed_tasks"])
    alone = f"; {count(lone, 'task')} without a run {coloured('failed')}" if lone else ""
    cost = money(usd(told["usage"]))
    head = f"Since {since:%A %H:%M}: {', '.join(counts) or 'no run has ended'}{alone}"
    say(head + (f" · {cost}" if cost else ""))
    _say_failed([(run["workflow"], run) for run in _failed_runs(told)], "run")
    _say_failed([(task["title"], task) for task in told["failed_tasks"]], "task")


def _failed_runs(told: View) -> list[View]:
    return [run for run in told["ended"] if run["status"] == "failed"]


def _say_failed(named: list[tuple[str, View]], noun: str) -> None:
    for name, each in named[:SHOWN]:
        error = error_line(each["error"]) if each.get("error") is not None else ""
        say(f"  {paint('✗', 'red')} {escape(name)} {each['id']}  {error}".rstrip())
    if (more := len(named) - SHOWN) > 0:
        listed = with_store(f"holdfast {noun}s --status failed")
        say(f"  and {more} more {noun}{'' if more == 1 else 's'} that failed: {listed}")


def _say_running(running: list[View]) -> None:
    from holdfast.service.queries.views import read_time

    if not running:
        return
    say(f"{paint('Running', 'bold')}  {count(len(running), 'run')}")
    for run in running[:SHOWN]:
        progress = run.get("progress", {"done": 0, "total": 0})
        held = f"  held: {', '.join(run['holds'])}" if run["holds"] else ""
        done = f"{progress['done']}/{progress['total']}"
        began = ago(read_time(run["created_at"]))
        say(f"  {paint('●', 'cyan')} {escape(run['workflow'])} {run['id']}  {done}  {began}{held}")
    if len(running) > SHOWN:
        say(f"  and {len(running) - SHOWN} more: {with_store('holdfast runs --status running')}")


def _say_needs(tasks: list[View], spent: list[View]) -> None:
    from holdfast.cli.render.formats import cost_of, how_to_go_on
    from holdfast.cli.render.step_status import tell_waiting, what_to_say

    if not tasks and not spent:
        return
    say(paint("Needs you", "bold"))
    for run in spent[:SHOWN]:
        used = f"has used up its budget: {cost_of(run)}"
        say(f"  {paint('◆', 'yellow')} {escape(run['workflow'])} {run['id']} {used}")
        say(f"    {with_store(how_to_go_on(run))}")
    for task in tasks[:SHOWN]:
        say(f"  {paint('◆', 'yellow')} {tell_waiting(task)}")
        say(f"    {with_store(what_to_say(task))}")
    if len(tasks) > SHOWN:
        say(f"  and {len(tasks) - SHOWN} more")


def _say_next(told: View) -> None:
    newest = [*_failed_runs(told)[:1], *told["failed_tasks"][:1]]
    lines = [f"holdfast {verb} {each['id']}" for each in newest for verb in ("why", "retry")]
    if told["running"]:
        lines.append(f"holdfast show {told['running'][0]['id']} --follow")
    if not lines and not told["needs_you"]:
        lines.append("holdfast runs" if told["ended"] else "holdfast run WORKFLOW --wait")
    for number, line in enumerate(lines):
        say(f"{'       ' if number else 'next:  '}{with_store(line)}")
