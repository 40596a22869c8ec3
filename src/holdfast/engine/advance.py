"""What follows from the state of a run, derived from it alone and the same however often asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from holdfast.engine import slots
from holdfast.engine.group import Group
from holdfast.engine.operations import AdvanceRun
from holdfast.model.result import AdvanceResult

log = logging.getLogger("holdfast.advance")


def follow(group: Group) -> None:
    """Unblock, hold, settle and free whatever the group's transitions made possible."""
    derive(group)
    slots.free(group)


def derive(group: Group) -> None:
    """What must be so before the next operation of the group looks at the same run."""
    if group.broken:
        broken, group.broken = sorted(group.broken), set()
        hold_failing(group, broken)
    if group.done:
        done, group.done = group.done, []
        group.change_tasks("unblock_dependents", ids=done)
    if group.parents:
        parents, group.parents = sorted(group.parents), set()
        group.change_tasks("wake_parents", ids=parents)
    settle(group)


def hold_failing(group: Group, runs: list[str]) -> None:
    if group.change_runs("mark_failing", ids=runs):
        group.change_tasks("copy_run_holds", ids=runs)


def settle(group: Group) -> set[str]:
    """End the runs whose tasks say so; the answer is those that completed."""
    if not group.touched:
        return set()
    touched, group.touched = sorted(group.touched), set()
    rows = group.change_runs("settle_runs", ids=touched)
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
    group.touched.add(run_id)
    completed = settle(group)
    slots.free(group)
    return AdvanceResult(advanced=bool(unblocked), completed=run_id in completed)
