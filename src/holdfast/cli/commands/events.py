"""The commands `events` and `logs`: stored entries, and new ones as they are written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import Json, Limit, TaskAddress, complete_id
from holdfast.cli.app.session import open_service, with_store
from holdfast.cli.app.terminal import (
    escape,
    paint,
    print_json,
    print_json_line,
    print_line,
    print_note,
)
from holdfast.cli.render.event_lines import EventNames, View, describe_event, subject_of_event
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.service.queries.history import Cursor
    from holdfast.service.service import Service

PAUSE = 0.1
PAGE = 1_000
ENDED = {"run.completed", "run.failed", "run.cancelled"}

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new entries.")]


@command("events", example="holdfast events @last --follow")
def events(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="A run or task (default: everything).", autocompletion=complete_id
        ),
    ] = None,
    follow: Follow = False,
    after: Annotated[int, typer.Option(help="For a run or task: start after this event.")] = 0,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """Show the history of a run, a task or the store."""
    with open_service() as service:
        found = None if address is None else service.addresses.find(address)
        if follow:
            coming = (
                follow_all(service, service.history.latest_cursor())
                if found is None
                else follow_events(service, found, after)
            )
            names = EventNames(service)
            for event in coming:
                print_json_line(event) if json else print_line(describe_event(event, names))
            return
        if found is None:
            page: View = {"items": service.queries.latest_events(limit)}
        else:
            page = service.queries.events(found, after=after, limit=limit)
        if json:
            print_json(page)
            return
        names = EventNames(service, page["items"])
    for event in page["items"]:
        print_line(describe_event(event, names))
    if "next" in page:
        following = with_store(f"holdfast events {found} --after {page['next']}")
        print_note(f"More: {following}")


@command("logs", example="holdfast logs @last:build.1.implement --follow")
def logs(
    address: TaskAddress,
    attempt: Annotated[int | None, typer.Option(help="Only the log of this attempt.")] = None,
    follow: Follow = False,
    json: Json = False,
) -> None:
    """Print a task's logs, and how each attempt ended."""
    from holdfast.cli.render.tree import draw_attempt

    if json and follow:
        raise InvalidInput("follow", "goes on with text; leave out --json, or ask again")
    with open_service() as service:
        found = service.addresses.task(address)
        told = service.queries.attempts(found)
        chosen = [each for each in told if attempt in {None, each["attempt"]}]
        if json:
            print_json({"items": [each | _read(service, found, each) for each in chosen]})
            return
        if not chosen:
            wanted = "no attempt" if attempt is None else f"no attempt {attempt}"
            print_note(f"{found} had {wanted} yet: {with_store(f'holdfast why {found}')}")
            return
        for each in chosen[:-1]:
            print_line(paint(draw_attempt(each).strip(), "bold"))
            _print_log(service, found, each["attempt"], 0)
        last = chosen[-1]["attempt"]
        print_line(paint(draw_attempt(chosen[-1]).strip(), "bold"))
        shown = _print_log(service, found, last, 0)
        if follow:
            _follow_log(service, found, last, shown)


def _read(service: Service, task_id: str, attempt: dict[str, Any]) -> dict[str, str]:
    from holdfast.service.protocol.attempt_files import read_log

    written = read_log(service.location, task_id, attempt["attempt"])
    return {"log": written.decode(errors="replace")}


def _print_log(service: Service, task_id: str, attempt: int, start: int) -> int:
    """Print a log from an offset on, and return the offset of its end."""
    from holdfast.service.protocol.attempt_files import read_log

    text = read_log(service.location, task_id, attempt, start)
    if text:
        shown = escape(text.decode(errors="replace"), keep="\n\t").rstrip("\n")
        print_line(shown)
    return start + len(text)


def _follow_log(service: Service, task_id: str, attempt: int, start: int) -> None:
    while True:
        start = _print_log(service, task_id, attempt, start)
        if service.queries.task(task_id)["status"] != "running":
            _print_log(service, task_id, attempt, start)
            return
        time.sleep(PAUSE)


def follow_events(service: Service, identifier: str, after: int = 0) -> Iterator[View]:
    """The events of a run until it has ended, or of a task without end."""
    over = False
    while True:
        page = service.queries.events(identifier, after=after, limit=PAGE)["items"]
        yield from page
        # The events of the tasks of a cancelled run come after the event of its end.
        for event in page:
            after = event["seq"]
            if subject_of_event(event) == identifier:
                over = event["type"] in ENDED
        if over and not page:
            return
        if not page:
            time.sleep(PAUSE)


def follow_all(service: Service, cursor: Cursor) -> Iterator[View]:
    """All events from a cursor on, also events whose transaction commits after later events."""
    while True:
        told = service.history.events_after(cursor, PAGE)
        yield from (each.event for each in told)
        if told:
            cursor = told[-1].cursor
        else:
            time.sleep(PAUSE)
