"""Schedules: a tick moves its schedule on and starts a task or run, in one commit."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import CreateTasks, Keys, Operation, StartRun
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.task_rows import BASE_SIZE, TaskRow
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.engine.input.host_tags import name_own_host
from holdfast.engine.read.key_addresses import find_run_id
from holdfast.engine.read.pages import PAGE_SIZE, Page, read_limit
from holdfast.engine.read.records import UNREADABLE_ERRORS, describe_problem
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.schedule_records import read_schedule
from holdfast.engine.state import creation
from holdfast.errors import (
    HoldfastError,
    InvalidInput,
    NotFound,
    ShuttingDown,
    StoreGone,
    StoreUnreachable,
    UnknownOutcome,
)
from holdfast.ids import Ids
from holdfast.model.cron_ticks import (
    DueTicks,
    MissedTicks,
    check_cron,
    due_ticks,
    first_tick_after,
    format_tick,
    ticks_after,
    to_local_time,
)
from holdfast.model.labels import clean_labels
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.run import CreateResult, NewRun
from holdfast.model.schedule import SCHEDULE_PREFIX, NewSchedule, Schedule
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name, clean_text, digest
from holdfast.model.workflow.graph import Concurrency, read_workflow
from holdfast.store.database import Row, read_replies
from holdfast.store.group_commit.queue import GROUP_BYTES

# The key of what a tick starts is the name and more, and a key has at most 200 characters.
MAX_NAME_LENGTH = 150
FIELDS_OF_ONE_CALL = ("key", "needs", "parent", "scheduled_for", "trace")
_TEMPLATE_FIELDS = (
    *("step", "title", "agent", "status", "priority", "position", "tags", "concurrency_key"),
    *("capacity", "max_attempts", "max_lost", "backoff", "backoff_max", "timeout"),
)
DUE_AT_ONCE = 100
log = logging.getLogger("holdfast.schedules")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleOperation(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (f"schedule:{self.name}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class PutSchedule(ScheduleOperation):
    """A checked schedule to keep; it starts runs when it names a workflow, and else tasks."""

    cron: str
    zone: str
    missed: str
    workflow: str | None = None
    workflow_version: str | None = None
    definition: str | None = None
    called: frozenset[tuple[str, str, str]] = frozenset()
    template: str
    input: str
    run_id: str | None
    body_digest: str
    next_at: int

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.template, self.input, self.definition)


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlSchedule(ScheduleOperation):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class PauseSchedule(ControlSchedule):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class ResumeSchedule(ControlSchedule):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveSchedule(ControlSchedule):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class FireTicks(ScheduleOperation):
    """Ticks to fire if a schedule is still at a version; it then waits for `next_at`."""

    version: int
    ticks: tuple[int, ...]
    next_at: int | None
    problem: str | None = None
    input_size: int = 0

    @property
    def size(self) -> int:
        return BASE_SIZE + self.input_size * len(self.ticks)


@dataclass(frozen=True, kw_only=True, slots=True)
class FireResult:
    """The ids that ticks started; none, without a problem, when another process fired them."""

    started: tuple[str, ...] = ()
    problem: str | None = None


def put_schedules(
    work: UnitOfWork, operations: Sequence[PutSchedule]
) -> list[Schedule | HoldfastError]:
    refused = _refuse_ended_runs(work, operations)
    # In one order, because an insert of a name waits for another one that has not committed.
    accepted = sorted((o for o in operations if o.name not in refused), key=lambda o: o.name)
    flows = {(o.workflow, o.workflow_version, o.definition) for o in accepted if o.workflow}
    flows |= {each for o in accepted for each in o.called}
    if flows:
        work.tx.run("insert_workflows", rows=sorted(flows))
    changed = work.tx.write(
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
        work.wake()
    rows = work.tx.read("schedules_by_name", names=[o.name for o in accepted])
    kept = {row["name"]: read_schedule(row) for row in rows}
    return [refused.get(o.name) or kept[o.name] for o in operations]


def _refuse_ended_runs(
    work: UnitOfWork, operations: Sequence[PutSchedule]
) -> dict[str, HoldfastError]:
    """Refuse the schedules of runs that do not exist or have ended."""
    runs = sorted({o.run_id for o in operations if o.run_id is not None})
    rows = work.tx.read("runs_by_id", ids=runs) if runs else []
    statuses = {row["id"]: row["status"] for row in rows}
    return {
        o.name: InvalidInput("run", _describe_ended_run(o.run_id, statuses.get(o.run_id)))
        for o in operations
        if o.run_id is not None and statuses.get(o.run_id) != "running"
    }


def _describe_ended_run(run_id: str, status: str | None) -> str:
    if status is None:
        return f"{run_id} is not a run of this store"
    return f"{run_id} has ended: it is {status}; a schedule that goes with a run ends with it"


def control_schedule(work: UnitOfWork, operation: ControlSchedule) -> TransitionResult:
    match operation:
        case PauseSchedule():
            changed = work.tx.write("pause_schedule", name=operation.name)
        case ResumeSchedule():
            changed = _resume_schedule(work, operation.name)
        case RemoveSchedule():
            changed = work.tx.write("remove_schedule", name=operation.name)
        case _:
            message = f"{type(operation).__name__} is not an operation on a schedule"
            raise TypeError(message)
    found = changed or work.tx.read("schedule_by_name", name=operation.name)
    if not found:
        return refuse(Refusal.NOT_FOUND, None, f"there is no schedule {operation.name!r}")
    return TransitionResult(ok=True, repeated=not changed)


def _resume_schedule(work: UnitOfWork, name: str) -> list[Row]:
    changed: list[Row] = []
    for row in work.tx.read("schedule_by_name", name=name):
        now = work.tx.read("now")[0]["now"]
        upcoming = first_tick_after(row["cron"], row["zone"], now)
        changed += work.tx.write(
            "resume_schedule", name=name, from_version=row["version"], upcoming=upcoming
        )
    if changed:
        work.wake()
    return changed


def fire_ticks(work: UnitOfWork, ticks: Sequence[FireTicks]) -> list[FireResult]:
    moved = work.tx.write(
        "fire_schedules",
        rows=[
            (tick.name, tick.version, max(tick.ticks, default=None), tick.next_at, tick.problem)
            for tick in ticks
        ],
    )
    rows = {row["name"]: row for row in moved}
    fired = _start_work(work, [(tick, rows[tick.name]) for tick in ticks if tick.name in rows])
    problems = [(name, each.problem) for name, each in sorted(fired.items()) if each.problem]
    if problems:
        work.tx.run("note_schedule_errors", rows=problems)
    if late := sorted({tick.name for tick in ticks} - rows.keys()):
        # An older release, which knows of no schedules, may have ended the run of a schedule.
        owners = work.tx.read("schedule_owners", names=late)
        work.scheduled_runs_ended += [row["id"] for row in owners if row["status"] != "running"]
    return [fired.get(tick.name, FireResult()) for tick in ticks]


def remove_schedules_of_ended_runs(work: UnitOfWork) -> None:
    """Remove the schedules of the runs that have ended in this unit of work."""
    if work.scheduled_runs_ended:
        ended, work.scheduled_runs_ended = sorted(set(work.scheduled_runs_ended)), []
        work.tx.run("remove_schedules_of_runs", ids=ended)


def _start_work(work: UnitOfWork, ticks: Sequence[tuple[FireTicks, Row]]) -> dict[str, FireResult]:
    """Start the task or run of each tick, once; of several problems the last one is kept."""
    fired = {tick.name: FireResult(problem=tick.problem) for tick, _ in ticks}
    tasks: list[tuple[str, CreateTasks]] = []
    runs: list[tuple[str, StartRun]] = []
    for tick, row in ticks:
        try:
            for moment in tick.ticks:
                key = f"{SCHEDULE_PREFIX}{tick.name}:{format_tick(moment)}"
                if row["workflow"] is None:
                    tasks.append((tick.name, _build_task(work, row, key)))
                else:
                    runs.append((tick.name, _build_run(work, row, key)))
        except UNREADABLE_ERRORS as error:
            fired[tick.name] = FireResult(problem=describe_problem(error))
    replies: list[list[CreateResult] | CreateResult | HoldfastError] = [
        *read_replies(creation.create_tasks(work, [order for _, order in tasks])),
        *creation.start_runs(work, [order for _, order in runs]),
    ]
    names = [name for name, _ in (*tasks, *runs)]
    for name, reply in zip(names, replies, strict=True):
        fired[name] = _add_reply(fired[name], reply)
    return fired


def _add_reply(
    fired: FireResult, reply: list[CreateResult] | CreateResult | HoldfastError
) -> FireResult:
    if isinstance(reply, HoldfastError):
        return replace(fired, problem=describe_problem(reply))
    made = [reply] if isinstance(reply, CreateResult) else reply
    return replace(fired, started=fired.started + tuple(each.id for each in made if each.created))


def _build_task(work: UnitOfWork, row: Row, key: str) -> CreateTasks:
    template = json.loads(row["template"])
    task = TaskRow(**template, id=work.ids.task(), payload=row["input"], key=key)
    return CreateTasks(
        tasks=(replace(task, body_digest=validation.body_digest(task)),),
        actor=SCHEDULE_PREFIX + row["name"],
    )


def _build_run(work: UnitOfWork, row: Row, key: str) -> StartRun:
    name, version = row["workflow"], row["workflow_version"]
    (kept,) = work.tx.read("workflow_definition", name=name, version=version)
    run = NewRun(
        workflow=read_workflow(kept["definition"]),
        input=json.loads(row["input"]),
        **_read_options(row["template"]),
    )
    # The input was small enough when the schedule was put.
    enough, actor = len(row["input"].encode()), SCHEDULE_PREFIX + row["name"]
    return validation.new_run(run, work.ids, max_payload=enough, actor_name=actor, tick=key)


class Schedules:
    """Cron for tasks and runs: each tick is fired once, however many processes look."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def put(self, schedule: NewSchedule) -> Future[Schedule]:
        """Keep a schedule; an equal one changes nothing, another one of its name replaces it."""
        limit = self._context.settings.max_payload
        if getattr(schedule, "run", None) is not None:
            schedule = replace(schedule, run=find_run_id(self._context, schedule.run, "run"))
        return self._context.submit(
            check_new_schedule(
                schedule, self._context.ids, max_payload=limit, now=self._context.now
            )
        )

    @operation
    def pause(self, name: str) -> Future[TransitionResult]:
        """Pause a schedule; the ticks of the pause are not made up for."""
        return self._context.submit(PauseSchedule(name=clean_schedule_name(name)))

    @operation
    def resume(self, name: str) -> Future[TransitionResult]:
        """Resume a schedule with the next tick from now."""
        return self._context.submit(ResumeSchedule(name=clean_schedule_name(name)))

    @operation
    def remove(self, name: str) -> Future[TransitionResult]:
        """Remove a schedule; what it has started stays."""
        return self._context.submit(RemoveSchedule(name=clean_schedule_name(name)))

    @reading
    def get(self, name: str) -> Schedule:
        """A schedule as it stands now."""
        known = clean_schedule_name(name)
        rows = self._context.view(lambda tx: tx.read("schedule_by_name", name=known))
        if not rows:
            raise NotFound(known, "schedule")
        return read_schedule(rows[0])

    @reading
    def list(self, *, limit: int = PAGE_SIZE, after: str | None = None) -> Page[Schedule]:
        """Schedules by name, at most 1,000; `after` the last name of a page comes the next."""
        count, start = read_limit(limit), "" if after is None else clean_schedule_name(after)
        rows = self._context.view(lambda tx: tx.read("list_schedules", count=count, after=start))
        return [read_schedule(row) for row in rows]

    @reading
    def preview(self, cron: str, zone: str = "UTC", count: int = 5) -> Page[datetime]:
        """The next ticks of a cron expression from now, as times of its zone."""
        rule, checked_zone = check_cron(cron, zone)
        number, now = read_limit(count, "count"), self._context.now()
        first_tick_after(rule, checked_zone, now)
        ticks = islice(ticks_after(rule, checked_zone, now), number)
        return [to_local_time(tick, checked_zone) for tick in ticks]

    def fire(self) -> None:
        """Fire every due tick; a tick that cannot start its work is logged and delays no other."""
        rows = self._context.view(lambda tx: tx.read("due_schedules", count=DUE_AT_ONCE))
        ticks = [_read_due_ticks(row) for row in rows]
        for tick, future in zip(ticks, self._context.submit_many(ticks), strict=True):
            fired = self._await_result(tick, future)
            if fired.problem is not None:
                log.warning("schedule %s: %s", tick.name, fired.problem)

    def _await_result(self, tick: FireTicks, future: Future[FireResult]) -> FireResult:
        try:
            return future.result()
        except (ShuttingDown, StoreGone, StoreUnreachable, UnknownOutcome):
            raise
        except Exception as error:
            log.exception("schedule %s cannot start what it is for", tick.name)
            passed = replace(tick, ticks=(), problem=describe_problem(error))
            moved: FireResult = self._context.submit(passed).result()
            return moved


