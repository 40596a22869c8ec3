"""Views: the shapes of runs, tasks, events, attempts and schedules as JSON, and sums of usage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from holdfast.model.budget import Budget, BudgetUsage, is_amount
from holdfast.model.event import read_event_data
from holdfast.model.moment import count_microseconds, describe_moment
from holdfast.model.status import TaskKind
from holdfast.service.queries.shapes import ExampleOf, Field, Shape, field, given

if TYPE_CHECKING:
    # The records and the store are slow to load, and a command that only prints needs none.
    from holdfast.model.event import Event
    from holdfast.model.run import Run
    from holdfast.model.schedule import Schedule
    from holdfast.model.task import Attempt, NamedLease, Task
    from holdfast.model.worker import WorkerLoad
    from holdfast.store.database import Row, Transaction

View = dict[str, Any]
Titles = Mapping[str, tuple[str | None, str | None]]


def format_time(moment: datetime | int | None) -> str | None:
    """Format a moment, or microseconds since 1970, as ISO 8601 in UTC."""
    return None if moment is None else _format_moment(moment)


# The records of one commit have the same time, and are often read together.
@lru_cache(maxsize=1_024)
def _format_moment(moment: datetime | int) -> str:
    return describe_moment(moment)


def read_time(text: str | None) -> int | None:
    """Read microseconds since 1970 from a time in a view."""
    if text is None:
        return None
    return count_microseconds(datetime.fromisoformat(text))


def without_nulls(**fields: Any) -> View:
    return {name: value for name, value in fields.items() if value is not None}


def time(name: str, *, kind: type | None = None, example: str | None = None) -> Field:
    """A moment of the record, which the view has as ISO 8601."""
    moment = attrgetter(name)
    return field(name, lambda record: format_time(moment(record)), kind=kind, example=example)


RUN = Shape(
    field("id", kind=str, example=ExampleOf.RUN_ID),
    field("workflow", kind=str, example="letters"),
    field("workflow_version", kind=str, example=ExampleOf.VERSION),
    field("key", example="monday"),
    field("parent_id"),
    field("root_id"),
    field("status", "status.value", kind=str, example="running"),
    field("holds", lambda run: list(run.holds.names), kind=list[str], example=[]),
    field("labels", lambda run: run.labels or None, example={"customer": "7"}),
    field("input", example={"to": "Ada"}),
    field("error"),
    field("version", kind=int, example=1),
    field("generation", kind=int, example=1),
    time("created_at", kind=str, example=ExampleOf.TIME),
    time("finished_at"),
    time("deadline"),
    time("scheduled_for"),
    given("output"),
    given("usage"),
    given("caller"),
    given("budget"),
    given("progress", example={"done": 0, "total": 2}),
    given("branch", description="In a workspace: the branch that shows its commits"),
    given("commit", description="In a workspace: the newest commit of its line"),
)
_LEASE = Shape(field("owner"), time("expires_at"))
TASK = Shape(
    field("id", kind=str, example=ExampleOf.TASK_ID),
    field("kind", "kind.value", kind=str, example="work"),
    field("run_id"),
    field("parent_id"),
    field("step"),
    field("item"),
    field("calls"),
    field("title", kind=str, example="Write the letter"),
    field("agent", kind=str, example="writer"),
    field("escalated_from"),
    field("status", "status.value", kind=str, example="queued"),
    given(
        "state",
        kind=str,
        example="ready",
        description="What a person sees: `ready`, `blocked`, `in progress 2/5`, …",
    ),
    field("planning_phase", "planning_phase.value", kind=str, example="none"),
    given("blocked_by", kind=list[str], example=[]),
    field("holds", lambda task: list(task.holds.names), kind=list[str], example=[]),
    time("held_until"),
    field("skipped", kind=bool, example=False),
    field("superseded", lambda task: task.superseded or None),
    field("attempt", kind=int, example=0),
    field("failures", kind=int, example=0),
    field("max_attempts", "retry.max_attempts", kind=int, example=3),
    field("lost", kind=int, example=0),
    field("max_lost", "retry.max_lost", kind=int, example=5),
    field("round", example=0),
    field("max_rounds", lambda task: task.max_rounds if task.round else None),
    field("generation", kind=int, example=1),
    field("priority", kind=int, example=0),
    field("position", kind=int, example=0),
    time("scheduled_for"),
    field("waits_for"),
    field("tags", lambda task: list(task.tags), kind=list[str], example=["gpu"]),
    field("labels", lambda task: task.labels or None),
    field("key", example="letter-1"),
    field("timeout"),
    field("payload", example={"prompt": "Write three lines"}),
    field("output"),
    field("error"),
    field("progress"),
    field("question"),
    field("feedback"),
    field("lease", lambda task: task.lease and _LEASE.view(task.lease)),
    field("usage"),
    given("commit", description="In a workspace: the commit that it gave its line"),
    field("version", kind=int, example=1),
    time("created_at", kind=str, example=ExampleOf.TIME),
    time("started_at"),
    time("finished_at"),
)
EVENT = Shape(
    field("seq", kind=int, example=2),
    field("type", kind=str, example="task.running"),
    field("run_id"),
    field("task_id", example=ExampleOf.TASK_ID),
    given("step", example="write"),
    given("title", example="Write the letter"),
    field("version", kind=int, example=2),
    field("generation", example=1),
    field("attempt", kind=int, example=1),
    field("actor", kind=str, example="python-1"),
    time("at", kind=str, example=ExampleOf.TIME),
    field("data", lambda event: _data_of(event) or None),
    field("from", "source", example="queued"),
    field("to", "target", example="running"),
)
ATTEMPT = Shape(
    field("task_id"),
    field("attempt", "number"),
    field("owner"),
    time("claimed_at"),
    time("ended_at"),
    field("outcome"),
    field("digest"),
    field("error"),
    field("usage"),
    time("stopped_at"),
    field("stopped", lambda attempt: None if attempt.stopped_at is None else attempt.stopped),
    field("left", lambda attempt: None if attempt.stopped_at is None else attempt.left),
    given("commits", description="In a workspace: what it committed, by kind"),
)
COMMIT = Shape(
    field("kind", itemgetter("kind")),
    field("sha", itemgetter("sha")),
    field("base", itemgetter("base")),
    field("number", itemgetter("number")),
)
SCHEDULE = Shape(
    field("name", kind=str, example="nightly"),
    field("cron", kind=str, example="30 2 * * *"),
    field("zone", kind=str, example="UTC"),
    field("missed", lambda schedule: str(schedule.missed)),
    field("workflow", example="letters"),
    field("task"),
    field("input"),
    field("run_id"),
    field("paused"),
    time("next_at"),
    time("last_at"),
    field("last_error"),
    field("version"),
    time("created_at"),
)
WORKER = Shape(
    field("name"),
    field("agents", lambda worker: list(worker.agents)),
    field("tags", lambda worker: list(worker.tags)),
    field("equipped", lambda worker: list(worker.equipped)),
    field("concurrency"),
    given("used"),
    given("free"),
    field("told"),
    field("pausing"),
    time("started_at"),
    time("seen_at"),
    given("running"),
    given("overruns"),
)
_OCCUPANT = Shape(
    field("task_id"),
    field("run_id"),
    field("name"),
    field("attempt"),
    time("began_at"),
)
NAMED_LEASE = Shape(
    field("key"), field("owner"), field("fence"), field("token"), time("expires_at")
)
# Read from a row: a run has a workflow where a task has a title.
TOMBSTONE = Shape(
    field("id", itemgetter("entity")),
    field("workflow", lambda row: row["name"] if row["kind"] == "run" else None),
    field("workflow_version", itemgetter("version")),
    field("title", lambda row: None if row["kind"] == "run" else row["name"]),
    field("key", itemgetter("key")),
    field("status", itemgetter("status")),
    field("created_at", lambda row: format_time(row["created_at"])),
    field("finished_at", lambda row: format_time(row["finished_at"])),
    field("removed_at", lambda row: format_time(row["removed_at"])),
)


def view_run(run: Run, **more: object) -> View:
    return RUN.view(run, **more)


def view_budget(budget: Budget, used: BudgetUsage) -> View:
    """The limits of a run that it has, and what it has used so far."""
    return without_nulls(**asdict(budget), used=asdict(used))


def view_task(
    task: Task, *, blocked_by: list[str] | None = None, below: tuple[int, int] | None = None
) -> View:
    """A task; `below` is how many of the tasks right below it are done, and how many there are."""
    return TASK.view(task, state=describe_state(task, below), blocked_by=blocked_by or [])


def describe_state(task: Task, below: tuple[int, int] | None) -> str:
    """The state that a person sees; that of a group under way says how much of it is done."""
    if task.kind is TaskKind.GROUP or below is not None:
        done, total = below or (0, 0)
        if total and not task.terminal and task.state in {"idle", "ready", "in progress"}:
            return f"in progress {done}/{total}"
    return task.state


def view_event(event: Event, titles: Titles) -> View:
    """An event with the step and title of its task; the title of a run is its workflow."""
    step, title = titles.get(event.task_id or event.run_id or "", (None, None))
    return EVENT.view(event, step=step, title=title)


def read_titles(tx: Transaction, events: Sequence[Row]) -> Titles:
    """The step and title of each task or run of some rows of events; a removed one has none."""
    ids = sorted({row["entity"] for row in events})
    found = tx.read("titles_of", ids=ids) if ids else []
    return {row["id"]: (row["step"], row["title"]) for row in found}


def _data_of(event: Event) -> View:
    # A creation has no values from before: a null has a meaning only in a change.
    return event.data if event.source is not None else without_nulls(**event.data)


def view_attempt(attempt: Attempt, commits: Sequence[Row] = ()) -> View:
    """An attempt, with the commits it recorded; of kind `left` is what it left beside its line."""
    return ATTEMPT.view(attempt, commits=[COMMIT.view(each) for each in commits] or None)


def view_schedule(schedule: Schedule) -> View:
    return SCHEDULE.view(schedule)


def view_worker(load: WorkerLoad) -> View:
    """A live worker, with what takes its slots; `running` counts no more than the oldest."""
    return WORKER.view(
        load.worker,
        used=load.used,
        free=load.free,
        running=[_OCCUPANT.view(each) for each in load.running],
        overruns=[_OCCUPANT.view(each) for each in load.overruns] or None,
    )


def view_lease(lease: NamedLease) -> View:
    return NAMED_LEASE.view(lease)


def view_tombstone(row: Row) -> View:
    """The tombstone of a run or task that was removed."""
    return TOMBSTONE.view(row)


def describe_removed(tx: Transaction, identifier: str) -> str:
    """Say when a run or task was removed, if there is a tombstone of it."""
    for row in tx.read("tombstone_of", entity=identifier):
        return f"it was {row['status']}, and removed {format_time(row['removed_at'])}: keep.runs"
    return ""


Usage = dict[str, float]


def usage_by_owner(rows: Iterable[Row]) -> dict[str, Usage]:
    """The usage of runs or tasks by id: of attempts that have ended, and of running ones."""
    totals: dict[str, Usage] = {}
    for row in rows:
        ended = row["data"] is not None
        used = read_event_data(row["data"]).get("usage") if ended else json.loads(row["usage"])
        add_usage(totals.setdefault(row["owner"], {}), used)
    return totals


def add_usage(total: Usage, used: object) -> None:
    if not isinstance(used, dict):
        return
    for name, value in used.items():
        if is_amount(value):
            total[name] = total.get(name, 0) + value


def read_cost(used: object) -> float | None:
    """The cost in dollars in a usage, where it is known."""
    match used:
        case {"usd": bool()}:
            return None
        case {"usd": int() | float() as cost}:
            return float(cost)
        case _:
            return None
