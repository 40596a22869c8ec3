"""Statuses that keep a task from being claimed, and what would change them.

An open plan waits to be finalized, or for the children that hold it up.
"""

from __future__ import annotations

from holdfast.engine.explain.explanation import describe_stored_error
from holdfast.engine.explain.why_missing_value import retry_for_value
from holdfast.engine.read.task_state import read_tasks_with_state
from holdfast.engine.state import child_run_refusals
from holdfast.engine.state.control_refusals import describe_superseded
from holdfast.model.advice import Action, AdviceText, advise, join_texts
from holdfast.model.status import Hold, PlanningPhase, Status, TaskKind
from holdfast.model.task import Task
from holdfast.store.database import Transaction

SHOWN = 5


def explain_plan(tx: Transaction, plan: Task) -> tuple[str, str]:
    """Explain an open plan, and return a call that brings it on."""
    children = _read_children(tx, plan)
    if plan.planning_phase is PlanningPhase.ACTIVE:
        return _explain_open_plan(plan, children)
    if (waits := explain_wait(tx, plan.id)) is not None:
        return waits
    broken = [each for each in children if each.status in {Status.FAILED, Status.CANCELLED}]
    # A blocked or stalled child waits for other children of the plan, which hold the plan up.
    moving = [each for each in children if not each.terminal and not each.blocked]
    shown = [*broken, *(each for each in moving if not each.run_holds & Hold.FAILING)]
    told = ", ".join(f"{each.title} {each.id} ({each.state})" for each in shown[:SHOWN])
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    held_up = f", held up by {told}{more}" if told else ""
    return f"{plan.state}{held_up}", _next_step(tx, shown)


def explain_wait(tx: Transaction, task_id: str) -> tuple[str, str] | None:
    """Say that an idle task waits for an active plan around it; None if there is no such plan."""
    found = tx.read("open_plans_around", task_id=task_id)
    if not found:
        return None
    plan, title = found[0]["id"], found[0]["title"]
    return f"it waits until {title} {plan} is finalized", advise(Action.FINALIZE_PLAN, plan)


def _explain_open_plan(plan: Task, children: list[Task]) -> tuple[str, str]:
    ready = [each for each in children if each.status is Status.IDLE]
    if not ready:
        fix = advise(Action.ADD_CHILD, plan.id)
        return "it is being planned, and no child of it waits yet", fix
    count = "1 child waits" if len(ready) == 1 else f"{len(ready)} children wait"
    detail = f"it is being planned: {count} until it is finalized"
    return detail, advise(Action.FINALIZE_PLAN, plan.id)


def _read_children(tx: Transaction, plan: Task) -> list[Task]:
    return read_tasks_with_state(tx, tx.read("children_in_order", parent_id=plan.id))


def _read_broken_children(tx: Transaction, plan: Task) -> list[Task]:
    """The failed children of a plan or group that failed; the cancelled ones if none has failed."""
    parent = plan.kind is TaskKind.GROUP or plan.planning_phase is not PlanningPhase.NONE
    if not parent or plan.status is not Status.FAILED:
        return []
    ended = [each for each in _read_children(tx, plan) if each.terminal]
    failed = [each for each in ended if each.status is Status.FAILED]
    return failed or [each for each in ended if each.status is Status.CANCELLED]


def _name_children(children: list[Task]) -> str:
    told = [
        AdviceText(
            f"{each.title} {each.id} ({each.state}", describe_stored_error(": ", each.error), ")"
        )
        for each in children[:SHOWN]
    ]
    more = f" and {len(children) - SHOWN} more" if len(children) > SHOWN else ""
    return join_texts(", ", told) + more


def _next_step(tx: Transaction, shown: list[Task]) -> str:
    """The call for the first child that only a person can move."""
    for child in shown:
        if child.status in {Status.FAILED, Status.CANCELLED}:
            return advise(Action.RETRY, child.id)
        if child.planning_phase is PlanningPhase.ACTIVE:
            return _explain_open_plan(child, _read_children(tx, child))[1]
        if child.status is Status.IDLE and child.planning_phase is PlanningPhase.NONE:
            return advise(Action.ENQUEUE, child.id)
    return advise(Action.WHY, shown[0].id) if shown else ""


def explain_status(tx: Transaction, task: Task) -> tuple[str, str]:
    if is_open_plan(task):
        return explain_plan(tx, task)
    if task.superseded:
        return describe_superseded(tx, task.id, task.run_id)
    match task.status:
        case Status.IDLE:
            return _explain_idle(tx, task)
        case Status.RUNNING:
            return f"attempt {task.attempt} is running", ""
        case Status.FAILED | Status.CANCELLED:
            broken = _read_broken_children(tx, task)
            because = f", because of {_name_children(broken)}" if broken else ""
            again = retry_for_value(tx, [task, *broken]) or advise(Action.RETRY, task.id)
            fix = child_run_refusals.fix_or_retry(tx, task.run_id, again)
            return AdviceText(f"it has ended {task.status}", because), fix
        case _:
            return f"it is {task.status}", ""


def _explain_idle(tx: Transaction, task: Task) -> tuple[str, str]:
    if task.kind is TaskKind.GROUP and task.item is not None:
        return "its loop starts it when its turn has come", ""
    if task.kind is TaskKind.APPROVAL:
        return "it is not in the queue, and can be settled all the same", ""
    alone = ("it is not in the queue", advise(Action.ENQUEUE, task.id))
    return explain_wait(tx, task.id) or alone


def is_open_plan(task: Task) -> bool:
    return task.planning_phase is not PlanningPhase.NONE and not task.terminal
