"""Planning: a task becomes a plan of children, which run as a chain or as a graph."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine import reopening
from holdfast.engine.answers import refuse
from holdfast.engine.group import Group
from holdfast.engine.operations import FinalizePlan, StartPlanning
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
    rows = group.change_tasks("start_planning", task_id=operation.task_id, actor=operation.actor)
    if rows:
        return TransitionResult(ok=True, status="idle")
    found = group.tx.read("task_by_id", task_id=operation.task_id)
    phase = found[0]["planning_phase"] if found else PlanningPhase.NONE
    return _refused(group, operation.task_id, _UNPLANNED[PlanningPhase(phase)])


def finalize(operation: FinalizePlan, group: Group) -> TransitionResult:
    named = {"task_id": operation.task_id, "actor": operation.actor}
    found = group.tx.read("plan_children", task_id=operation.task_id)
    versions = {row["id"]: row["version"] for row in found}
    needs = _needs(operation, list(versions))
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
        reopening.reopen_around(group, task_id, actor)
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
    _refuse_cycle(operation.graph)
    return list(operation.graph)


def _refuse_cycle(graph: tuple[tuple[str, str], ...]) -> None:
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
    return _refused(group, operation.task_id, "it is not being planned, or its plan is empty")


def _refused(group: Group, task_id: str, detail: str) -> TransitionResult:
    found: list[Row] = group.tx.read("task_by_id", task_id=task_id)
    if not found:
        return refuse(Refusal.NOT_FOUND, None)
    return refuse(Refusal.INVALID_TRANSITION, found[0]["status"], detail)
