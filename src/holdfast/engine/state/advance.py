"""Advance: what follows from every change, worked out from the state alone and repeatable."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from holdfast.engine.core.operation import AdvanceRun
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.state import child_runs, direct_start, loops, reopen, slots, usage_limits
from holdfast.model.result import AdvanceResult
from holdfast.model.status import Hold

log = logging.getLogger("holdfast.advance")


def advance_and_free_slots(work: UnitOfWork) -> None:
    """Advance until nothing follows, with the slots freed that ended tasks and runs held."""
    advance_to_fixpoint(work)
    # A run that gets a slot may end at once, or call a workflow, so that more follows.
    while work.freed:
        slots.free_slots(work)
        advance_to_fixpoint(work)


def advance_to_fixpoint(work: UnitOfWork) -> set[str]:
    """Carry out all that follows before the next operation of the unit of work reads the same runs.

    Returns the runs that completed.
    """
    child_runs.cancel_abandoned_runs(work)
    propagate(work)
    completed = settle_runs(work)
    while work.callers_to_abandon or work.called_runs_ended:
        child_runs.cancel_abandoned_runs(work)
        child_runs.end_calling_tasks(work)
        propagate(work)
        completed |= settle_runs(work)
    usage_limits.hold_spent_runs(work)
    return completed


def propagate(work: UnitOfWork) -> None:
    """Work off the lists of ended tasks, groups and tasks to evaluate until all are empty."""
    while work.runs_with_failure or work.done or work.groups_to_settle or work.to_evaluate:
        _hold_failing_runs(work)
        _unblock_dependents(work)
        _settle_groups(work)
        if work.to_evaluate:
            ids, work.to_evaluate = work.to_evaluate, []
            loops.evaluate_tasks(work, ids)


def _hold_failing_runs(work: UnitOfWork) -> None:
    if work.runs_with_failure:
        runs, work.runs_with_failure = sorted(work.runs_with_failure), set()
        if work.change_runs("mark_failing", ids=runs):
            work.change_tasks("copy_run_holds", ids=runs)


def _unblock_dependents(work: UnitOfWork) -> None:
    if work.done:
        done, work.done = work.done, []
        unblocked = direct_start.unblock_dependents(work, done)
        reopen.note_tasks_to_evaluate(work, unblocked)
        work.keys_to_withdraw.update(
            row["concurrency_key"] for row in unblocked if row["concurrency_key"]
        )
        # A run that is not failing cannot end now: one of its tasks has just been unblocked.
        failing = int(Hold.FAILING)
        work.runs_to_settle -= {
            row["run_id"] for row in unblocked if not row["run_holds"] & failing
        }


def _settle_groups(work: UnitOfWork) -> None:
    """Wake tasks that wait for children, end groups whose children are done, start next items."""
    if work.groups_to_settle:
        groups, work.groups_to_settle = sorted(work.groups_to_settle), set()
        work.change_tasks("wake_parents", ids=groups)
        work.change_tasks("settle_groups", ids=groups)
        _settle_plans(work, groups)
        loops.start_next_items(work, groups)


def _settle_plans(work: UnitOfWork, groups: list[str]) -> None:
    """End the plans around some groups: a task that ends may end every plan that it is below."""
    if plans := [row["id"] for row in work.tx.read("plans_around", ids=groups)]:
        work.change_tasks("hold_plans", ids=plans)
        work.change_tasks("settle_plans", ids=plans, output=None, error=None)


def settle_runs(work: UnitOfWork) -> set[str]:
    """End the runs whose tasks leave nothing to wait for; return those that completed."""
    if not work.runs_to_settle:
        return set()
    runs, work.runs_to_settle = sorted(work.runs_to_settle), set()
    rows = work.change_runs("settle_runs", ids=runs)
    if failed := [row["entity"] for row in rows if row["status"] == "failed"]:
        work.change_tasks("fail_groups", ids=failed)
    return {row["entity"] for row in rows if row["status"] == "completed"}


def advance_runs(work: UnitOfWork, operations: Sequence[AdvanceRun]) -> list[AdvanceResult]:
    return [_advance_run(work, operation.run_id) for operation in operations]


def _advance_run(work: UnitOfWork, run_id: str) -> AdvanceResult:
    if odd := work.tx.read("odd_statuses", run_id=run_id):
        for row in odd:
            log.warning("task %s has the unexpected status %r", row["id"], row["status"])
        return AdvanceResult(advanced=False, completed=False)
    work.change_runs("lift_failing", run_id=run_id, actor="advance")
    work.change_runs("mark_failing", ids=[run_id])
    work.change_tasks("copy_run_holds", ids=[run_id])
    unblocked = work.change_tasks("unblock_run", ids=[run_id])
    work.to_evaluate += [row["id"] for row in work.tx.read("ripe_in_run", run_id=run_id)]
    work.groups_to_settle |= {row["id"] for row in work.tx.read("open_groups", run_id=run_id)}
    work.callers_to_abandon |= {row["id"] for row in work.tx.read("calls_of_run", run_id=run_id)}
    work.called_runs_ended |= {row["id"] for row in work.tx.read("returned_in_run", run_id=run_id)}
    child_runs.end_calling_tasks(work)
    propagate(work)
    work.runs_to_settle.add(run_id)
    completed = advance_to_fixpoint(work)
    slots.free_slots(work)
    return AdvanceResult(advanced=bool(unblocked), completed=run_id in completed)
