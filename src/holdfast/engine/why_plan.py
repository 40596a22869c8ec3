"""What a plan waits for: to be finalized, or the children that hold it up."""

from __future__ import annotations

from holdfast.engine.looking import look_at
from holdfast.model.status import Hold, PlanningPhase, Status
from holdfast.model.task import Task
from holdfast.store.database import Transaction

SHOWN = 5


def explain_plan(tx: Transaction, plan: Task) -> tuple[str, str]:
    """How an open plan stands, and what would bring it on."""
    children = _children(tx, plan)
    if plan.planning_phase is PlanningPhase.ACTIVE:
        return _being_made(plan, children)
    if (waits := explain_wait(tx, plan.id)) is not None:
        return waits
    broken = [each for each in children if each.status in {Status.FAILED, Status.CANCELLED}]
    # Who is blocked or stalled waits for others of the plan, and they are what holds it up.
    moving = [each for each in children if not each.terminal and not each.blocked]
    shown = [*broken, *(each for each in moving if not each.run_holds & Hold.FAILING)]
    told = ", ".join(f"{each.title} {each.id} ({each.state})" for each in shown[:SHOWN])
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    held_up = f", held up by {told}{more}" if told else ""
    return f"{plan.state}{held_up}", _next_step(tx, shown)


def explain_wait(tx: Transaction, task_id: str) -> tuple[str, str] | None:
    """That what is idle waits for a plan around it which is being made, and what ends that."""
    found = tx.read("open_plans_around", task_id=task_id)
    if not found:
        return None
    plan, title = found[0]["id"], found[0]["title"]
    return f"it waits until {title} {plan} is finalized", f'hf.tasks.finalize_plan("{plan}")'


def _being_made(plan: Task, children: list[Task]) -> tuple[str, str]:
    ready = [each for each in children if each.status is Status.IDLE]
    if not ready:
        fix = f'hf.tasks.create(NewTask(title=…, parent="{plan.id}", enqueue=False))'
        return "it is being planned, and no child of it waits yet", fix
    count = "1 child waits" if len(ready) == 1 else f"{len(ready)} children wait"
    detail = f"it is being planned: {count} until it is finalized"
    return detail, f'hf.tasks.finalize_plan("{plan.id}")'


def _children(tx: Transaction, plan: Task) -> list[Task]:
    return look_at(tx, tx.read("children_in_order", parent_id=plan.id))


def _next_step(tx: Transaction, shown: list[Task]) -> str:
    """What to do about the first child that moves by nobody but a person."""
    for child in shown:
        if child.status in {Status.FAILED, Status.CANCELLED}:
            return f'hf.tasks.retry("{child.id}")'
        if child.planning_phase is PlanningPhase.ACTIVE:
            return _being_made(child, _children(tx, child))[1]
        if child.status is Status.IDLE and child.planning_phase is PlanningPhase.NONE:
            return f'hf.tasks.enqueue("{child.id}")'
    return f'hf.why("{shown[0].id}")' if shown else ""
