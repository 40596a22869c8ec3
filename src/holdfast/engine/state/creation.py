"""Creation of tasks and runs: each key exists once, and a refused call leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast.engine.core.operation import CreateTasks, RunCaller, StartRun
from holdfast.engine.core.run_cache import RunFacts
from holdfast.engine.core.task_rows import TaskInserts, TaskRow
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.state import plans, slots, superseded_needs
from holdfast.engine.state.idempotency_keys import (
    IdempotencyKeys,
    find_conflict,
    read_task_holder,
    request_run,
    request_task,
)
from holdfast.errors import HoldfastError, InvalidInput, InvalidNow, KeyConflict, NotFound
from holdfast.model.advice import Action, advise
from holdfast.model.budget import to_dollars
from holdfast.model.run import CreateResult
from holdfast.model.status import TERMINAL, Hold
from holdfast.model.trace import Trace
from holdfast.store.database import LateReply, Row

Replies = list[list[CreateResult] | HoldfastError]


def create_tasks(
    work: UnitOfWork, operations: Sequence[CreateTasks]
) -> Replies | list[list[CreateResult] | LateReply]:
    if all(_stands_alone(operation) for operation in operations):
        return _insert_lone_tasks(work, operations)
    return _check_and_insert_tasks(work, operations)


def _stands_alone(operation: CreateTasks) -> bool:
    """Whether an operation makes one task, or finds who holds its key, and writes nothing else."""
    if len(operation.tasks) != 1:
        return False
    (task,) = operation.tasks
    if task.needs or task.parent_id is not None or task.plan:
        return False
    return task.key is None or (task.concurrency_key is None and not task.trace)


def _insert_lone_tasks(
    work: UnitOfWork, operations: Sequence[CreateTasks]
) -> list[list[CreateResult] | LateReply]:
    """Insert tasks whose keys are free; who holds the keys is asked in the same round trip."""
    new: list[tuple[TaskRow, str]] = []
    keys: set[str] = set()
    bodies: set[tuple[str, str]] = set()
    for operation in operations:
        (task,) = operation.tasks
        if task.key is None or task.key not in keys:
            new.append((task, operation.actor))
        if task.key is not None:
            keys.add(task.key)
            bodies.add((task.key, task.body_digest))
    _insert_traces(work, [(task.id, task.trace) for task, _ in new if task.trace])
    new.sort(key=_key_of)
    insert_tasks(work, new, {}, run_holds=0, some=bool(keys))
    holders = work.tx.read_late("task_key_holders", rows=sorted(bodies)) if bodies else list
    return [
        [CreateResult(id=task.id, created=True)]
        if task.key is None
        else LateReply(read=partial(_find_holder, task, holders))
        for (task,) in (operation.tasks for operation in operations)
    ]


def _find_holder(
    task: TaskRow, holders: Callable[[], list[Row]]
) -> list[CreateResult] | HoldfastError:
    key, digest = str(task.key), task.body_digest
    (row,) = (row for row in holders() if (row["key"], row["wanted"]) == (key, digest))
    conflict = find_conflict(key, read_task_holder(row), request_task(task))
    return conflict or [CreateResult(id=row["id"], created=row["id"] == task.id)]


def _key_of(new: tuple[TaskRow, str]) -> str:
    """In the same order in all processes: an insert waits for another one of the same key."""
    return new[0].key or ""


def _check_and_insert_tasks(work: UnitOfWork, operations: Sequence[CreateTasks]) -> Replies:
    """Refuse what cannot be accepted before the first insert, then insert all the rest at once."""
    wanted = [task for operation in operations for task in operation.tasks]
    related = {need for task in wanted for need in task.needs}
    related |= {task.parent_id for task in wanted if task.parent_id is not None}
    found = work.tx.read("lock_needed", ids=sorted(related)) if related else []
    known = {row["id"]: row for row in found}
    keys = IdempotencyKeys(work, "task", [task.key for task in wanted])
    replies: Replies = []
    accepted: list[tuple[TaskRow, str]] = []
    for operation in operations:
        reply = _settle_keys(keys, operation, known)
        replies.append(reply)
        if isinstance(reply, list):
            accepted += [
                (_append_to_plan(task, known) if known else task, operation.actor)
                for task, each in zip(operation.tasks, reply, strict=True)
                if each.created
            ]
    _insert_traces(work, [(task.id, task.trace) for task, _ in accepted if task.trace])
    accepted.sort(key=_key_of)
    insert_tasks(work, accepted, known, run_holds=0)
    for task, actor in accepted:
        if task.plan:
            work.change_tasks("start_planning", task_id=task.id, actor=actor)
    parents = {task.parent_id for task, _ in accepted if task.parent_id is not None}
    if finalized := sorted(
        each for each in parents if known[each]["planning_phase"] == "finalized"
    ):
        plans.inherit_needs(work, finalized, "advance")
    return replies


def _settle_keys(
    keys: IdempotencyKeys, operation: CreateTasks, known: dict[str, Row]
) -> list[CreateResult] | HoldfastError:
    try:
        claimed = [keys.claim(task.key, request_task(task)) for task in operation.tasks]
        for task, found in zip(operation.tasks, claimed, strict=True):
            if found == task.id:
                _check_related(task, known)
    except HoldfastError as error:
        keys.forget(task.id for task in operation.tasks)
        return error
    return [
        CreateResult(id=found, created=found == task.id)
        for task, found in zip(operation.tasks, claimed, strict=True)
    ]


def _check_related(task: TaskRow, known: dict[str, Row]) -> None:
    for need in task.needs:
        if need not in known:
            raise InvalidInput("needs", f"{need} is not a task of this store")
        if known[need]["run_id"] != task.run_id:
            raise InvalidInput("needs", f"{need} belongs to another run")
        superseded_needs.refuse_superseded_need(known[need])
    if task.parent_id is not None:
        _check_parent(task, known.get(task.parent_id))


def _check_parent(task: TaskRow, parent: Row | None) -> None:
    """Refuse a parent that would never start the task, or whose cancel would miss it."""
    if parent is None and task.part:
        raise NotFound(str(task.parent_id))
    if parent is None:
        raise InvalidInput("parent", f"{task.parent_id} is not a task of this store")
    if parent["run_id"] != task.run_id:
        raise InvalidInput("parent", f"{task.parent_id} is part of {parent['run_id']}")
    status = parent["status"]
    if status in TERMINAL:
        raise InvalidNow("parent", f"{task.parent_id} has ended: it is {status}", status)
    if parent["planning_phase"] == "finalized" and task.status == "idle":
        raise InvalidNow("parent", _describe_finalized_plan(parent), status)
    if parent["planning_phase"] == "none" and task.part:
        raise InvalidNow("parent", _describe_no_plan(str(task.parent_id), status), status)


def _describe_finalized_plan(plan: Row) -> str:
    """Say why a plan that is finalized gets no idle child."""
    told = f"{plan['id']} is finalized, and nothing would start an idle child of it"
    return f"{told}; create it enqueued, or plan it anew: " + plans.advise_new_plan(plan)


def _describe_no_plan(parent_id: str, status: str) -> str:
    """Say why a task gets no parts: it is no plan, so that nothing would ever start them."""
    if status == "idle":
        begin = advise(Action.START_PLANNING, parent_id) + " begins one"
        return f"{parent_id} is no plan, and nothing would start a part of it; " + begin
    return f"{parent_id} is no plan and is {status}; only an idle task can be planned"


def _append_to_plan(task: TaskRow, known: dict[str, Row]) -> TaskRow:
    """Put a task last in the plan that it is added to, unless it was given a position."""
    parent = known.get(task.parent_id or "")
    if parent is None or parent["last"] is None or task.placed:
        return task
    return replace(task, position=parent["last"] + 1)


def insert_tasks(
    work: UnitOfWork,
    tasks: Sequence[tuple[TaskRow, str]],
    known: dict[str, Row],
    *,
    run_holds: int,
    some: bool = False,
) -> None:
    """Insert tasks; with `some`, those whose key is taken are left out."""
    inserts = TaskInserts()
    for task, actor in tasks:
        inserts.add(task, actor, waits=_has_open_needs(task, known), run_holds=run_holds)
    _insert_task_rows(work, inserts, some=some)


def _insert_task_rows(work: UnitOfWork, inserts: TaskInserts, *, some: bool = False) -> None:
    if not inserts.rows:
        return
    _define_slots(work, inserts.slots)
    work.keys_to_withdraw.update(inserts.slots)
    work.tx.insert("insert_tasks", rows=inserts.rows, some=some)
    if inserts.keys and not some:
        # Begin again if a holder was removed meanwhile: its tombstone keeps the key.
        work.tx.read_late("task_key_holders", rows=sorted(inserts.keys))
    work.wakes = work.wakes or inserts.wakes
    work.ready.update(inserts.ready)
    work.to_evaluate += inserts.to_evaluate
    if inserts.needs:
        work.tx.run("insert_needs", rows=inserts.needs)


def _has_open_needs(task: TaskRow, known: dict[str, Row]) -> bool:
    if not task.needs:
        return False
    return any(need not in known or known[need]["status"] != "done" for need in task.needs)


def start_runs(
    work: UnitOfWork, operations: Sequence[StartRun], *, imported: bool = False
) -> list[CreateResult | HoldfastError]:
    """Start runs; the digest of a run that is `imported` is that of all that was imported."""
    keys = IdempotencyKeys(work, "run", [operation.key for operation in operations])
    replies: list[CreateResult | HoldfastError] = []
    new: list[StartRun] = []
    for operation in operations:
        try:
            wanted = request_run(operation)
            found = keys.claim(
                operation.key, replace(wanted, arguments=None) if imported else wanted
            )
        except KeyConflict as error:
            replies.append(error)
            continue
        replies.append(CreateResult(id=found, created=found == operation.run_id))
        if found == operation.run_id:
            new.append(operation)
    if new:
        _insert_runs(work, new)
        for operation in new:
            _keep_facts(work, operation)
    return replies


def _keep_facts(work: UnitOfWork, run: StartRun) -> None:
    """Keep what never changes of a run, unless it was called: then its callers are to be read."""
    if run.caller is not None:
        return
    most = run.bounds.usd_per_attempt
    limited = run.bounds.usd is not None or run.bounds.attempts is not None
    work.run_cache.add_facts(
        RunFacts(
            id=run.run_id,
            workflow=run.workflow,
            version=run.workflow_version,
            key=run.key,
            input=run.input,
            root_id=None,
            depth=0,
            keyed=run.concurrency_key is not None,
            usd_per_attempt=None if most is None else to_dollars(most),
            limits=(run.run_id,) if limited else (),
        )
    )


def _insert_runs(work: UnitOfWork, new: Sequence[StartRun]) -> None:
    workflows = {(run.workflow, run.workflow_version, run.definition) for run in new}
    workflows |= {each for run in new for each in run.called}
    work.tx.run("insert_workflows", rows=sorted(workflows))
    keys = {run.key for run in new if run.key is not None}
    work.tx.insert(
        "insert_runs",
        rows=[
            (
                run.run_id,
                run.workflow,
                run.workflow_version,
                run.key,
                run.body_digest,
                _first_holds(run),
                run.input,
                run.priority,
                run.concurrency_key,
                run.actor,
                *_caller_columns(run.caller),
                run.bounds.usd,
                run.bounds.usd_per_attempt,
                run.bounds.attempts,
                run.bounds.time,
                run.scheduled_for,
                run.labels,
            )
            for run in sorted(new, key=lambda run: (run.key or "", run.run_id))
        ],
    )
    if keys:
        # Begin again if a holder was removed meanwhile: its tombstone keeps the key.
        work.tx.read_late("run_key_holders", keys=sorted(keys))
    _insert_traces(work, [(run.run_id, run.trace) for run in new if run.trace])
    inserts = TaskInserts()
    for run in new:
        inserts.add_run(run.tasks, run.actor, _first_holds(run))
    _insert_task_rows(work, inserts)
    capacities = [(run.concurrency_key, run.capacity) for run in new]
    _define_slots(work, {key: most for key, most in capacities if key is not None})
    for key, _ in capacities:
        if key is not None:
            slots.admit_runs(work, key, 1)


def _caller_columns(caller: RunCaller | None) -> tuple[str | None, int | None, str | None, int]:
    if caller is None:
        return (None, None, None, 0)
    return (caller.task_id, caller.epoch, caller.root_id, caller.depth)


def _insert_traces(work: UnitOfWork, new: Sequence[tuple[str, Trace]]) -> None:
    rows = [
        (entity, trace.trace_id, trace.causation_id, trace.correlation_id) for entity, trace in new
    ]
    if rows:
        work.tx.run("insert_traces", rows=rows)


def _first_holds(run: StartRun) -> int:
    if run.scheduled_for is not None:
        return int(Hold.SCHEDULED)
    return 0 if run.concurrency_key is None else int(Hold.SLOT)


def _define_slots(work: UnitOfWork, capacities: Mapping[str, int]) -> None:
    if capacities:
        work.tx.run("define_slots", rows=sorted(capacities.items()))
