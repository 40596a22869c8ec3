"""Control of tasks: each operation on one task is a guarded statement, and what must follow it."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

from holdfast.engine.core.operation import (
    AnswerTask,
    CancelTask,
    ControlledTask,
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
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read import step_texts
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.task_records import read_task
from holdfast.engine.state import (
    child_run_refusals,
    control_refusals,
    deletion,
    expected_version,
    needs,
    plans,
    reopen,
    verdicts,
)
from holdfast.engine.state.expected_version import TooEarly, VersionedCommand
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import TERMINAL, PlanningPhase, TaskKind
from holdfast.store.database import Row

SLEEP_ENDED = "its sleep was cut short, and it goes on from there"
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
def control_task(operation: ControlledTask, work: UnitOfWork) -> TransitionResult:
    message = f"{type(operation).__name__} is not an operation on a task, asked in {work}"
    raise TypeError(message)


control_task.register(needs.block_task)
control_task.register(needs.unblock_task)
control_task.register(plans.start_planning)
control_task.register(plans.reorder_plan)
control_task.register(plans.finalize_plan)
control_task.register(plans.advance_plan)
control_task.register(deletion.delete_task)


@control_task.register
def _enqueue(operation: EnqueueTask, work: UnitOfWork) -> TransitionResult:
    rows = work.change_tasks("enqueue_task", task_id=operation.task_id, actor=operation.actor)
    reopen.note_tasks_to_evaluate(work, rows)
    return _answer_operation(work, operation, rows, "queued")


@control_task.register
def _run_now(operation: RunNow, work: UnitOfWork) -> TransitionResult:
    # Before the task is made due, because only the sleep that it waits for is ended.
    ended = work.tx.write("end_sleeps", task_id=operation.task_id)
    rows = work.change_tasks("run_now", task_id=operation.task_id, actor=operation.actor)
    reopen.note_tasks_to_evaluate(work, rows)
    answer = _answer_operation(work, operation, rows, "queued")
    return replace(answer, detail=SLEEP_ENDED) if ended else answer


@control_task.register
def _cancel(operation: CancelTask, work: UnitOfWork) -> TransitionResult:
    rows = work.change_tasks("cancel_tasks", ids=[operation.task_id], actor=operation.actor)
    if any(row["entity"] == operation.task_id for row in rows):
        return TransitionResult(ok=True, status="cancelled")
    return _answer_operation(work, operation, [], "cancelled")


@control_task.register
def _reset(operation: ResetTask, work: UnitOfWork) -> TransitionResult:
    if (refusal := _refuse_ended_call(work, operation.task_id)) is not None:
        return refusal
    landing = reopen.find_conflicted_landing(work, operation.task_id)
    rows = work.change_tasks("reset_task", task_id=operation.task_id, actor=operation.actor)
    if not rows:
        return _answer_operation(work, operation, [], "idle")
    reopen.supersede_children(work, rows, operation.actor)
    if rows[0]["planning_phase"] == PlanningPhase.ACTIVE:
        plans.reset_tasks_below(work, operation.task_id, operation.actor)
    reopen.note_tasks_to_evaluate(work, rows)
    reopen.reopen_groups_around(work, [operation.task_id], operation.actor)
    reopen.reopen_unaccepted_work(work, rows, operation.actor)
    if landing is not None:
        reopen.reopen_conflicted_item(work, landing, operation.actor)
    if rows[0]["previous"] == "done":
        work.change_tasks("block_dependents", ids=[operation.task_id], actor=operation.actor)
    if rows[0]["run_id"] is not None:
        reopen.reopen_run(work, rows[0]["run_id"], operation.actor)
    elif rows[0]["previous"] in reopen.ENDED_BADLY:
        reopen.lift_failing_tree(work, operation.task_id, operation.actor)
    return TransitionResult(ok=True, status="idle")


@control_task.register
def _retry(operation: RetryTask, work: UnitOfWork) -> TransitionResult:
    task = _find_task(work, operation.task_id)
    if task is None or task["superseded"] or task["status"] not in {"failed", "cancelled"}:
        return _answer_operation(work, operation, [], "queued")
    if task["run_id"] is not None:
        # The answer is about the run, and the caller has asked about the task.
        answer = reopen.retry_run(work, task["run_id"], operation.actor, operation.task_id)
        return replace(answer, status="queued" if answer.ok else task["status"])
    rows = reopen.retry_task_tree(work, operation.task_id, operation.actor)
    named = [row for row in rows if row["entity"] == operation.task_id]
    return _answer_operation(work, operation, named, "queued")


@control_task.register
def _reopen(operation: ReopenTask, work: UnitOfWork) -> TransitionResult:
    if (refusal := _refuse_ended_call(work, operation.task_id)) is not None:
        return refusal
    if operation.follow_up is not None:
        refusal = _refuse_follow_up(work, operation.task_id)
        if refusal is not None:
            return refusal
    if plans.rerun_plan(work, operation.task_id, operation.actor):
        return TransitionResult(ok=True, status="idle")
    ended = tuple(sorted(TERMINAL))
    extent = reopen.ReopenExtent(follow_up=operation.follow_up, told=operation.task_id)
    rows = reopen.reopen_task(work, operation.task_id, operation.actor, ended, extent)
    # A loop whose verifier is re-opened too may have begun a new epoch without the named item.
    task = _find_task(work, operation.task_id) if rows else None
    return _answer_operation(work, operation, [] if task is None else [task], "queued")


@control_task.register
def _settle(operation: SettleTask, work: UnitOfWork) -> TransitionResult:
    if not operation.approved and (answer := _send_back(work, operation)) is not None:
        return answer
    named = {"task_id": operation.task_id, "actor": operation.actor, "note": operation.note}
    verdict = "done" if operation.approved else "failed"
    rows = work.change_tasks("settle_by_person", verdict=verdict, **named)
    if rows:
        return TransitionResult(ok=True, status=verdict)
    if not operation.approved:
        rows = work.change_tasks("reject_held", **named)
    else:
        spent = work.tx.read("out_of_rounds", task_id=operation.task_id)
        rows = work.change_tasks("approve_held", **named)
        reopen.note_tasks_to_evaluate(work, rows)
        if rows and spent:
            reopen.reopen_rejected_work(work, spent[0], operation.actor)
    return _answer_person(work, operation, rows)


def _send_back(work: UnitOfWork, operation: SettleTask) -> TransitionResult | None:
    """Send a rejected approval back to the step that it names, while it has rounds left."""
    task = _find_task(work, operation.task_id)
    if task is None or task["kind"] != TaskKind.APPROVAL or task["on_failure"] != "goto":
        return None
    plan = step_texts.read_step(work, task).on_failure
    named = {"task_id": operation.task_id, "actor": operation.actor, "note": operation.note}
    if not work.change_tasks("send_approval_back", **named, most=plan.max_rounds):
        return None
    verdicts.go_back_to_step(work, task, str(plan.step), operation.note or '"rejected"')
    return TransitionResult(ok=True, status="queued", detail=f"it goes back to {plan.step}")


@control_task.register
def _answer_question(operation: AnswerTask, work: UnitOfWork) -> TransitionResult:
    rows = work.change_tasks(
        "answer_task", task_id=operation.task_id, answer=operation.answer, actor=operation.actor
    )
    return _answer_person(work, operation, rows)


def _answer_person(
    work: UnitOfWork, operation: SettleTask | AnswerTask, rows: list[Row]
) -> TransitionResult:
    task = _find_task(work, operation.task_id)
    if rows or task is None:
        return _answer_operation(work, operation, rows, "")
    detail = control_refusals.describe_not_waiting(
        read_task(task), answered=isinstance(operation, AnswerTask)
    )
    return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)


@control_task.register
def _hold(operation: HoldTask, work: UnitOfWork) -> TransitionResult:
    rows = work.change_tasks(
        "hold_task",
        task_id=operation.task_id,
        reason=int(operation.reason),
        until=operation.until,
        detail=operation.detail,
        actor=operation.actor,
    )
    return _answer_hold(work, operation, rows)


@control_task.register
def _unhold(operation: UnholdTask, work: UnitOfWork) -> TransitionResult:
    rows = work.change_tasks(
        "unhold_task",
        task_id=operation.task_id,
        reason=int(operation.reason),
        actor=operation.actor,
    )
    reopen.note_tasks_to_evaluate(work, rows)
    return _answer_hold(work, operation, rows)


def _answer_hold(
    work: UnitOfWork, operation: HoldTask | UnholdTask, rows: list[Row]
) -> TransitionResult:
    if rows:
        return TransitionResult(ok=True, status=rows[0]["status"])
    task = _find_task(work, operation.task_id)
    if task is None:
        return refuse(Refusal.NOT_FOUND, None)
    if task["status"] in TERMINAL:
        return refuse(
            Refusal.ALREADY_TERMINAL, task["status"], control_refusals.describe_ended(work, task)
        )
    return TransitionResult(ok=True, repeated=True, status=task["status"])


@control_task.register
def _edit(operation: EditTask, work: UnitOfWork) -> TransitionResult:
    parameters: dict[str, Any] = {name: operation.changes.get(name) for name in EDITABLE}
    rows = work.change_tasks(
        "edit_task",
        task_id=operation.task_id,
        actor=operation.actor,
        expected_version=operation.expected_version,
        reschedule="scheduled_for" in operation.changes,
        **parameters,
    )
    if rows:
        return TransitionResult(ok=True, status=rows[0]["status"])
    task = _find_task(work, operation.task_id)
    if task is not None and operation.expected_version not in {None, task["version"]}:
        wanted = operation.expected_version or 0
        if operation.patient and expected_version.may_still_come(task, wanted):
            return TooEarly(ok=False, reason=Refusal.VERSION_CONFLICT, status=task["status"])
        command = VersionedCommand(name="task.edit", expected_version=wanted, actor=operation.actor)
        expected_version.record_conflict(work, task, command)
        detail = f"it is at version {task['version']}, not {operation.expected_version}"
        return refuse(Refusal.VERSION_CONFLICT, task["status"], detail)
    return _answer_operation(work, operation, [], "edited")


def _answer_operation(
    work: UnitOfWork, operation: ControlledTask, rows: list[Row], target: str
) -> TransitionResult:
    if rows:
        return TransitionResult(ok=True, status=rows[0]["status"])
    task = _find_task(work, operation.task_id)
    if task is None:
        return refuse(Refusal.NOT_FOUND, None)
    return control_refusals.refuse_task(work, operation, task, target)


def _refuse_ended_call(work: UnitOfWork, task_id: str) -> TransitionResult | None:
    """Refuse an operation on a task of an ended called run: only its caller continues it."""
    task = _find_task(work, task_id)
    call = None if task is None else child_run_refusals.find_ended_call(work.tx, task["run_id"])
    if task is None or call is None:
        return None
    return replace(reopen.refuse_ended_call(call), status=task["status"])


def _refuse_follow_up(work: UnitOfWork, task_id: str) -> TransitionResult | None:
    """Refuse a follow-up for a task that no worker runs itself."""
    task = _find_task(work, task_id)
    if task is None or task["superseded"]:
        return None
    if task["kind"] == TaskKind.WORK and task["planning_phase"] == PlanningPhase.NONE:
        return None
    detail = "nobody works on it itself; continue one of the tasks below it"
    return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)


def _find_task(work: UnitOfWork, task_id: str) -> Row | None:
    rows = work.tx.read("task_by_id", task_id=task_id)
    return rows[0] if rows else None
