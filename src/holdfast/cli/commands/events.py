"""The commands `events` and `logs`: stored entries, and new ones as they are written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import Address, Json, Limit, complete_id
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
RUN_PAUSE = 0.25
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
    address: Address,
    attempt: Annotated[
        int | None, typer.Option(help="Of a task: only the log of this attempt.")
    ] = None,
    follow: Follow = False,
    json: Json = False,
) -> None:
    """Print the logs of a task, or of all steps of a run."""
    from holdfast.cli.render.tree import draw_attempt

    if json and follow:
        raise InvalidInput("follow", "goes on with text; leave out --json, or ask again")
    with open_service() as service:
        found = service.addresses.find(address)
        if found.startswith("r_"):
            if attempt is not None:
                raise InvalidInput("attempt", f"is for one task: holdfast logs {found}:STEP")
            _print_logs_of_run(service, found, follow=follow, json=json)
            return
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


def _print_logs_of_run(service: Service, run_id: str, *, follow: bool, json: bool) -> None:
    logs = RunLogs(service, run_id)
    if json:
        print_json({"items": logs.read_all()})
        return
    while True:
        under_way = logs.print_new(following=follow)
        if not (follow and under_way):
            break
        time.sleep(RUN_PAUSE)
    if not logs.has_printed:
        print_note(f"{run_id} has no logs yet: {with_store(f'holdfast why {run_id}')}")


class RunLogs:
    """The logs of all attempts of a run and the runs it called, in the order of their starts."""

    def __init__(self, service: Service, run_id: str) -> None:
        self._service = service
        self._run_id = run_id
        self._offsets: dict[tuple[str, int], int] = {}
        self._ended: set[tuple[str, int]] = set()
        # The time of the claim of each attempt, as it is printed.
        self._claimed: dict[tuple[str, int], str] = {}
        self.has_printed = False

    def read_all(self) -> list[View]:
        """Each log that there is, with the step and the attempt that has written it."""
        return [
            {"task_id": task["id"], "step": name, "attempt": attempt, "log": text}
            for task, name, attempt in self._list_attempts(self._read_run())
            if (text := _read_text(self._service, task["id"], attempt))
        ]

    def print_new(self, *, following: bool) -> bool:
        """Print the lines written since the last call; gives whether the run is under way.

        A line that is still being written is left to the next call, if one is `following`.
        """
        run = self._read_run()
        for task, name, attempt in self._list_attempts(run):
            under_way = task["status"] == "running" and attempt == task["attempt"]
            over = not (following and under_way)
            if (task["id"], attempt) not in self._ended:
                self._print_lines(task, name, attempt, over=over)
        return bool(run["status"] == "running")

    def _read_run(self) -> View:
        return self._service.queries.run(self._run_id, brief=True)

    def _list_attempts(self, run: View) -> Iterator[tuple[View, str, int]]:
        from holdfast.service.queries.run_tree import name_steps, walk_tasks

        names = name_steps(run["tasks"])
        begun = {task["id"]: task for task in walk_tasks(run["tasks"]) if task["attempt"]}
        for task in begun.values():
            self._note_claims(task)
        keys = [(each, n + 1) for each, task in begun.items() for n in range(task["attempt"])]
        for task_id, attempt in sorted(keys, key=lambda key: (self._claimed.get(key, "~"), key)):
            yield begun[task_id], names[task_id], attempt

    def _note_claims(self, task: View) -> None:
        """Note when the attempts of a task were claimed; the store is asked for new ones alone."""
        newest = (task["id"], task["attempt"])
        if task["attempt"] == 1 and "started_at" in task:
            self._claimed[newest] = task["started_at"]
        elif newest not in self._claimed:
            for each in self._service.queries.attempts(task["id"]):
                self._claimed[task["id"], each["attempt"]] = each["claimed_at"]

    def _print_lines(self, task: View, name: str, attempt: int, *, over: bool) -> None:
        """Print the new lines of an attempt; of one that is not over, those that are complete."""
        from holdfast.service.protocol.attempt_files import read_log

        key = (task["id"], attempt)
        start = self._offsets.get(key, 0)
        text = read_log(self._service.location, *key, start)
        whole = text if over else text[: text.rfind(b"\n") + 1]
        self._offsets[key] = start + len(whole)
        if over:
            self._ended.add(key)
        told = f" attempt {attempt}" if task["attempt"] > 1 else ""
        place = paint(escape(name) + told, "dim")
        shown = escape(whole.decode(errors="replace"), keep="\n\t").removesuffix("\n")
        for line in shown.split("\n") if whole else ():
            print_line(f"{place}  {line}")
            self.has_printed = True


def _read_text(service: Service, task_id: str, attempt: int) -> str:
    return _read(service, task_id, {"attempt": attempt})["log"]


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
