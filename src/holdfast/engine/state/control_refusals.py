"""Refusals of control: why a task does not move as was asked, and what to do instead.

That includes answers and approvals that a task does not wait for, and tasks that are superseded.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.engine.core.operation import (
    BlockTask,
    CancelTask,
    ControlledTask,
    EditTask,
    EnqueueTask,
    ReopenTask,
    ResetTask,
    RetryTask,
    RunNow,
    UnblockTask,
)
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.addresses import follow_address
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.task_state import name_tasks
from holdfast.engine.state.reopen import ENDED_BADLY
from holdfast.model.advice import ANSWER, Action, AdviceText, advise, join_texts
from holdfast.model.effect import read_awaited
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import TERMINAL, Hold, PlanningPhase, TaskKind
from holdfast.model.task import Task
from holdfast.store.database import Row, Transaction

SUPERSEDED = "it was made in an epoch that is over, and counts no more"
_HOLDS_FOR_PEOPLE = Hold.APPROVAL | Hold.QUESTION
MAX_DEPENDENTS = 1_000
_RETURN_EVENTS = frozenset({"task.retried", "task.reopened"})


def describe_superseded(tx: Transaction, task_id: str, run_id: str | None) -> tuple[str, str]:
    """Say which task stands in the place of a superseded one, with the call that explains it."""
    if run_id is None:
        return SUPERSEDED, ""
    address = name_tasks(tx, [task_id])[task_id]
    found = follow_address(tx, run_id, address).found
    if found is None or found["superseded"]:
        return SUPERSEDED, ""
    instead = f"{run_id}:{address} {found['id']} ({found['status']}) stands in its place"
    return f"{SUPERSEDED}; {instead}", advise(Action.WHY, found["id"])


def _is_there_already(work: UnitOfWork, operation: ControlledTask, task: Row) -> bool:
    """Whether a task has already the status that the operation asks for."""
    status, planned = task["status"], task["planning_phase"] == PlanningPhase.FINALIZED
    match operation:
        case CancelTask():
            return bool(status == "cancelled")
        case EnqueueTask():
            return bool(status == "queued")
        case ResetTask():
            return bool(status == "idle" and not planned)
        case RetryTask():
            return _has_returned(work, task, ENDED_BADLY)
        case ReopenTask(follow_up=None):
            return _has_returned(work, task, TERMINAL)
        case _:
            return False


def _has_returned(work: UnitOfWork, task: Row, ended: Collection[str]) -> bool:
    """Whether a task has come back from such an end, and nothing but a claim has moved it since.

    A task that has ended again since, or waits for a person, has not come back.
    """
    if task["status"] in TERMINAL or task["holds"] & _HOLDS_FOR_PEOPLE:
        return False
    moves = work.tx.read("last_moves", task_id=task["id"])
    if task["status"] == "running":
        del moves[:1]
    return any(row["type"] in _RETURN_EVENTS and row["from_status"] in ended for row in moves[:1])


def refuse_task(
    work: UnitOfWork, operation: ControlledTask, task: Row, target: str
) -> TransitionResult:
    """Refuse an operation on a task that exists, with the reason that its state gives."""
    reason, status = Refusal.INVALID_TRANSITION, task["status"]
    match operation:
        case CancelTask() if status in TERMINAL:
            reason, detail = Refusal.ALREADY_TERMINAL, describe_ended(work, task)
        case _ if task["superseded"]:
            detail = _describe_superseded(work, task)
        case ResetTask() if status not in {"idle", "running"}:
            reason, detail = Refusal.STARTED_DEPENDENTS, _describe_too_late_to_reset(work, task)
        case ResetTask():
            detail = _describe_not_reset(task)
        case EnqueueTask() | RunNow():
            awaited = _describe_awaited(task) if isinstance(operation, RunNow) else ""
            detail = awaited or _describe_not_queued(task)
        case RetryTask():
            detail = _describe_not_retried(work, task)
        case ReopenTask() if status not in TERMINAL:
            detail = _describe_live_task(work, task) or f"it has not ended; it is {status}"
        case BlockTask() | UnblockTask():
            how = f"it has ended {status}" if status in TERMINAL else "it has begun"
            detail = f"{how}, and waits for nothing more"
        case EditTask():
            detail = _describe_not_edited(work, operation, task)
        case _:
            detail = f"invalid transition {status} → {target}"
    return refuse(reason, status, detail, repeated=_is_there_already(work, operation, task))


def describe_ended(work: UnitOfWork, task: Row) -> str:
    if task["superseded"]:
        return _describe_superseded(work, task)
    again = advise(Action.REOPEN, task["id"]) + " does it and all that needs it again"
    return f"the task has ended {task['status']}; " + again


def _describe_superseded(work: UnitOfWork, task: Row) -> str:
    detail, look = describe_superseded(work.tx, task["id"], task["run_id"])
    return f"{detail}: " + look if look else detail


def _describe_not_queued(task: Row) -> str:
    """Say why a task is neither enqueued nor moved to the front of the queue."""
    named, status = task["id"], task["status"]
    if status in TERMINAL:
        again = advise(Action.REOPEN if status == "done" else Action.RETRY, named)
        return f"it has ended {status}; " + again + " does it again"
    if task["planning_phase"] == PlanningPhase.ACTIVE:
        finalize = advise(Action.FINALIZE_PLAN, named)
        return "it is being planned; " + finalize + " has its children start"
    if task["planning_phase"] == PlanningPhase.FINALIZED:
        look = advise(Action.WHY, named)
        return "it is a plan, and its children are what runs; " + look + " says how they stand"
    if task["kind"] == TaskKind.GROUP and task["item"] is not None:
        return "it is an item, which its loop starts when its turn has come"
    return "it is in the queue already" if status == "queued" else f"it is {status}"


def _describe_awaited(task: Row) -> str:
    """Say what a task waits for that running it now would not bring; empty for a mere time."""
    if task["status"] not in {"idle", "queued"}:
        return ""
    if task["holds"] & Hold.QUESTION:
        return "it waits for an answer: " + advise(Action.ANSWER, task["id"], ANSWER)
    if task["waits_for"] is None:
        return ""
    if task["calls"] is not None:
        look = advise(Action.WHY, task["waits_for"])
        return f"it waits for the run {task['waits_for']}, which it has called; " + look
    target, signals, children = read_awaited(task["waits_for"])
    fixes = [
        f"it waits for the signal {name!r}: " + advise(Action.SIGNAL, target, ("signal", name))
        for name in signals
    ]
    if children:
        look = advise(Action.WHY, task["id"])
        fixes.append("it waits until the tasks that it has made have ended: " + look)
    return join_texts("; or ", fixes)


def _describe_not_retried(work: UnitOfWork, task: Row) -> str:
    """Say why a task is not retried: it has not failed."""
    if task["status"] == "done":
        return "it is done; " + advise(Action.REOPEN, task["id"]) + " does it again"
    return _describe_live_task(work, task) or f"it has not failed; it is {task['status']}"


def _describe_live_task(work: UnitOfWork, task: Row) -> str:
    """Say what makes an open task go on that asks a person, or whose last attempt has failed."""
    named = task["id"]
    if task["holds"] & Hold.QUESTION:
        return "it waits for an answer: " + advise(Action.ANSWER, named, ANSWER)
    if task["holds"] & Hold.APPROVAL:
        return "it has failed, and waits for approval: " + advise(Action.APPROVE, named)
    if task["status"] == "queued" and not task["due"] and _failed_last(work, task):
        now = advise(Action.RUN_NOW, named)
        return "it is tried again by itself; " + now + " does so at once"
    return ""


def _failed_last(work: UnitOfWork, task: Row) -> bool:
    """Whether the last attempt failed; false for a task that has slept or waited since."""
    (row,) = work.tx.read("attempt_records", rows=[(task["id"], task["attempt"])])
    return bool(row["type"] == "task.retrying")


def _describe_not_edited(work: UnitOfWork, operation: EditTask, task: Row) -> str:
    """Say why a task is not edited: it has begun, or the change does not fit its state."""
    named, status = task["id"], task["status"]
    reset = advise(Action.RESET, named)
    if status == "running":
        cancel = advise(Action.CANCEL, named)
        ends = AdviceText(cancel, " ends that, and after ", reset, " it can be changed")
        return "it has started; " + ends
    if status in TERMINAL:
        if _has_begun_dependents(work, task):
            again = advise(Action.REOPEN, named) + " does it and all that needs it again"
            return f"it has ended {status}; " + again + ", and until it starts it can be changed"
        return f"it has ended {status}; after " + reset + " it can be changed"
    for name, spent in (("max_attempts", task["failures"]), ("max_lost", task["lost"])):
        asked = operation.changes.get(name)
        if isinstance(asked, int) and spent >= asked:
            return f"{name} has to be more than the {spent} that it has spent"
    return "it is given a time once its condition was looked at, when all it needs is done"


def _has_begun_dependents(work: UnitOfWork, task: Row) -> bool:
    """Whether a reset would be refused because other tasks have begun from the output."""
    around = work.tx.read("task_by_id", task_id=task["parent_id"] or "")
    if around and around[0]["kind"] == TaskKind.GROUP and around[0]["status"] == "done":
        return True
    found = work.tx.read("kept_for", task_id=task["id"], count=MAX_DEPENDENTS)
    needing = work.tx.read("tasks_by_id", ids=[row["id"] for row in found])
    return any(_has_begun(row) for row in needing if row["parent_id"] != task["id"])


def _has_begun(task: Row) -> bool:
    if task["superseded"]:
        return False
    parts = task["total"] is not None or task["item"] is not None or task["waits_for"] is not None
    under_way = task["kind"] == TaskKind.GROUP and task["status"] == "queued" and parts
    return bool(task["attempt"] or under_way or task["status"] not in {"idle", "queued"})


def _describe_not_reset(task: Row) -> str:
    """Say why a task that is idle or running is not reset."""
    cancel = advise(Action.CANCEL, task["id"])
    if task["status"] == "running":
        return "it is running; " + cancel + " ends that, and then it can be reset"
    if task["planning_phase"] == PlanningPhase.ACTIVE:
        return "it is being planned already"
    if task["planning_phase"] == PlanningPhase.FINALIZED:
        return "it is a plan in progress; " + cancel + " ends it, and then it can be reset"
    return "it is idle already"


def _describe_too_late_to_reset(work: UnitOfWork, task: Row) -> str:
    """Say why a queued or ended task is not reset: other tasks have begun from its output."""
    around = work.tx.read("task_by_id", task_id=task["parent_id"] or "")
    if around and around[0]["kind"] == TaskKind.GROUP and around[0]["status"] == "done":
        named = around[0]["id"]
        told = f"{name_tasks(work.tx, [named])[named]} {named}, which it is part of, is done"
        return f"{told}; " + advise(Action.REOPEN, task["id"]) + " does it again"
    if task["planning_phase"] != PlanningPhase.NONE:
        told = "tasks that need it, or a part of it, have begun"
        again = advise(Action.REOPEN, task["id"])
        return f"{told}; " + again + " runs it, and those after it, again"
    return "tasks that need it have started; retry from it instead"


def describe_not_waiting(task: Task, *, answered: bool) -> str:
    """Say why a task takes no answer now, or neither approval nor rejection."""
    if task.terminal:
        return f"it has ended {task.status}, and waits for nobody"
    if answered:
        return "it asks nothing now: nothing was asked, or it was answered" + _describe_wait(task)
    if task.kind is not TaskKind.APPROVAL:
        return "it is not waiting for approval" + _describe_wait(task)
    look = advise(Action.WHY, task.id) + " tells more"
    if task.blocked:
        return "it cannot be settled yet: what it needs is not done; " + look
    if task.run_holds & Hold.PAUSED:
        look = advise(Action.RESUME, task.run_id or "") + " has it go on"
    held = ", ".join(task.run_holds.names)
    return f"it cannot be settled yet: its run is held: {held}; " + look


def _describe_wait(task: Task) -> str:
    if task.holds & Hold.QUESTION:
        return "; it waits for an answer: " + advise(Action.ANSWER, task.id, ANSWER)
    if task.holds & Hold.APPROVAL or task.kind is TaskKind.APPROVAL:
        return "; it waits for approval: " + advise(Action.APPROVE, task.id)
    return ""
