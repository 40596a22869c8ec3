"""The command `diff`: what a run or a task has changed in its repository."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import Address, Json
from holdfast.cli.app.session import open_service
from holdfast.cli.app.terminal import is_terminal, print_json, print_line, print_note
from holdfast.errors import InvalidInput


@command("diff", example="holdfast diff @last")
def diff(
    address: Address = "@last",
    attempt: Annotated[
        int | None, typer.Option(help="Of this attempt of a task (default: the newest).")
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="The changed files alone.")] = False,
    json: Json = False,
) -> None:
    """Show what a run or task has changed in its repository."""
    from holdfast.cli.render.patch import draw_changed_files, draw_patch

    with open_service() as service:
        found = service.addresses.find(address)
        if attempt is not None and found.startswith("r_"):
            raise InvalidInput("attempt", "is of a task, and this is a run: name one of its tasks")
        change = service.change(found, attempt)
    if json:
        print_json(change)
    elif not change["files"]:
        print_note("Nothing has changed.")
    elif stat:
        for line in draw_changed_files(change):
            print_line(line)
    elif is_terminal():
        for line in draw_patch(change["patch"]):
            print_line(line)
    else:
        # As it is, so that `git apply` takes it.
        sys.stdout.write(change["patch"])
    if not json and change.get("truncated"):
        print_note("The change is longer than is kept: this is its beginning.")
