"""The command `import`: the tasks and runs of an older task runner, taken over from its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import DryRun, Json
from holdfast.cli.app.session import begin_store, locate_store, open_holdfast, with_store
from holdfast.cli.app.terminal import escape, paint, print_json, print_line, print_note
from holdfast.cli.render.formats import format_count

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.importing.report import ImportReport

SHOWN = 20


@command("import", example="holdfast import old/tasks.db --dry-run")
def import_older_file(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="The SQLite file of the older task runner.")
    ],
    only: Annotated[
        str | None, typer.Option(help="Only tasks or only runs (default: all there is).")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="A name of its own for a second file with the same ids.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent that the tasks are for.")] = "default",
    step: Annotated[
        str | None, typer.Option(help="The task function of --app that carries the tasks out.")
    ] = None,
    app: Annotated[
        str | None, typer.Option(help="The program whose store it goes to, as module:name.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Import tasks and runs of an older task runner, once."""
    from holdfast.importing import import_file

    with _open_target(app, dry_run=dry_run) as into:
        reports = import_file(
            path, into=into, only=only, name=name, agent=agent, step=step, dry_run=dry_run
        )
    if json:
        print_json({"dry_run": dry_run, **{kind: each.told() for kind, each in reports.items()}})
        return
    for kind, report in reports.items():
        _print_report(kind, report, dry_run=dry_run)
    if dry_run:
        print_note("A dry run: nothing was imported.")
    else:
        print_note(f"Look: {with_store('holdfast tasks')}, {with_store('holdfast runs')}")


@contextmanager
def _open_target(app: str | None, *, dry_run: bool) -> Iterator[Holdfast]:
    """The store to import into; a dry run without a store goes to one that is thrown away."""
    if app is not None:
        from holdfast.cli.app.program import load_app

        with load_app(app) as program:
            yield program
    elif dry_run and not locate_store().exists:
        import tempfile

        from holdfast.api.holdfast import Holdfast

        with (
            tempfile.TemporaryDirectory(prefix="holdfast-import-") as folder,
            Holdfast(f"sqlite:///{folder}/rehearsal.db") as opened,
        ):
            yield opened
    else:
        with begin_store() as service, open_holdfast(service.location.url) as opened:
            yield opened


def _print_report(kind: str, report: ImportReport, *, dry_run: bool) -> None:
    noun = {"tasks": "task", "runs": "run or step"}[kind]
    verb = "would be made" if dry_run else "made"
    before = len(report.moved) - report.created
    told = "" if not before else f", {before} here before"
    print_line(f"{kind}: {_count(report.created, noun)} {verb}{told}")
    for (was, became), number in report.counts.items():
        print_line(f"  {escape(was)} → {became}: {number}")
    _print_remarks(report.left_out, "left out")
    _print_remarks(report.remarks, "see")


def _count(number: int, noun: str) -> str:
    return format_count(number, noun) if noun != "run or step" else f"{number} runs and steps"


def _print_remarks(remarks: Any, verb: str) -> None:  # noqa: ANN401 - remarks of a report
    for each in remarks[:SHOWN]:
        print_line(f"  {paint(verb, 'yellow')} {escape(each.old)}: {escape(each.reason)}")
    if len(remarks) > SHOWN:
        print_line(f"  and {len(remarks) - SHOWN} more: --json lists all")
