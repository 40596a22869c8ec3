"""The command `artifacts`: the files that a task has kept, listed and read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import After, Json, Limit, TaskAddress
from holdfast.cli.app.session import open_service, with_store
from holdfast.cli.app.terminal import (
    escape,
    is_terminal,
    print_json,
    print_line,
    print_note,
    print_table,
)
from holdfast.cli.render.formats import format_ago, format_bytes
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.service.protocol.artifacts import OpenArtifact
    from holdfast.service.service import Service

CHUNK_BYTES = 256 * 1024


@command("artifacts", example="holdfast artifacts @last:report summary.txt")
def artifacts(
    address: TaskAddress,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Print this file (default: list all).")
    ] = None,
    limit: Limit = 100,
    after: After = None,
    json: Json = False,
) -> None:
    """List the files that a task has kept, or print one of them."""
    with open_service() as service:
        found = service.addresses.task(address)
        if name is None:
            _list_artifacts(service, found, limit, after, json=json)
            return
        opened = service.open_artifact(found, name)
        with opened.file:
            if json:
                print_json(opened.description)
            elif is_terminal():
                _show_text(opened, found)
            else:
                _copy_content(opened)


def _list_artifacts(
    service: Service, task_id: str, limit: int, after: str | None, *, json: bool
) -> None:
    from holdfast.service.queries.views import read_time

    page = service.artifacts(task_id, limit=limit, after=after)
    if json:
        print_json(page)
        return
    if not page["items"]:
        print_note(f"{task_id} has kept no files.")
        return
    rows: list[list[str]] = [
        [
            each["name"],
            format_bytes(each["bytes"]),
            str(each["attempt"]),
            format_ago(read_time(each["kept_at"])),
        ]
        for each in page["items"]
    ]
    print_table(("NAME", "SIZE", "ATTEMPT", "KEPT"), rows)
    first = f"holdfast artifacts {task_id} {page['items'][0]['name']}"
    print_note(f"Print one: {with_store(first)}")
    if "next" in page:
        following = f"holdfast artifacts {task_id} --after {page['next']}"
        print_note(f"More: {with_store(following)}")


def _show_text(opened: OpenArtifact, task_id: str) -> None:
    """Print a text on a terminal, without characters that would act on it."""
    try:
        text = opened.file.read().decode()
    except UnicodeDecodeError as error:
        name = opened.description["name"]
        typed = with_store(f"holdfast artifacts {task_id} {name}")
        reason = f"{name} is no text: write it into a file, as in `{typed} > {name}`"
        raise InvalidInput("name", reason) from error
    print_line(escape(text, keep="\n\t").removesuffix("\n"))


def _copy_content(opened: OpenArtifact) -> None:
    while chunk := opened.file.read(CHUNK_BYTES):
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
