"""What people and programs ask of one task: each a guarded statement and what must follow it."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from holdfast.engine.core.operation import (
    AnswerTask,
    CancelTask,
    Controlled,
    DeleteTask,
    EditTask,
    EnqueueTask,
    HoldTask,
    ReopenTask,
    ResetTask,
    RetryTask,
    RunNow,
    SettleTask,
    UnholdTask,
)
from holdfast.engine.core.unit_of_work import Group
from holdfast.engine.read.records import read_task
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.state import (
    child_run_refusals,
    control_refusals,
    expected_version,
    needs,
    plans,
    reopen,
)
from holdfast.engine.state.expected_version import Meant
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import TERMINAL, Kind, PlanningPhase
from holdfast.store.database import Row

SHOWN = 5
EDITABLE = (
    "title",
    "agent",
    "payload",
    "priority",
    "position",
    "tags",
    "max_attempts",
    "max_lost",
    "timeout",
    "scheduled_for",
)


@singledispatch
def control(operation: Controlled, group: Group) -> TransitionResult:
    message = f"{type(operation).__name__} is not an operation on a task, asked in {group}"
    raise TypeError(message)


control.register(needs.block)
control.register(needs.unblock)
control.register(plans.start)
control.register(plans.reorder)
control.register(plans.finalize)
control.register(plans.advance)


@control.register
def _enqueue(operation: EnqueueTask, group: Group) -> TransitionResult:
    rows = group.change_tasks("enqueue_task", task_id=operation.task_id, actor=operation.actor)
    reopen.consider(group, rows)
    return _answer(group, operation, rows, "queued")


@control.register
def _run_now(operation: RunNow, group: Group) -> TransitionResult:
    rows = group.change_tasks("run_now", task_id=operation.task_id, actor=operation.actor)
    reopen.consider(group, rows)
    return _answer(group, operation, rows, "queued")


@control.register
def _cancel(operation: CancelTask, group: Group) -> TransitionResult:
    rows = group.change_tasks("cancel_tasks", ids=[operation.task_id], actor=operation.actor)
    if any(row["entity"] == operation.task_id for row in rows):
        return TransitionResult(ok=True, status="cancelled")
    return _answer(group, operation, [], "cancelled")


@control.register
def _reset(operation: ResetTask, group: Group) -> TransitionResult:
    if (refusal := _ended_call(group, operation.task_id)) is not None:
        return refusal
    rows = group.change_tasks("reset_task", task_id=operation.task_id, actor=operation.actor)
    if not rows:
        return _answer(group, operation, [], "idle")
    reopen.supersede(group, rows, operation.actor)
    if rows[0]["planning_phase"] == PlanningPhase.ACTIVE:
        plans.take_back(group, operation.task_id, operation.actor)
    reopen.consider(group, rows)
    reopen.reopen_around(group, [operation.task_id], operation.actor)
    reopen.reopen_left_out(group, rows, operation.actor)
    if rows[0]["previous"] == "done":
        group.change_tasks("block_dependents", ids=[operation.task_id], actor=operation.actor)
    if rows[0]["run_id"] is not None:
        reopen.bring_back(group, rows[0]["run_id"], operation.actor)
    elif rows[0]["previous"] in reopen.ENDED_BADLY:
        reopen.lift_failing(group, operation.task_id, operation.actor)
    return TransitionResult(ok=True, status="idle")


@control.register
def _retry(operation: RetryTask, group: Group) -> TransitionResult:
    task = _task(group, operation.task_id)
    if task is None or task["superseded"] or task["status"] not in {"failed", "cancelled"}:
        return _answer(group, operation, [], "queued")
    if task["run_id"] is not None:
        return reopen.retry_run(group, task["run_id"], operation.actor, operation.task_id)
    rows = reopen.retry_tree(group, operation.task_id, operation.actor)
    named = [row for row in rows if row["entity"] == operation.task_id]
    return _answer(group, operation, named, "queued")


@control.register
def _reopen(operation: ReopenTask, group: Group) -> TransitionResult:
    if (refusal := _ended_call(group, operation.task_id)) is not None:
        return refusal
    if operation.follow_up is not None:
        refusal = _no_work(group, operation.task_id)
        if refusal is not None:
            return refusal
    if plans.rerun(group, operation.task_id, operation.actor):
        return TransitionResult(ok=True, status="idle")
    ended = tuple(sorted(TERMINAL))
    scope = reopen.Scope(follow_up=operation.follow_up, told=operation.task_id)
    rows = reopen.reopen(group, operation.task_id, operation.actor, ended, scope)
    # A loop whose verifier is tried again too may have begun again without the item that was named.
    task = _task(group, operation.task_id) if rows else None
    return _answer(group, operation, [] if task is None else [task], "queued")


@control.register
def _delete(operation: DeleteTask, group: Group) -> TransitionResult:
    rows = group.tx.change("delete_task", task_id=operation.task_id, actor=operation.actor)
    if rows:
        group.tells = True
        group.ended.append(operation.task_id)
        _settle_without(group, rows[0], operation.actor)
        return TransitionResult(ok=True)
    task = _task(group, operation.task_id)
    if task is None:
        return refuse(Refusal.NOT_FOUND, None)
    if task["run_id"] is not None:
        detail = f"it is part of {task['run_id']}; cancel the run instead"
        return refuse(Refusal.PART_OF_RUN, task["status"], detail)
    if task["status"] == "running":
        return refuse(Refusal.INVALID_TRANSITION, "running", "it is running; cancel it first")
    detail = _kept_for(group, operation.task_id)
    return refuse(Refusal.NEEDED_BY_OTHERS, task["status"], detail)


def _kept_for(group: Group, task_id: str) -> str:
    found = group.tx.read("kept_for", task_id=task_id, count=SHOWN + 1)
    shown = [f"{row['title']} {row['id']}" for row in found if not row["made"]][:SHOWN]
    more = " and more" if len(found) > SHOWN else ""
    if shown:
        told = f"other tasks need it or belong to it: {', '.join(shown)}{more}"
        return f"{told}; delete or unblock them first"
    maker = f"{found[0]['title']} {found[0]['id']}"
    return f"{maker} has made it, and reads what it gives; cancel it instead, or that one"


def _settle_without(group: Group, gone: Row, actor: str) -> None:
    """Let a parent end, or go on, from which the last open child was taken, or what had failed."""
    parent = None if gone["parent_id"] is None else _task(group, gone["parent_id"])
    if parent is None or parent["status"] in TERMINAL:
        return
    group.parents.add(parent["id"])
    if gone["previous"] in reopen.ENDED_BADLY:
        reopen.lift_failing(group, parent["id"], actor)


@control.register
def _settle(operation: SettleTask, group: Group) -> TransitionResult:
    named = {"task_id": operation.task_id, "actor": operation.actor, "note": operation.note}
    verdict = "done" if operation.approved else "failed"
    rows = group.change_tasks("settle_by_person", verdict=verdict, **named)
    if rows:
        return TransitionResult(ok=True, status=verdict)
    if not operation.approved:
        rows = group.change_tasks("reject_held", **named)
    else:
        spent = group.tx.read("out_of_rounds", task_id=operation.task_id)
        rows = group.change_tasks("approve_held", **named)
        reopen.consider(group, rows)
        if rows and spent:
            reopen.reopen_rejected(group, spent[0], operation.actor)
    return _answer_person(group, operation, rows)


@control.register
def _reply(operation: AnswerTask, group: Group) -> TransitionResult:
    rows = group.change_tasks(
        "answer_task", task_id=operation.task_id, answer=operation.answer, actor=operation.actor
    )
    return _answer_person(group, operation, rows)


def _answer_person(
    group: Group, operation: SettleTask | AnswerTask, rows: list[Row]
) -> TransitionResult:
    task = _task(group, operation.task_id)
    if rows or task is None:
        return _answer(group, operation, rows, "")
    detail = control_refusals.not_waiting(
        read_task(task), answered=isinstance(operation, AnswerTask)
    )
    return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)


@control.register
def _hold(operation: HoldTask, group: Group) -> TransitionResult:
    rows = group.change_tasks(
        "hold_task",
        task_id=operation.task_id,
        reason=int(operation.reason),
        until=operation.until,
        actor=operation.actor,
    )
    return _held(group, operation, rows)


@control.register
def _unhold(operation: UnholdTask, group: Group) -> TransitionResult:
    rows = group.change_tasks(
        "unhold_task",
        task_id=operation.task_id,
        reason=int(operation.reason),
        actor=operation.actor,
    )
    reopen.consider(group, rows)
    return _held(group, operation, rows)


def _held(group: Group, operation: HoldTask | UnholdTask, rows: list[Row]) -> TransitionResult:
    if rows:
        return TransitionResult(ok=True, status=rows[0]["status"])
    task = _task(group, operation.task_id)
    if task is None:
        return refuse(Refusal.NOT_FOUND, None)
    if task["status"] in TERMINAL:
        return refuse(Refusal.ALREADY_TERMINAL, task["status"], control_refusals.ended(group, task))
    return TransitionResult(ok=True, repeated=True, status=task["status"])


@control.register
def _edit(operation: EditTask, group: Group) -> TransitionResult:
    parameters: dict[str, Any] = {name: operation.changes.get(name) for name in EDITABLE}
    rows = group.change_tasks(
        "edit_task",
        task_id=operation.task_id,
        actor=operation.actor,
        expected_version=operation.expected_version,
        reschedule="scheduled_for" in operation.changes,
        **parameters,
    )
    if rows:
        return TransitionResult(ok=True, status=rows[0]["status"])
    task = _task(group, operation.task_id)
    if task is not None and operation.expected_version not in {None, task["version"]}:
        wanted = operation.expected_version or 0
        meant = Meant(asked="task.edit", expected_version=wanted, actor=operation.actor)
        expected_version.tell(group, task, meant)
        detail = f"it is at version {task['version']}, not {operation.expected_version}"
        return refuse(Refusal.VERSION_CONFLICT, task["status"], detail)
    return _answer(group, operation, [], "edited")


def _answer(group: Group, operation: Controlled, rows: list[Row], target: str) -> TransitionResult:
    if rows:
        return TransitionResult(ok=True, status=rows[0]["status"])
    task = _task(group, operation.task_id)
    if task is None:
        return refuse(Refusal.NOT_FOUND, None)
    return control_refusals.refuse_task(group, operation, task, target)


def _ended_call(group: Group, task_id: str) -> TransitionResult | None:
    """That a task is part of a run which has ended, and goes on only through who called it."""
    task = _task(group, task_id)
    way = None if task is None else child_run_refusals.find(group.tx, task["run_id"])
    return None if way is None else reopen.refuse_ended_call(way)


def _no_work(group: Group, task_id: str) -> TransitionResult | None:
    """That nobody works on a task itself who could be told more."""
    task = _task(group, task_id)
    if task is None or task["superseded"]:
        return None
    if task["kind"] == Kind.WORK and task["planning_phase"] == PlanningPhase.NONE:
        return None
    detail = "nobody works on it itself; continue one of the tasks below it"
    return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)


def _task(group: Group, task_id: str) -> Row | None:
    rows = group.tx.read("task_by_id", task_id=task_id)
    return rows[0] if rows else None
