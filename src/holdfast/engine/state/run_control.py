"""Control of runs: cancel, expire, pause, resume, raise a budget, retry."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.engine.core.operation import (
    CancelRun,
    ControlledRun,
    ExpireRun,
    HoldRun,
    RaiseBudget,
    RetryRun,
    UnholdRun,
)
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.spending import describe_reached_budget
from holdfast.engine.state import child_run_refusals, reopen, slots
from holdfast.model.advice import Action, advise
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import RUN_TERMINAL, Hold, RunStatus
from holdfast.model.units import describe_duration
from holdfast.store.database import Row


def control_run(work: UnitOfWork, operation: ControlledRun) -> TransitionResult:
    match operation:
        case CancelRun():
            return _cancel(work, operation)
        case ExpireRun():
            return _expire(work, operation)
        case HoldRun() | UnholdRun():
            return _hold(work, operation)
        case RaiseBudget():
            return _raise_budget(work, operation)
        case RetryRun(step=None):
            return reopen.retry_run(work, operation.run_id, operation.actor)
        case RetryRun(step=str() as step):
            return reopen.retry_from_step(work, operation.run_id, step, operation.actor)
        case _:
            message = f"{type(operation).__name__} is not an operation on a run"
            raise TypeError(message)


def _cancel(work: UnitOfWork, operation: CancelRun) -> TransitionResult:
    rows = work.change_runs("cancel_run", run_id=operation.run_id, actor=operation.actor)
    if not rows:
        return _refuse(work, operation)
    work.change_tasks("cancel_run_tasks", ids=[operation.run_id], actor=operation.actor)
    return TransitionResult(ok=True, status="cancelled")


def _expire(work: UnitOfWork, operation: ExpireRun) -> TransitionResult:
    """Fail a run that has passed its time limit, and cancel its open tasks."""
    found = work.tx.read("run_by_id", run_id=operation.run_id)
    limit = describe_duration(found[0]["time_limit"] or 0) if found else ""
    problem = json.dumps({"code": "deadline", "message": f"it was not done within {limit}"})
    rows = work.change_runs(
        "expire_run", run_id=operation.run_id, problem=problem, actor=operation.actor
    )
    if not rows:
        return _refuse(work, operation)
    work.change_tasks("cancel_run_tasks", ids=[operation.run_id], actor=operation.actor)
    return TransitionResult(ok=True, status="failed")


def _hold(work: UnitOfWork, operation: HoldRun | UnholdRun) -> TransitionResult:
    if isinstance(operation, UnholdRun) and operation.reason is Hold.SCHEDULED:
        return _begin(work, operation)
    rows = work.change_runs(
        "hold_run" if isinstance(operation, HoldRun) else "unhold_run",
        run_id=operation.run_id,
        reason=int(operation.reason),
        actor=operation.actor,
    )
    if isinstance(operation, UnholdRun) and operation.begins and not rows:
        return _begin(work, operation)
    return _copy_holds_to_tasks(work, operation, rows)


def _begin(work: UnitOfWork, operation: UnholdRun) -> TransitionResult:
    """Begin a run that was scheduled for later; with a key it waits for a slot from now on."""
    rows = work.change_runs("begin_run", run_id=operation.run_id, actor=operation.actor)
    answer = _copy_holds_to_tasks(work, operation, rows)
    for row in rows:
        work.to_evaluate += [
            each["id"] for each in work.tx.read("ripe_in_run", run_id=operation.run_id)
        ]
        if row["concurrency_key"] is not None:
            slots.admit_runs(work, row["concurrency_key"], 1)
    return answer


def _raise_budget(work: UnitOfWork, operation: RaiseBudget) -> TransitionResult:
    rows = work.change_runs(
        "raise_budget",
        run_id=operation.run_id,
        usd=operation.usd,
        attempts=operation.attempts,
        actor=operation.actor,
    )
    return _copy_holds_to_tasks(work, operation, rows)


def _copy_holds_to_tasks(
    work: UnitOfWork, operation: ControlledRun, rows: Sequence[Row]
) -> TransitionResult:
    """Copy the holds of a run to its tasks, if they have changed; else refuse the operation."""
    if not rows:
        return _refuse(work, operation)
    work.change_tasks("copy_run_holds", ids=[row["entity"] for row in rows])
    return TransitionResult(ok=True, status="running")


def _refuse(work: UnitOfWork, operation: ControlledRun) -> TransitionResult:
    found: list[Row] = work.tx.read("run_by_id", run_id=operation.run_id)
    if not found:
        return refuse(Refusal.NOT_FOUND, None)
    status = found[0]["status"]
    if status in RUN_TERMINAL:
        detail = f"the run has ended {status}; " + _describe_retry(work, found[0])
        again = isinstance(operation, CancelRun) and status == RunStatus.CANCELLED
        return refuse(Refusal.ALREADY_TERMINAL, status, detail, repeated=again)
    if isinstance(operation, RaiseBudget):
        detail = "its workflow has no such limit: that can be raised only where a budget sets it"
        return refuse(Refusal.INVALID_TRANSITION, status, detail)
    if _is_resume(operation) and found[0]["holds"] & Hold.BUDGET:
        used, call = describe_reached_budget(work.tx, operation.run_id)
        if call:
            detail = f"its budget holds it, {used}; " + call + " lets it go on"
            return refuse(Refusal.HELD, status, detail)
    return TransitionResult(ok=True, repeated=True, status=status)


def _is_resume(operation: ControlledRun) -> bool:
    return isinstance(operation, UnholdRun) and operation.reason is Hold.PAUSED


def _describe_retry(work: UnitOfWork, run: Row) -> str:
    if (call := child_run_refusals.find_ended_call(work.tx, run["id"])) is not None:
        return call.detail
    if run["status"] == RunStatus.COMPLETED:
        return reopen.describe_repetition(work.tx, run)
    return advise(Action.RETRY, run["id"]) + " tries again what failed or was cancelled"
