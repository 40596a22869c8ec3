"""The report of `holdfast` without a command: recent runs, their cost, and open needs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer

from holdfast.cli.app.command_registry import Store, app
from holdfast.cli.app.session import chosen_store, locate_store, open_service
from holdfast.cli.app.terminal import print_json, print_line


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
    from holdfast.cli.render.report import draw_report

    for line in draw_report(told, since):
        print_line(line)


def _yesterday() -> datetime:
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=1)


def _print_welcome() -> None:
    print_line("No store here yet: nothing has been run in this folder.")
    print_line("next:  holdfast init            set one up here, with a sample workflow")
    print_line("       holdfast demo            watch a pipeline run, at no cost")
    print_line("       holdfast --help          every command")
