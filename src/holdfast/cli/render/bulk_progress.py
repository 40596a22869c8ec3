"""Bulk progress: a command for all runs that fit, previewed, or carried out and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.app.advice import format_typed
from holdfast.cli.app.session import open_service, typed_arguments
from holdfast.cli.app.terminal import escape, paint, print_json, print_line, print_note
from holdfast.cli.render.formats import format_count, format_state

if TYPE_CHECKING:
    from holdfast.cli.app.run_selection import RunSelection
    from holdfast.service.commands.bulk_changes import BulkChange, BulkVerb

View = dict[str, Any]
# The exit codes of a change that failed on the way, and of one that refused something.
FAILED = 1


def change_all(verb: BulkVerb, selection: RunSelection, *, dry_run: bool, json: bool) -> int:
    """Change all runs that fit, or tell which; the exit code is FAILED if one was refused."""
    with open_service() as service:
        if dry_run:
            told = service.bulk.preview(verb, selection.filters, everything=True)
            print_json(told) if json else _print_preview(told)
            return 0
        change = service.bulk.prepare(verb, selection.filters, everything=True)
        try:
            ended = change.carry_out(_print_nothing if json else _print_progress)
        except KeyboardInterrupt:
            _print_interrupted(change)
            raise
    if json:
        print_json(ended)
    else:
        _print_ended(ended)
    return FAILED if change.refused or change.failed else 0


def _print_nothing(_: View) -> None: ...


def _print_preview(told: View) -> None:
    print_line(f"would {told['verb']} {format_count(told['matched'], 'run')}")
    for run in told["examples"]:
        key = f"  {escape(run['key'])}" if "key" in run else ""
        labels = "".join(f"  {escape(f'{n}={v}')}" for n, v in run.get("labels", {}).items())
        state = format_state(run["status"])
        print_line(f"  {run['id']}  {escape(run['workflow'])}  {state}{key}{labels}")
    if (more := told["matched"] - len(told["examples"])) > 0:
        print_line(f"  and {more} more")
    do = format_typed(each for each in typed_arguments.get() if each != "--dry-run")
    print_note(paint(f"Nothing was changed. Do it: {do}", "dim"))


def _count_reached(told: View) -> int:
    return int(told["changed"] + told["unchanged"] + told["refused"])


def _print_progress(told: View) -> None:
    reached = _count_reached(told)
    if reached < told["matched"]:
        print_note(paint(f"{reached} of {format_count(told['matched'], 'run')}", "dim"))


def _print_ended(told: View) -> None:
    parts = [f"{told['verb']}: {format_count(told['changed'], 'run')}"]
    parts += [f"{told['unchanged']} as before"] if told["unchanged"] else []
    parts += [f"{told['refused']} refused"] if told["refused"] else []
    print_line(", ".join(parts))
    for each in told["refusals"]:
        print_line(f"  {each['id']} is unchanged ({each['code']}): {escape(each['detail'])}")
    if "error" in told:
        print_note(f"It did not come to its end: {escape(told['error'])}")
        print_note("What it changed stays so; the same command goes on with the rest.")


def _print_interrupted(change: BulkChange) -> None:
    told = change.view()
    print_note(f"{_count_reached(told)} of {format_count(told['matched'], 'run')}; stopped")
    print_note("What it changed stays so; the same command goes on with the rest.")