def _read_due_ticks(row: Row) -> FireTicks:
    """Read the due ticks of a schedule; one that this release cannot read is paused."""
    problem = None
    try:
        missed = MissedTicks(row["missed"])
        due = due_ticks(row["cron"], row["zone"], missed, row["next_at"], row["now"])
    except UNREADABLE_ERRORS as error:
        due, problem = DueTicks(ticks=(), next_at=None), describe_problem(error)
    if due.next_at is None:
        problem = f"paused: {problem or 'no tick follows within 50 years'}"
    return FireTicks(
        name=row["name"],
        version=row["version"],
        problem=problem,
        input_size=row["size"],
        **asdict(_limit_ticks(due, row["size"])),
    )


def _limit_ticks(due: DueTicks, size: int) -> DueTicks:
    """Limit ticks to the oldest that fit into one group; the others are due right after."""
    room = max(1, GROUP_BYTES // max(1, size))
    if len(due.ticks) <= room:
        return due
    return DueTicks(ticks=due.ticks[:room], next_at=due.ticks[room])


def clean_schedule_name(value: object) -> str:
    return clean_name("name", clean_text("name", value, limit=MAX_NAME_LENGTH))


def check_new_schedule(
    schedule: NewSchedule, ids: Ids, *, max_payload: int, now: Callable[[], int]
) -> PutSchedule:
    validation.instance("schedule", schedule, NewSchedule)
    name = clean_schedule_name(schedule.name)
    cron, zone = check_cron(schedule.cron, schedule.zone)
    missed = _check_missed(schedule.missed)
    run_id = None if schedule.run is None else validation.run_id(schedule.run, "run")
    target = _build_target(schedule.starts, ids, max_payload=max_payload)
    # Called workflows are part of the definition, by their versions.
    target_values = (target[key] for key in sorted(target) if key != "called")
    body = (cron, zone, missed, run_id, *target_values)
    return PutSchedule(
        name=name,
        cron=cron,
        zone=zone,
        missed=missed,
        run_id=run_id,
        body_digest=digest(repr(body)),
        next_at=first_tick_after(cron, zone, now()),
        **target,
    )


def _check_missed(value: object) -> str:
    known = [each.value for each in MissedTicks]
    if not isinstance(value, str) or value not in known:
        raise InvalidInput("missed", f"{value!r} is not one of {', '.join(known)}")
    return str(value)


def _build_target(starts: object, ids: Ids, *, max_payload: int) -> dict[str, Any]:
    if isinstance(starts, NewTask):
        _refuse_fields(starts, FIELDS_OF_ONE_CALL)
        if starts.workflow is not None:
            raise InvalidInput("workflow", "is what a schedule starts itself: without a task")
        task = validation.new_task(starts, ids, max_payload=max_payload, now=lambda: 0)
        template = {name: getattr(task, name) for name in _TEMPLATE_FIELDS}
        if task.labels is not None:
            template["labels"] = task.labels
        return {"template": json.dumps(template), "input": task.payload}
    if isinstance(starts, NewRun):
        _refuse_fields(starts, ("key", "trace", "scheduled_for"))
        run = validation.new_run(starts, ids, max_payload=max_payload, actor_name="schedule")
        return {
            "workflow": run.workflow,
            "workflow_version": run.workflow_version,
            "definition": run.definition,
            "called": run.called,
            "template": json.dumps(_write_options(starts)),
            "input": run.input,
        }
    reason = f"must be a NewTask or a NewRun, not {type(starts).__name__}"
    raise InvalidInput("starts", reason)


def _write_options(starts: NewRun) -> dict[str, Any]:
    """The options of the runs that a schedule starts, without those that were not given."""
    limit = starts.concurrency
    options = {
        "priority": starts.priority,
        "deadline": starts.deadline,
        "concurrency": None if limit is None else asdict(limit),
        "labels": dict(clean_labels("labels", starts.labels)) or None,
        "host": _choose_host(starts),
    }
    return {name: value for name, value in options.items() if value is not None}


def _choose_host(starts: NewRun) -> str | None:
    """The host of the folder of a workspace: a tick may be fired on any other."""
    if starts.workflow.workspace is None:
        return None
    return name_own_host() if starts.host is None else starts.host


def _read_options(template: str) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(template)
    if "concurrency" in options:
        options["concurrency"] = Concurrency(**options["concurrency"])
    return options


def _refuse_fields(starts: NewTask | NewRun, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(starts, name):
            reason = "belongs to one call; what a schedule starts has a key of its own at each tick"
            raise InvalidInput(name, reason)
