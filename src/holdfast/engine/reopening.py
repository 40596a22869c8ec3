"""Back from an end: retry, re-open and everything that must come back with it."""

from __future__ import annotations

from holdfast.engine import slots
from holdfast.engine.answers import refuse
from holdfast.engine.group import Group
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import RUN_TERMINAL
from holdfast.store.database import Row

ENDED_BADLY = ("failed", "cancelled")


def retry_run(group: Group, run_id: str, actor: str) -> TransitionResult:
    """Re-open every failed or cancelled task of a run, and the run if it had ended."""
    reopened = group.change_runs("reopen_run", run_id=run_id, statuses=ENDED_BADLY, actor=actor)
    rows = group.change_tasks("retry_run_tasks", run_id=run_id, actor=actor)
    if not rows and not reopened:
        return _nothing_to_retry(group, run_id)
    _restart(group, run_id, actor, reopened)
    return TransitionResult(ok=True, status="running")


def retry_from(group: Group, run_id: str, step: str, actor: str) -> TransitionResult:
    """Re-open a step and everything that needs it, whatever became of them."""
    if not group.tx.read("run_by_id", run_id=run_id):
        return refuse(Refusal.NOT_FOUND, None)
    found = group.tx.read("task_in_run", run_id=run_id, step=step)
    if not found:
        return refuse(Refusal.UNKNOWN_STEP, None, f"{run_id} has no step {step!r}")
    task = found[0]
    statuses = ["queued", "running", "done", "failed", "cancelled"]
    if not reopen(group, task["id"], actor, statuses):
        detail = f"step {step!r} is {task['status']} and cannot be started again"
        return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)
    return TransitionResult(ok=True, status="running")


def reopen(group: Group, task_id: str, actor: str, statuses: list[str]) -> list[Row]:
    """Re-open a task and what needs it; a run that had ended badly comes back whole."""
    rows = group.change_tasks("reopen_tasks", task_id=task_id, statuses=statuses, actor=actor)
    supersede(group, rows, actor)
    if rows and rows[0]["run_id"] is not None:
        bring_back(group, rows[0]["run_id"], actor, retry_failed=True)
    return [row for row in rows if row["entity"] == task_id]


def supersede(group: Group, rows: list[Row], actor: str) -> None:
    """End for good whatever the tasks of a new epoch had made in the one before."""
    if rows:
        ids = [row["entity"] for row in rows]
        group.change_tasks("supersede_children", ids=ids, actor=actor)


def bring_back(group: Group, run_id: str, actor: str, *, retry_failed: bool = False) -> None:
    """Let a run whose task was taken out of its end go on."""
    statuses = sorted(RUN_TERMINAL)
    reopened = group.change_runs("reopen_run", run_id=run_id, statuses=statuses, actor=actor)
    if retry_failed:
        group.change_tasks("retry_run_tasks", run_id=run_id, actor=actor)
    _restart(group, run_id, actor, reopened)


def _restart(group: Group, run_id: str, actor: str, reopened: list[Row]) -> None:
    group.change_runs("lift_failing", run_id=run_id, actor=actor)
    group.change_tasks("copy_run_holds", ids=[run_id])
    group.touched.add(run_id)
    group.broken.add(run_id)
    if reopened and reopened[0]["concurrency_key"]:
        slots.admit(group, reopened[0]["concurrency_key"], 1)


def _nothing_to_retry(group: Group, run_id: str) -> TransitionResult:
    found = group.tx.read("run_by_id", run_id=run_id)
    if not found:
        return refuse(Refusal.NOT_FOUND, None)
    detail = "nothing of this run has failed or been cancelled"
    return refuse(Refusal.INVALID_TRANSITION, found[0]["status"], detail)
