"""Past runs: a run as it stood right after one event of the store, folded from its events.

What events do not carry is as it is now: the title, the payload, and the output of what was not
done anew since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.engine.read.records import read_event, read_run
from holdfast.engine.read.task_records import read_task
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.event import Event, fold_events
from holdfast.model.moment import count_microseconds
from holdfast.model.status import RUN_TERMINAL, TERMINAL, Hold, Status, TaskKind
from holdfast.model.task import Task
from holdfast.service.queries.child_runs import CalledRuns, nest_called_runs, read_runs_below
from holdfast.service.queries.views import (
    Usage,
    View,
    add_usage,
    describe_removed,
    format_time,
    view_run,
    view_task,
    without_nulls,
)
from holdfast.store.database import Row, Transaction

# What a task begins with, as far as events say what becomes of it.
_FRESH_TASK: dict[str, Any] = {
    "blocked": False,
    "holds": 0,
    "run_holds": 0,
    "failures": 0,
    "lost": 0,
    "epoch": 1,
    "planning_phase": "none",
    "skipped": False,
    "run_now": False,
    "superseded": False,
    "waits_for": None,
    "round": 0,
    "held_until": None,
    "progress": None,
    "question": None,
    "feedback": None,
    "usage": None,
    "worker": None,
    "lease_expires_at": None,
}
_FRESH_RUN: dict[str, Any] = {"holds": 0, "error": None}
_BEGINNINGS = frozenset({"task.running", "task.called"})
_NEW_STARTS = frozenset({"task.reset", "task.reopened", "task.superseded"})
_OPEN = frozenset({Status.QUEUED, Status.RUNNING})


def read_past_run(tx: Transaction, run_id: str, at: int) -> View:
    """A run, its tasks and the runs that it called, as they stood after the event of a number."""
    rows = tx.read("run_by_id", run_id=run_id)
    if not rows:
        raise NotFound(run_id, "run", describe_removed(tx, run_id))
    ids = [run_id, *read_runs_below(tx, [run_id]).get(run_id, ())]
    past = _read_events(tx, ids, at)
    if run_id not in past:
        (first,) = tx.read("first_event_of", entity=run_id)
        raise InvalidInput("at", f"is before the run began, which was event {first['seq']}")
    runs = {row["id"]: row for row in tx.read("runs_by_id", ids=ids) if row["id"] in past}
    tasks = _fold_tasks(tx, sorted(runs), past)
    used = {each: _sum_usage(past, each, tasks) for each in runs}
    own = {each: [task for task in tasks if task.run_id == each] for each in runs}
    progress = {each: _count_progress(found) for each, found in own.items()}
    views = {each: _view_tasks(tx, found, progress) for each, found in own.items()}
    called = _view_called(runs, views, past)
    told = view_run(
        read_run(_fold_run(runs[run_id], past[run_id])),
        usage=_add_all(used.values()),
        progress=dict(zip(("done", "total"), progress[run_id], strict=True)),
    )
    last = max((events[-1] for events in past.values()), key=lambda event: event.seq)
    shown = {"seq": last.seq, "type": last.type, "at": format_time(last.at)}
    return {**told, "as_of": shown, "tasks": nest_called_runs(views[run_id], called)}


def _read_events(tx: Transaction, runs: Sequence[str], at: int) -> dict[str, list[Event]]:
    """The events of runs and of their tasks up to a number, by run or task, in their order."""
    past: dict[str, list[Event]] = {}
    for row in tx.read("run_events_until", runs=runs, until=at):
        past.setdefault(row["entity"], []).append(read_event(row))
    for events in past.values():
        events.sort(key=lambda event: event.version)
    return past


def _fold_run(row: Row, events: Sequence[Event]) -> Row:
    folded = _FRESH_RUN | fold_events(events)
    ended = folded["status"] in RUN_TERMINAL
    same = folded["generation"] == row["generation"]
    return {
        **row,
        **folded,
        "error": row["error"] if ended and same else None,
        "finished_at": _microseconds_of_end(events) if ended else None,
    }


def _fold_tasks(
    tx: Transaction, runs: Sequence[str], past: Mapping[str, Sequence[Event]]
) -> list[Task]:
    """The tasks that there were, each with whether it waited for a verdict."""
    rows = [row for row in tx.read("tasks_of_runs", ids=runs) if row["id"] in past]
    folded = [_fold_task(row, past[row["id"]]) for row in rows]
    judged = _find_judged(folded)
    tasks = [read_task(row) for row in folded]
    return [replace(each, verifying=True) if each.id in judged else each for each in tasks]


def _find_judged(rows: Sequence[Row]) -> set[str]:
    """The tasks that waited for a verdict: done ones, and groups with nothing else open in them."""
    open_rows = [row for row in rows if not row["blocked"] and not row["superseded"]]
    judges = [row for row in open_rows if row["verifies"] and row["status"] in _OPEN]
    judged = {row["verifies"] for row in judges if not row["run_holds"] & Hold.FAILING}
    done = {row["id"] for row in rows if row["status"] == Status.DONE}
    others = {
        row["parent_id"]
        for row in open_rows
        if not row["verifies"] and row["status"] in {Status.IDLE, *_OPEN}
    }
    groups = {row["parent_id"] for row in judges} - others - {None}
    return (judged & done) | groups


def _fold_task(row: Row, events: Sequence[Event]) -> Row:
    state = _FRESH_TASK | fold_events(events)
    status = state["status"]
    claims = [event for event in events if event.type == "task.running"]
    running = status == Status.RUNNING
    ended = status in TERMINAL
    as_now = row["status"] == status and row["generation"] == state["generation"]
    # A task that calls a run is due while it waits for it.
    waits = state["waits_for"] is not None and row["kind"] != TaskKind.GROUP
    due = not waits and (state.get("scheduled_for") is None or state["run_now"])
    return {
        **row,
        **state,
        **_find_agent(row, events),
        "due": bool(due or running or ended),
        "worker": claims[-1].actor if running else None,
        # When the lease would have ended is told by no event.
        "lease_expires_at": count_microseconds(claims[-1].at) if running else None,
        "started_at": _find_start(events),
        "finished_at": _microseconds_of_end(events) if ended else None,
        "output": row["output"] if as_now and status == Status.DONE else None,
        "error": _find_error(row, events, as_now=as_now),
    }


def _find_start(events: Sequence[Event]) -> int | None:
    """When a task first ran, or called a run, since it was last done anew."""
    started: int | None = None
    for event in events:
        if event.type in _BEGINNINGS:
            started = count_microseconds(event.at) if started is None else started
        elif event.type in _NEW_STARTS and not event.data.get("superseded"):
            started = None
    return started


def _find_agent(row: Row, events: Sequence[Event]) -> dict[str, str | None]:
    """The agent of a task, which is another one before the task was handed over."""
    handed = row["escalated_from"] is not None
    if not handed or any(event.type == "task.escalated" for event in events):
        return {}
    return {"agent": row["escalated_from"], "escalated_from": None}


def _find_error(row: Row, events: Sequence[Event], *, as_now: bool) -> str | None:
    failed = events[-1].target in {Status.FAILED, Status.CANCELLED}
    return row["error"] if as_now and failed else None


def _microseconds_of_end(events: Sequence[Event]) -> int:
    last = next(event for event in reversed(events) if event.source != event.target)
    return count_microseconds(last.at)


def _view_tasks(
    tx: Transaction, tasks: Sequence[Task], progress: Mapping[str, tuple[int, int]]
) -> list[View]:
    """The views of the tasks of one run, with what each waited for and how much was done in it."""
    known = {task.id: task for task in tasks}
    blocked = [task.id for task in tasks if task.blocked]
    unmet: dict[str, list[str]] = {}
    for need in tx.read("all_needs_of", ids=blocked) if blocked else ():
        needed, dependent = known.get(need["need_id"]), known[need["task_id"]]
        if need["since"] <= dependent.version and needed and needed.status is not Status.DONE:
            unmet.setdefault(dependent.id, []).append(needed.id)
    counts = _count_children(tasks)
    for task in tasks:
        if task.waits_for is not None and task.waits_for in progress:
            counts[task.id] = progress[task.waits_for]
    return [
        view_task(
            _with_counts(task, counts.get(task.id, (0, 0))),
            blocked_by=unmet.get(task.id),
            below=counts.get(task.id),
        )
        for task in tasks
    ]


def _with_counts(task: Task, counts: tuple[int, int]) -> Task:
    if task.kind is not TaskKind.GROUP or task.terminal:
        return task
    return replace(task, children_done=counts[0], children=task.total or counts[1])


def _count_children(tasks: Sequence[Task]) -> dict[str, tuple[int, int]]:
    counted: dict[str, tuple[int, int]] = {}
    for task in tasks:
        if task.parent_id is not None and not task.superseded:
            done, whole = counted.get(task.parent_id, (0, 0))
            counted[task.parent_id] = (done + (task.status is Status.DONE), whole + 1)
    return counted


def _count_progress(tasks: Iterable[Task]) -> tuple[int, int]:
    """How many tasks of a run were done, and how many there were; a called run counts as one."""
    counted = [
        task
        for task in tasks
        if (task.kind is not TaskKind.GROUP or task.calls is not None) and not task.superseded
    ]
    return sum(task.status is Status.DONE for task in counted), len(counted)


def _view_called(
    runs: Mapping[str, Row], views: Mapping[str, list[View]], past: Mapping[str, Sequence[Event]]
) -> CalledRuns:
    below = [row for row in runs.values() if row["parent_id"] is not None]
    below.sort(key=lambda row: int(row["parent_epoch"]))
    told: dict[str, View] = {}
    for row in below:
        folded = read_run(_fold_run(row, past[row["id"]]))
        holds = [] if folded.terminal else list(folded.holds.names)
        about = {"id": folded.id, "workflow": folded.workflow, "status": folded.status.value}
        told[row["id"]] = about | without_nulls(holds=holds or None, tasks=views[row["id"]])
    return CalledRuns(runs=told, last_by_task={row["parent_id"]: row["id"] for row in below})


def _sum_usage(past: Mapping[str, Sequence[Event]], run_id: str, tasks: Iterable[Task]) -> Usage:
    """What the attempts of a run had used that had ended by then."""
    total: Usage = {}
    for task in tasks:
        if task.run_id == run_id:
            for event in past[task.id]:
                if event.source == Status.RUNNING:
                    add_usage(total, event.data.get("usage"))
    return total


def _add_all(usages: Iterable[Usage]) -> Usage | None:
    total: Usage = {}
    for each in usages:
        add_usage(total, each)
    return total or None
