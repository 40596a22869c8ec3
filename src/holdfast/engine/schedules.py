"""Schedules inside the writer: a tick moves its schedule on and starts its work in one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from holdfast.engine import creation, validation
from holdfast.engine.answers import refuse
from holdfast.engine.asked import TaskRow
from holdfast.engine.group import Group
from holdfast.engine.operations import CreateTasks, StartRun
from holdfast.engine.records import read_schedule
from holdfast.engine.schedule_operations import (
    Fired,
    PauseSchedule,
    PutSchedule,
    RemoveSchedule,
    ResumeSchedule,
    SteerSchedule,
    Tick,
)
from holdfast.engine.unreadable import UNREADABLE, tell_problem
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.run import Created, NewRun
from holdfast.model.schedule import SCHEDULE_PREFIX, Schedule, first_after, tell_tick
from holdfast.model.workflow.graph import read_workflow
from holdfast.store.database import Row


def put(group: Group, operations: Sequence[PutSchedule]) -> list[Schedule | HoldfastError]:
    refused = _refused(group, operations)
    # In one order, because whoever inserts a name waits for whoever has just inserted it.
    accepted = sorted((o for o in operations if o.name not in refused), key=lambda o: o.name)
    flows = {(o.workflow, o.workflow_version, o.definition) for o in accepted if o.workflow}
    flows |= {each for o in accepted for each in o.called}
    if flows:
        group.tx.run("insert_workflows", rows=sorted(flows))
    changed = group.tx.write(
        "put_schedules",
        rows=[
            (
                o.name,
                o.cron,
                o.zone,
                o.missed,
                o.workflow,
                o.workflow_version,
                o.template,
                o.input,
                o.run_id,
                o.body_digest,
                o.next_at,
            )
            for o in accepted
        ],
    )
    if changed:
        group.wake()
    rows = group.tx.read("schedules_by_name", names=[o.name for o in accepted])
    kept = {row["name"]: read_schedule(row) for row in rows}
    return [refused.get(o.name) or kept[o.name] for o in operations]


def _refused(group: Group, operations: Sequence[PutSchedule]) -> dict[str, HoldfastError]:
    """Those that are to go with a run which is not there, or has ended."""
    runs = sorted({o.run_id for o in operations if o.run_id is not None})
    rows = group.tx.read("runs_by_id", ids=runs) if runs else []
    standing = {row["id"]: row["status"] for row in rows}
    return {
        o.name: InvalidInput("run", _why_not(o.run_id, standing.get(o.run_id)))
        for o in operations
        if o.run_id is not None and standing.get(o.run_id) != "running"
    }


def _why_not(run_id: str, status: str | None) -> str:
    if status is None:
        return f"{run_id} is not a run of this store"
    return f"{run_id} has ended: it is {status}; a schedule that goes with a run ends with it"


def steer(group: Group, operation: SteerSchedule) -> TransitionResult:
    match operation:
        case PauseSchedule():
            changed = group.tx.write("pause_schedule", name=operation.name)
        case ResumeSchedule():
            changed = _resume(group, operation.name)
        case RemoveSchedule():
            changed = group.tx.write("remove_schedule", name=operation.name)
        case _:
            message = f"{type(operation).__name__} is not an operation on a schedule"
            raise TypeError(message)
    found = changed or group.tx.read("schedule_by_name", name=operation.name)
    if not found:
        return refuse(Refusal.NOT_FOUND, None, f"there is no schedule {operation.name!r}")
    return TransitionResult(ok=True, repeated=not changed)


def _resume(group: Group, name: str) -> list[Row]:
    changed: list[Row] = []
    for row in group.tx.read("schedule_by_name", name=name):
        now = group.tx.read("now")[0]["now"]
        upcoming = first_after(row["cron"], row["zone"], now)
        changed += group.tx.write(
            "resume_schedule", name=name, from_version=row["version"], upcoming=upcoming
        )
    if changed:
        group.wake()
    return changed


def fire(group: Group, ticks: Sequence[Tick]) -> list[Fired]:
    moved = group.tx.write(
        "fire_schedules",
        rows=[
            (tick.name, tick.version, max(tick.ticks, default=None), tick.next_at, tick.problem)
            for tick in ticks
        ],
    )
    rows = {row["name"]: row for row in moved}
    fired = _start(group, [(tick, rows[tick.name]) for tick in ticks if tick.name in rows])
    problems = [(name, each.problem) for name, each in sorted(fired.items()) if each.problem]
    if problems:
        group.tx.run("note_schedule_errors", rows=problems)
    if late := sorted({tick.name for tick in ticks} - rows.keys()):
        # Of a run that an older release has ended, which knows of no schedules.
        owners = group.tx.read("schedule_owners", names=late)
        group.closed += [row["id"] for row in owners if row["status"] != "running"]
    return [fired.get(tick.name, Fired()) for tick in ticks]


def tear_down(group: Group) -> None:
    """Take away what went with the runs that have ended in this group."""
    if group.closed:
        closed, group.closed = sorted(set(group.closed)), []
        group.tx.run("remove_schedules_of_runs", ids=closed)


def _start(group: Group, ticks: Sequence[tuple[Tick, Row]]) -> dict[str, Fired]:
    """Start what schedules are for, once for each tick; the last problem is the one to tell."""
    fired = {tick.name: Fired(problem=tick.problem) for tick, _ in ticks}
    tasks: list[tuple[str, CreateTasks]] = []
    runs: list[tuple[str, StartRun]] = []
    for tick, row in ticks:
        try:
            for moment in tick.ticks:
                key = f"{SCHEDULE_PREFIX}{tick.name}:{tell_tick(moment)}"
                if row["workflow"] is None:
                    tasks.append((tick.name, _task(group, row, key)))
                else:
                    runs.append((tick.name, _run(group, row, key)))
        except UNREADABLE as error:
            fired[tick.name] = Fired(problem=tell_problem(error))
    replies: list[list[Created] | Created | HoldfastError] = [
        *creation.create_tasks(group, [order for _, order in tasks]),
        *creation.start_runs(group, [order for _, order in runs]),
    ]
    names = [name for name, _ in (*tasks, *runs)]
    for name, reply in zip(names, replies, strict=True):
        fired[name] = _add(fired[name], reply)
    return fired


def _add(fired: Fired, reply: list[Created] | Created | HoldfastError) -> Fired:
    if isinstance(reply, HoldfastError):
        return replace(fired, problem=tell_problem(reply))
    made = [reply] if isinstance(reply, Created) else reply
    return replace(fired, started=fired.started + tuple(each.id for each in made if each.created))


def _task(group: Group, row: Row, key: str) -> CreateTasks:
    template = json.loads(row["template"])
    task = TaskRow(**template, id=group.ids.task(), payload=row["input"], key=key)
    return CreateTasks(
        tasks=(replace(task, body_digest=validation.body(task)),),
        actor=SCHEDULE_PREFIX + row["name"],
    )


def _run(group: Group, row: Row, key: str) -> StartRun:
    name, version = row["workflow"], row["workflow_version"]
    (kept,) = group.tx.read("workflow_definition", name=name, version=version)
    run = NewRun(
        workflow=read_workflow(kept["definition"]),
        input=json.loads(row["input"]),
        **json.loads(row["template"]),
    )
    # It was small enough when it was put.
    enough, actor = len(row["input"].encode()), SCHEDULE_PREFIX + row["name"]
    return validation.new_run(run, group.ids, max_payload=enough, actor_name=actor, tick=key)
