"""Plans: a task gets children, which run as a chain or as a graph once the plan is finalized."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain

from holdfast.engine.core.operation import AdvancePlan, FinalizePlan, ReorderPlan, StartPlanning
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.task_state import name_tasks
from holdfast.engine.state import reopen, superseded_needs
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, advise
from holdfast.model.effect import read_awaited
from holdfast.model.event import read_event_data
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import TERMINAL, PlanningPhase
from holdfast.model.text import digest
from holdfast.store.database import Row


def start_planning(operation: StartPlanning, work: UnitOfWork) -> TransitionResult:
    found = work.tx.read("task_by_id", task_id=operation.task_id)
    phase = PlanningPhase(found[0]["planning_phase"]) if found else PlanningPhase.NONE
    rows = work.change_tasks("start_planning", task_id=operation.task_id, actor=operation.actor)
    if not rows:
        refused = _refuse(work, operation.task_id, _describe_not_planned(operation.task_id, phase))
        again = phase is PlanningPhase.ACTIVE and refused.status == "idle"
        return replace(refused, repeated=again)
    if phase is PlanningPhase.FINALIZED:
        _forget_order(work, operation.task_id, operation.actor)
    return TransitionResult(ok=True, status="idle")


def _describe_not_planned(task_id: str, phase: PlanningPhase) -> str:
    match phase:
        case PlanningPhase.NONE:
            return "only an idle task without a run can be planned"
        case PlanningPhase.ACTIVE:
            end = advise(Action.FINALIZE_PLAN, task_id) + " ends that"
            return "it is being planned already; " + end
        case PlanningPhase.FINALIZED:
            return "it has been planned, and its children are in the queue"


def reorder_plan(operation: ReorderPlan, work: UnitOfWork) -> TransitionResult:
    """Put the idle children of an active plan in another order, which names each of them once."""
    found = work.tx.read("task_by_id", task_id=operation.task_id)
    if not found or found[0]["planning_phase"] != "active":
        return _refuse(work, operation.task_id, "only a plan that is being made can be reordered")
    children = work.tx.read("plan_children", task_id=operation.task_id)
    _check_order(operation.order, _idle_children(children))
    places = [(child, place) for place, child in enumerate(operation.order)]
    named = {"task_id": operation.task_id, "actor": operation.actor}
    work.change_tasks("reorder_children", rows=places, **named)
    return TransitionResult(ok=True, status="idle")


def _check_order(order: Sequence[str], children: Sequence[str]) -> None:
    for each in order:
        if each not in children:
            raise InvalidInput("order", f"{each} is no idle child of this plan")
    if missing := [each for each in children if each not in order]:
        reason = f"name every child of the plan that has not begun; {', '.join(missing)} is missing"
        raise InvalidInput("order", reason)


def reset_tasks_below(work: UnitOfWork, plan_id: str, actor: str) -> None:
    """Reset all tasks below a plan that was reset, as they were before it was finalized."""
    rows = work.change_tasks("reset_below", task_id=plan_id, actor=actor)
    reopen.supersede_children(work, rows, actor)
    _forget_order(work, plan_id, actor)
    work.change_tasks("block_children", ids=[plan_id], actor=actor)
    work.change_tasks("block_dependents", ids=[row["entity"] for row in rows], actor=actor)


def _forget_order(work: UnitOfWork, plan_id: str, actor: str) -> None:
    """Delete the order of a plan that is made anew: with another order it could form a cycle."""
    work.tx.run("forget_order", task_id=plan_id)
    work.change_tasks("unblock_children", task_id=plan_id, actor=actor)


def finalize_plan(operation: FinalizePlan, work: UnitOfWork) -> TransitionResult:
    named = {"task_id": operation.task_id, "actor": operation.actor}
    found = work.tx.read("task_by_id", task_id=operation.task_id)
    if not found or found[0]["planning_phase"] != PlanningPhase.ACTIVE:
        return _answer_not_finalized(work, operation)
    refuse_needs_on_parts(work, operation.task_id, _read_needs(work, operation.task_id))
    children = work.tx.read("plan_children", task_id=operation.task_id)
    needs = _needs_to_insert(work, operation, children)
    _refuse_cycle(work, [*needs, *_existing_waits(work, operation.task_id, children)])
    if not work.change_tasks("finalize_plan", shape=_name_shape(operation), **named):
        return _answer_not_finalized(work, operation)
    if needs:
        # A child may have run before it was planned: its needs count from the time it is queued.
        versions = {row["id"]: row["version"] for row in children}
        since = [(child, need, versions[child] + 1) for child, need in needs]
        work.tx.run("insert_needs", rows=since)
    work.tx.run("inherit_needs", ids=[operation.task_id])
    work.change_tasks("queue_children", **named)
    inherit_needs(work, [operation.task_id], operation.actor)
    return TransitionResult(ok=True, status="idle")


def advance_plan(operation: AdvancePlan, work: UnitOfWork) -> TransitionResult:
    """Advance a plan or a waiting task: settle it, wake it, or replace its superseded needs.

    A plan is settled if nothing below it is open; a task is woken if its signal is there.
    """
    found = work.tx.read("task_by_id", task_id=operation.task_id)
    if not found or not _look_again_at(work, found[0], operation.actor):
        return _refuse(work, operation.task_id, "it is no plan; its run, or its worker, moves it")
    return TransitionResult(ok=True, status=found[0]["status"])


def _look_again_at(work: UnitOfWork, task: Row, actor: str) -> bool:
    freed = superseded_needs.replace_needs_of(work, task["id"], actor)
    reopen.note_tasks_to_evaluate(work, freed or ())
    awaited = read_awaited(task["waits_for"] or "")
    work.awaited |= {(task["waits_for"], awaited.target, name) for name in awaited.signals}
    below = awaited.children or task["planning_phase"] != PlanningPhase.NONE
    if below:
        work.groups_to_settle.add(task["id"])
    return below or bool(awaited.signals) or freed is not None


def inherit_needs(work: UnitOfWork, plans: Sequence[str], actor: str) -> None:
    """Make all tasks below some plans need what the plans need; failed plans hold them."""
    work.tx.run("inherit_needs", ids=plans)
    work.change_tasks("block_children", ids=plans, actor=actor)
    work.groups_to_settle.update(plans)


def refuse_needs_on_parts(work: UnitOfWork, plan_id: str, needs: Sequence[str]) -> None:
    """Refuse needs of a plan on its own parts: each part inherits them, and would need itself."""
    for row in work.tx.read("parts_among", task_id=plan_id, ids=needs) if needs else ():
        told = f"{row['part_id']} is a part of {plan_id}, which waits for its parts without a need"
        raise InvalidInput("needs", f"{told}: that is a cycle")


def _read_needs(work: UnitOfWork, task_id: str) -> list[str]:
    return [row["need_id"] for row in work.tx.read("needs_of", task_id=task_id)]


def rerun_plan(work: UnitOfWork, task_id: str, actor: str) -> bool:
    """Run a plan that has ended again, with all tasks below it and all that need any of these.

    The plans around it go on. Parts that need another part begin again as its dependents.
    """
    rows = work.change_tasks("rerun_plan", task_id=task_id, actor=actor)
    if not rows:
        return False
    around = reopen.reopen_groups_around(work, [task_id], actor)
    parts = [row["id"] for row in work.tx.read("ended_parts", task_id=task_id)]
    reopen.reopen_dependents(work, [task_id, *around, *parts], actor)
    again = work.change_tasks("rerun_parts", ids=parts, actor=actor)
    reopen.supersede_children(work, again, actor)
    work.change_tasks("lift_failing_below", ids=[task_id], actor=actor)
    # All parts of the plan may have been deleted, so that nothing else would settle it.
    work.groups_to_settle.add(task_id)
    if rows[0]["parent_id"] is not None:
        reopen.retry_task_tree(work, task_id, actor, rows)
    return True


def _idle_children(children: Sequence[Row]) -> list[str]:
    return [row["id"] for row in children if row["status"] == "idle"]


def _needs_to_insert(
    work: UnitOfWork, operation: FinalizePlan, children: Sequence[Row]
) -> list[tuple[str, str]]:
    """The needs of each child that has not begun: the child before it, or those of the graph."""
    if operation.graph is None:
        own = work.tx.read("needs_among", ids=[row["id"] for row in children])
        return list(_chain_needs(children, {row["task_id"] for row in own}))
    known = {row["id"] for row in children}
    waiting = set(_idle_children(children))
    for child, need in operation.graph:
        for each in (child, need):
            if each not in known:
                raise InvalidInput("graph", f"{each} is no child of this plan")
        if child not in waiting:
            raise InvalidInput("graph", f"{child} has begun, and can be made to wait for nothing")
    return list(operation.graph)


def _chain_needs(children: Sequence[Row], with_own: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """A child needs the one before it, and every earlier one that has begun but is not done.

    A child that has begun did so by itself, so it does not stand for the children before it, and
    neither does a child `with_own` needs on other children, which waits for exactly these.
    """
    unfinished: list[str] = []
    before: str | None = None
    for row in children:
        child = row["id"]
        if row["status"] == "idle" and child not in with_own:
            needs = [*unfinished, *([] if before is None else [before])]
            yield from ((child, need) for need in dict.fromkeys(needs))
            unfinished = []
        unfinished += [] if row["status"] == "done" else [child]
        before = child


def _existing_waits(work: UnitOfWork, plan: str, children: Sequence[Row]) -> list[tuple[str, str]]:
    """The pairs of tasks that wait for each other already, in the plan and outside it.

    A plan waits for its children, and its children will inherit its needs.
    """
    ids = [row["id"] for row in children]
    found = work.tx.read("needs_behind", ids=[plan, *ids])
    before = [(row["task_id"], row["need_id"]) for row in found]
    inherited = [need for task, need in before if task == plan]
    return [
        *before,
        *((plan, row["id"]) for row in children if row["status"] != "done"),
        *(
            (child, need)
            for child in _idle_children(children)
            for need in inherited
            if child != need
        ),
    ]


def _refuse_cycle(work: UnitOfWork, graph: Sequence[tuple[str, str]]) -> None:
    waiting: dict[str, set[str]] = {}
    for child, need in graph:
        waiting.setdefault(child, set()).add(need)
        waiting.setdefault(need, set())
    while ready := {name for name, needs in waiting.items() if not needs}:
        waiting = {name: needs - ready for name, needs in waiting.items() if name not in ready}
    if waiting:
        told = _describe_cycle(work, _find_cycle(waiting))
        raise InvalidInput("graph", f"the needs form a cycle: {told}")


def _find_cycle(waiting: dict[str, set[str]]) -> list[str]:
    """One cycle among tasks that each wait for another of them."""
    path = [min(waiting)]
    while (following := min(waiting[path[-1]])) not in path:
        path.append(following)
    return path[path.index(following) :]


def _describe_cycle(work: UnitOfWork, cycle: Sequence[str]) -> str:
    titles = name_tasks(work.tx, cycle)
    first, *rest = [f"{titles[each]} {each}" for each in cycle]
    awaited = ", which waits for ".join([*rest, first]) if rest else "itself"
    return f"{first} waits for {awaited}"


def _answer_not_finalized(work: UnitOfWork, operation: FinalizePlan) -> TransitionResult:
    found = work.tx.read("task_by_id", task_id=operation.task_id)
    if found and found[0]["planning_phase"] == "finalized":
        return _answer_finalized_before(work, operation, found[0])
    if found and found[0]["planning_phase"] == "active":
        detail = "there is no idle child in it; create some with it as their parent first"
    else:
        begin = advise(Action.START_PLANNING, operation.task_id)
        detail = "it is not being planned; " + begin + " begins"
    return _refuse(work, operation.task_id, detail)


def _answer_finalized_before(
    work: UnitOfWork, operation: FinalizePlan, plan: Row
) -> TransitionResult:
    """Answer a repeated finalize with success if its shape is the same.

    An imported plan has no shape.
    """
    found = work.tx.read("last_planned", task_id=operation.task_id)
    shape = read_event_data(found[0]["data"]).get("shape") if found else None
    if shape in {None, _name_shape(operation)}:
        return TransitionResult(ok=True, repeated=True, status=plan["status"])
    kind, _, needs = str(shape).partition(" ")
    told = "a chain" if kind == "chain" else f"a graph of {needs.partition(' ')[0]} needs"
    detail = (
        f"it was finalized before, as {told}; " + advise_new_plan(plan) + " has it planned anew"
    )
    return refuse(Refusal.INVALID_TRANSITION, plan["status"], detail)


def advise_new_plan(plan: Row) -> str:
    """The calls after which a finalized plan is made anew, and its parts have no order."""
    reset = advise(Action.RESET, plan["id"])
    if plan["status"] in TERMINAL:
        return reset
    return advise(Action.CANCEL, plan["id"]) + " and then " + reset


def _name_shape(operation: FinalizePlan) -> str:
    """A short name of the wanted needs, the same for the same needs in another order."""
    if operation.graph is None:
        return "chain"
    pairs = sorted(set(operation.graph))
    return f"graph {len(pairs)} {digest(*chain.from_iterable(pairs))}"


def _refuse(work: UnitOfWork, task_id: str, detail: str) -> TransitionResult:
    found: list[Row] = work.tx.read("task_by_id", task_id=task_id)
    if not found:
        return refuse(Refusal.NOT_FOUND, None)
    return refuse(Refusal.INVALID_TRANSITION, found[0]["status"], detail)
