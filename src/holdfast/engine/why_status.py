"""What the status of a task has to do with it not being claimed, and what would change that."""

from __future__ import annotations

from holdfast.engine import ended_calls
from holdfast.engine.successors import tell_over
from holdfast.engine.why_missing import retry_for_values
from holdfast.engine.why_plan import explain_plan, explain_wait
from holdfast.model.status import Kind, PlanningPhase, Status
from holdfast.model.task import Task
from holdfast.store.database import Transaction


def explain_status(tx: Transaction, task: Task) -> tuple[str, str]:
    if is_open_plan(task):
        return explain_plan(tx, task)
    if task.superseded:
        return tell_over(tx, task.id, task.run_id)
    match task.status:
        case Status.IDLE:
            return _explain_idle(tx, task)
        case Status.RUNNING:
            return f"attempt {task.attempt} is running", ""
        case Status.FAILED | Status.CANCELLED:
            again = retry_for_values(tx, [task]) or f'hf.tasks.retry("{task.id}")'
            return f"it has ended {task.status}", ended_calls.fix(tx, task.run_id, again)
        case _:
            return f"it is {task.status}", ""


def _explain_idle(tx: Transaction, task: Task) -> tuple[str, str]:
    if task.kind is Kind.GROUP and task.item is not None:
        return "its loop starts it when its turn has come", ""
    if task.kind is Kind.APPROVAL:
        return "it is not in the queue, and can be settled all the same", ""
    alone = ("it is not in the queue", f'hf.tasks.enqueue("{task.id}")')
    return explain_wait(tx, task.id) or alone


def is_open_plan(task: Task) -> bool:
    return task.planning_phase is not PlanningPhase.NONE and not task.terminal
