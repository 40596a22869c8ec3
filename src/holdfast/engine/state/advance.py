"""What follows from the state of a run, derived from it alone and the same however often asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from holdfast.engine.core.operation import AdvanceRun
from holdfast.engine.core.unit_of_work import Group
from holdfast.engine.state import child_runs, direct_start, loops, reopen, slots, usage_limits
from holdfast.model.result import AdvanceResult
from holdfast.model.status import Hold

log = logging.getLogger("holdfast.advance")


def follow(group: Group) -> None:
    """Unblock, hold, settle and free whatever the group's transitions made possible."""
    derive(group)
    # Who is let in may have nothing to do, or call a workflow, and so on.
    while group.freed:
        slots.free(group)
        derive(group)


def derive(group: Group) -> set[str]:
    """What must be so before the next operation of the group looks at the same run.

    The answer is the runs that completed.
    """
    child_runs.abandon(group)
    grow(group)
    completed = settle(group)
    while group.orphans or group.returned:
        child_runs.abandon(group)
        child_runs.hear(group)
        grow(group)
        completed |= settle(group)
    usage_limits.hold_spent(group)
    return completed


def grow(group: Group) -> None:
    """Follow every end and every met need as far as it leads."""
    while group.broken or group.done or group.parents or group.ripe:
        _hold_failing(group)
        _unblock(group)
        _settle_parents(group)
        if group.ripe:
            ripe, group.ripe = group.ripe, []
            loops.consider(group, ripe)


def _hold_failing(group: Group) -> None:
    if group.broken:
        broken, group.broken = sorted(group.broken), set()
        if group.change_runs("mark_failing", ids=broken):
            group.change_tasks("copy_run_holds", ids=broken)


def _unblock(group: Group) -> None:
    if group.done:
        done, group.done = group.done, []
        unblocked = direct_start.unblock(group, done)
        reopen.consider(group, unblocked)
        group.crowded.update(row["concurrency_key"] for row in unblocked if row["concurrency_key"])
        # With a task that has just got all it needs, a run that does not fail goes on.
        failing = int(Hold.FAILING)
        group.touched -= {row["run_id"] for row in unblocked if not row["run_holds"] & failing}


def _settle_parents(group: Group) -> None:
    """Wake who waits for its children, end groups whose children are done, start their next."""
    if group.parents:
        parents, group.parents = sorted(group.parents), set()
        group.change_tasks("wake_parents", ids=parents)
        group.change_tasks("settle_groups", ids=parents)
        _settle_plans(group, parents)
        loops.refill(group, parents)


def _settle_plans(group: Group, parents: list[str]) -> None:
    """A plan answers for all below it: whatever ends there may end every plan around it."""
    if plans := [row["id"] for row in group.tx.read("plans_around", ids=parents)]:
        group.change_tasks("hold_plans", ids=plans)
        group.change_tasks("settle_plans", ids=plans, output=None, error=None)


def settle(group: Group) -> set[str]:
    """End the runs whose tasks say so; the answer is those that completed."""
    if not group.touched:
        return set()
    touched, group.touched = sorted(group.touched), set()
    rows = group.change_runs("settle_runs", ids=touched)
    if failed := [row["entity"] for row in rows if row["status"] == "failed"]:
        group.change_tasks("fail_groups", ids=failed)
    return {row["entity"] for row in rows if row["status"] == "completed"}


def advance(group: Group, operations: Sequence[AdvanceRun]) -> list[AdvanceResult]:
    return [_advance(group, operation.run_id) for operation in operations]


def _advance(group: Group, run_id: str) -> AdvanceResult:
    if odd := group.tx.read("odd_statuses", run_id=run_id):
        for row in odd:
            log.warning("task %s has the unexpected status %r", row["id"], row["status"])
        return AdvanceResult(advanced=False, completed=False)
    group.change_runs("lift_failing", run_id=run_id, actor="advance")
    group.change_runs("mark_failing", ids=[run_id])
    group.change_tasks("copy_run_holds", ids=[run_id])
    unblocked = group.change_tasks("unblock_run", ids=[run_id])
    group.ripe += [row["id"] for row in group.tx.read("ripe_in_run", run_id=run_id)]
    group.parents |= {row["id"] for row in group.tx.read("open_groups", run_id=run_id)}
    group.orphans |= {row["id"] for row in group.tx.read("calls_of_run", run_id=run_id)}
    group.returned |= {row["id"] for row in group.tx.read("returned_in_run", run_id=run_id)}
    child_runs.hear(group)
    grow(group)
    group.touched.add(run_id)
    completed = derive(group)
    slots.free(group)
    return AdvanceResult(advanced=bool(unblocked), completed=run_id in completed)
