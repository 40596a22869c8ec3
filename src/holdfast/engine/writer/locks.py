"""Locks: the rows that a group locks before it reads any, in one order in every process."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from holdfast.engine.core.operation import (
    AdvancePlan,
    BlockTask,
    CancelTask,
    ClaimById,
    Complete,
    CreateTasks,
    FinalizePlan,
    Operation,
    ReopenTask,
    ReorderPlan,
    ResetTask,
    RetryTask,
    RunOperation,
    StartPlanning,
    TaskOperation,
)
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.state import superseded_needs
from holdfast.engine.state.durable import SendSignal
from holdfast.engine.surroundings.leases import AcquireLease, ReleaseLease, RenewLease
from holdfast.engine.surroundings.removal import RemoveRuns, RemoveTasks
from holdfast.engine.surroundings.schedules import PutSchedule, ScheduleOperation
from holdfast.store.database import Contended

# Operations on everything below or behind a task, of which a claim could start any meanwhile.
ROLLBACKS = (ResetTask, ReopenTask, RetryTask, ReorderPlan, FinalizePlan, StartPlanning)


def lock_rows(work: UnitOfWork, operations: Sequence[Operation]) -> None:
    """Lock runs, then tasks, then schedules and named leases, each in the order of their ids."""
    if any(isinstance(o, BlockTask | FinalizePlan | AdvancePlan) for o in operations):
        # Two new needs can close a cycle together without a row in common.
        work.tx.run("lock_needs")
    tasks = {
        o.task_id
        for o in operations
        if isinstance(o, TaskOperation) and not isinstance(o, ClaimById)
    }
    runs = {o.run_id for o in operations if isinstance(o, RunOperation)}
    for target in (o.target for o in operations if isinstance(o, SendSignal)):
        (runs if target.startswith("r_") else tasks).add(target)
    runs |= {key for o in operations if isinstance(o, RemoveRuns) for key in o.runs}
    schedules = sorted(o.name for o in operations if isinstance(o, ScheduleOperation))
    if schedules:
        runs |= _runs_of_schedules(work, operations, schedules)
    covered = {task: run for task in tasks if (run := work.run_cache.run_of(task)) is not None}
    runs.update(covered.values())
    if tasks or runs:
        work.tx.run("lock_runs", tasks=sorted(tasks - covered.keys()), runs=sorted(runs))
    _lock_tasks(work, operations, tasks, covered.keys())
    if schedules:
        _lock_schedules(work, schedules, runs)
    kinds = (AcquireLease, RenewLease, ReleaseLease)
    if leases := {o.key for o in operations if isinstance(o, kinds)}:
        work.tx.run("lock_leases", keys=sorted(leases))


def _lock_tasks(
    work: UnitOfWork, operations: Sequence[Operation], tasks: set[str], covered: AbstractSet[str]
) -> None:
    """Lock tasks and those around them; tasks `covered` by the lock of a run are locked alone."""
    beside = {o.task_id for o in operations if isinstance(o, ClaimById)}
    beside |= {need for o in operations if isinstance(o, BlockTask) for need in o.on}
    beside |= {key for o in operations if isinstance(o, RemoveTasks) for key in o.keys}
    if looked := [o.task_id for o in operations if isinstance(o, AdvancePlan)]:
        beside |= superseded_needs.find_replacements(work, looked)
    if tasks or beside:
        beside |= _needs_and_parents(operations)
    # A claim of any ready task waits for none: it skips what another transaction has locked.
    if not tasks and not beside:
        return
    undone = {o.task_id for o in operations if isinstance(o, ROLLBACKS)}
    trees = {o.task_id for o in operations if isinstance(o, CancelTask)}
    if undone or trees:
        _lock_reached(work, tasks, beside, {"undone": sorted(undone), "trees": sorted(trees)})
        return
    if not beside and tasks <= covered:
        # Completions need no lock: their one statement changes rows in the order of the ids.
        if not all(isinstance(o, Complete) for o in operations if isinstance(o, TaskOperation)):
            work.tx.run("lock_tasks", tasks=(), beside=sorted(tasks))
        return
    # Twice: needs that were added while the first lock waited are seen only by the second.
    chosen = {"tasks": sorted(tasks - covered), "beside": sorted(beside | covered)}
    work.tx.run("lock_tasks", **chosen)
    work.tx.run("lock_tasks", **chosen)


def _lock_reached(
    work: UnitOfWork, tasks: set[str], beside: set[str], moved: dict[str, list[str]]
) -> None:
    """Lock what a rollback or a cancel reaches, again until no new task is found."""
    locked: set[str] = set()
    while True:
        reached = {row["id"] for row in work.tx.read("reached_tasks", **moved)}
        chosen = {"tasks": sorted(tasks), "beside": sorted(beside | reached)}
        found = {row["id"] for row in work.tx.read("lock_tasks", **chosen)}
        if found == locked:
            return
        locked = found


def _needs_and_parents(operations: Sequence[Operation]) -> set[str]:
    """The tasks that new tasks will need or belong to."""
    new = [task for o in operations if isinstance(o, CreateTasks) for task in o.tasks]
    related = {need for task in new for need in task.needs}
    return related | {task.parent_id for task in new if task.parent_id is not None}


def _runs_of_schedules(
    work: UnitOfWork, operations: Sequence[Operation], schedules: list[str]
) -> set[str]:
    """The runs that schedules belong to: the end of a run removes its schedules without waiting."""
    wanted = {o.run_id for o in operations if isinstance(o, PutSchedule) and o.run_id is not None}
    return wanted | {row["id"] for row in work.tx.read("schedule_owners", names=schedules)}


def _lock_schedules(work: UnitOfWork, schedules: list[str], runs: set[str]) -> None:
    locked = work.tx.read("lock_schedules", names=schedules)
    if {row["run_id"] for row in locked} - runs - {None}:
        message = "a schedule was given to another run meanwhile"
        raise Contended(message)
