"""Planning: a task becomes a plan of children, which run as a chain or as a graph."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine import reopening
from holdfast.engine.answers import refuse
from holdfast.engine.group import Group
from holdfast.engine.operations import FinalizePlan, ReorderPlan, StartPlanning
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import PlanningPhase
from holdfast.store.database import Row

_UNPLANNED = {
    PlanningPhase.NONE: "only an idle task without a run can be planned",
    PlanningPhase.ACTIVE: "it is being planned already; hf.tasks.finalize_plan(…) ends that",
    PlanningPhase.FINALIZED: "it has been planned, and its children are in the queue",
}


def start(operation: StartPlanning, group: Group) -> TransitionResult:
    found = group.tx.read("task_by_id", task_id=operation.task_id)
    phase = PlanningPhase(found[0]["planning_phase"]) if found else PlanningPhase.NONE
    rows = group.change_tasks("start_planning", task_id=operation.task_id, actor=operation.actor)
    if not rows:
        return _refused(group, operation.task_id, _UNPLANNED[phase])
    if phase is PlanningPhase.FINALIZED:
        _forget_order(group, operation.task_id, operation.actor)
    return TransitionResult(ok=True, status="idle")


def reorder(operation: ReorderPlan, group: Group) -> TransitionResult:
    """Put the children of an open plan in another order; all of them are named, each once."""
    found = group.tx.read("task_by_id", task_id=operation.task_id)
    if not found or found[0]["planning_phase"] != "active":
        return _refused(group, operation.task_id, "only a plan that is being made can be reordered")
    children = group.tx.read("plan_children", task_id=operation.task_id)
    _check_order(operation.order, [row["id"] for row in children])
    places = [(child, place) for place, child in enumerate(operation.order)]
    named = {"task_id": operation.task_id, "actor": operation.actor}
    group.change_tasks("reorder_children", rows=places, **named)
    return TransitionResult(ok=True, status="idle")


def _check_order(order: Sequence[str], children: Sequence[str]) -> None:
    for each in order:
        if each not in children:
            raise InvalidInput("order", f"{each} is no idle child of this plan")
    if missing := [each for each in children if each not in order]:
        reason = f"name every child of the plan that has not begun; {', '.join(missing)} is missing"
        raise InvalidInput("order", reason)


def take_back(group: Group, plan_id: str, actor: str) -> None:
    """Bring all below a plan that was reset back to where it was before it was finalized."""
    rows = group.change_tasks("reset_below", task_id=plan_id, actor=actor)
    reopening.supersede(group, rows, actor)
    _forget_order(group, plan_id, actor)
    group.change_tasks("block_children", ids=[plan_id], actor=actor)


def _forget_order(group: Group, plan_id: str, actor: str) -> None:
    """A plan that is made anew may have another order: the old one would close a circle with it."""
    group.tx.run("forget_order", task_id=plan_id)
    group.change_tasks("unblock_children", task_id=plan_id, actor=actor)


def finalize(operation: FinalizePlan, group: Group) -> TransitionResult:
    named = {"task_id": operation.task_id, "actor": operation.actor}
    found = group.tx.read("plan_children", task_id=operation.task_id)
    versions = {row["id"]: row["version"] for row in found}
    needs = _needs(operation, list(versions))
    _refuse_cycle([*needs, *_waits_before(group, operation.task_id, list(versions))])
    rows = group.change_tasks("finalize_plan", **named)
    if not rows:
        return _finalized_before(group, operation)
    if needs:
        # A child may have run before it was planned: it needs them from the time it is queued.
        since = [(child, need, versions[child] + 1) for child, need in needs]
        group.tx.run("insert_needs", rows=since)
    group.tx.run("inherit_needs", ids=[operation.task_id])
    group.change_tasks("queue_children", agent=rows[0]["agent"], **named)
    pass_on(group, [operation.task_id], operation.actor)
    return TransitionResult(ok=True, status="idle")


def pass_on(group: Group, plans: Sequence[str], actor: str) -> None:
    """Let all below some plans wait for what those wait for, and stand still if they fail."""
    group.tx.run("inherit_needs", ids=plans)
    group.change_tasks("block_children", ids=plans, actor=actor)
    group.parents.update(plans)


def rerun(group: Group, task_id: str, actor: str) -> bool:
    """Run a plan that has ended again, with all below it; those around it go on."""
    rows = group.change_tasks("rerun_plan", task_id=task_id, actor=actor)
    if not rows:
        return False
    _rerun_children(group, task_id, actor)
    if rows[0]["parent_id"] is not None:
        reopening.reopen_around(group, [task_id], actor)
        reopening.retry_tree(group, task_id, actor, rows)
    return True


def _rerun_children(group: Group, task_id: str, actor: str) -> None:
    rows = group.change_tasks("rerun_children", task_id=task_id, actor=actor)
    group.change_tasks("lift_failing_below", ids=[task_id], actor=actor)
    for row in rows:
        if row["planning_phase"] == PlanningPhase.FINALIZED:
            _rerun_children(group, row["entity"], actor)


def _needs(operation: FinalizePlan, children: list[str]) -> list[tuple[str, str]]:
    """Each child needs the one before it, or what the graph says."""
    if operation.graph is None:
        return list(zip(children[1:], children, strict=False))
    for child, need in operation.graph:
        for each in (child, need):
            if each not in children:
                raise InvalidInput("graph", f"{each} is no idle child of this plan")
    return list(operation.graph)


def _waits_before(group: Group, plan: str, children: list[str]) -> list[tuple[str, str]]:
    """Who waits for whom already, in the plan and outside it.

    A plan waits for its children, and they will wait for whatever it needs.
    """
    found = group.tx.read("needs_behind", ids=[plan, *children])
    before = [(row["task_id"], row["need_id"]) for row in found]
    inherited = [need for task, need in before if task == plan]
    return [
        *before,
        *((plan, child) for child in children),
        *((child, need) for child in children for need in inherited if child != need),
    ]


def _refuse_cycle(graph: Sequence[tuple[str, str]]) -> None:
    waiting: dict[str, set[str]] = {}
    for child, need in graph:
        waiting.setdefault(child, set()).add(need)
        waiting.setdefault(need, set())
    while ready := {name for name, needs in waiting.items() if not needs}:
        waiting = {name: needs - ready for name, needs in waiting.items() if name not in ready}
    if waiting:
        raise InvalidInput("graph", f"the needs form a cycle among {', '.join(sorted(waiting))}")


def _finalized_before(group: Group, operation: FinalizePlan) -> TransitionResult:
    found = group.tx.read("task_by_id", task_id=operation.task_id)
    if found and found[0]["planning_phase"] == "finalized":
        return TransitionResult(ok=True, repeated=True, status=found[0]["status"])
    if found and found[0]["planning_phase"] == "active":
        detail = "there is no idle child in it; create some with it as their parent first"
    else:
        detail = f'it is not being planned; hf.tasks.start_planning("{operation.task_id}") begins'
    return _refused(group, operation.task_id, detail)


def _refused(group: Group, task_id: str, detail: str) -> TransitionResult:
    found: list[Row] = group.tx.read("task_by_id", task_id=task_id)
    if not found:
        return refuse(Refusal.NOT_FOUND, None)
    return refuse(Refusal.INVALID_TRANSITION, found[0]["status"], detail)
