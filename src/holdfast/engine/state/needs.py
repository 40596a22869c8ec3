"""Needs between existing tasks: added and removed by people and programs."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from holdfast.engine.core.operation import BlockTask, UnblockTask
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.task_state import name_tasks
from holdfast.engine.state import (
    control_refusals,
    need_cycles,
    plans,
    reopen,
    superseded_needs,
)
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, AdviceText, advise
from holdfast.model.event import read_event_data
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import PlanningPhase, TaskKind
from holdfast.store.database import Row

_WAITING_STATUSES = frozenset({"idle", "queued"})


def block_task(operation: BlockTask, work: UnitOfWork) -> TransitionResult:
    task = _find_task(work, operation.task_id)
    if task is None:
        return refuse(Refusal.NOT_FOUND, None)
    _check_needs(work, operation, task)
    known = {row["need_id"] for row in work.tx.read("needs_of", task_id=operation.task_id)}
    new = [need for need in operation.on if need not in known]
    if not new and task["status"] in _WAITING_STATUSES:
        return _answer_unchanged(task)
    if task["planning_phase"] == PlanningPhase.ACTIVE:
        plans.refuse_needs_on_parts(work, operation.task_id, new)
    rows = work.change_tasks(
        "block_task",
        task_id=operation.task_id,
        ids=new,
        linked=json.dumps(new, separators=(",", ":")),
        actor=operation.actor,
    )
    if not rows:
        return control_refusals.refuse_task(work, operation, task, str(task["status"]))
    _insert_links(work, task, new, rows[0]["version"])
    if task["planning_phase"] == PlanningPhase.FINALIZED:
        plans.inherit_needs(work, [operation.task_id], operation.actor)
    return TransitionResult(ok=True, status=rows[0]["status"])


def _check_needs(work: UnitOfWork, operation: BlockTask, task: Row) -> None:
    needed = {row["id"]: row for row in work.tx.read("lock_needed", ids=operation.on)}
    _refuse_unknown(operation.on, needed)
    for need in operation.on:
        if needed[need]["run_id"] != task["run_id"]:
            raise InvalidInput("needs", f"{need} belongs to another run than {task['id']}")
        superseded_needs.refuse_superseded_need(needed[need])
    if (reason := need_cycles.describe_cycle(work, operation.task_id, operation.on)) is not None:
        raise InvalidInput("needs", reason)


def _refuse_unknown(needs: Sequence[str], known: Collection[str]) -> None:
    for need in needs:
        if need not in known:
            raise InvalidInput("needs", f"{need} is not a task of this store")


def _insert_links(work: UnitOfWork, task: Row, needs: Sequence[str], version: int) -> None:
    """Store new needs with the version that added them: its event says that it was done by hand.

    The needs of a lone task that has never run count from version 1, so that a reset of its plan
    keeps them.
    """
    since = 1 if task["run_id"] is None and not task["attempt"] else version
    work.tx.run("insert_needs", rows=[(task["id"], need, since) for need in needs])
    if task["run_id"] is not None:
        # A needed task that a step made may have failed, and counts for the run from now on.
        work.runs_with_failure.add(task["run_id"])
        work.runs_to_settle.add(task["run_id"])


def unblock_task(operation: UnblockTask, work: UnitOfWork) -> TransitionResult:
    task = _find_task(work, operation.task_id)
    if task is None:
        return refuse(Refusal.NOT_FOUND, None)
    if operation.on:
        known = work.tx.read("tasks_by_id", ids=operation.on)
        _refuse_unknown(operation.on, {row["id"] for row in known})
    links = work.tx.read("links_of", task_id=operation.task_id)
    asked = [row for row in links if operation.on is None or row["need_id"] in operation.on]
    kept = (
        [row for row in asked if not may_be_removed(work, task, row)] if operation.by_hand else []
    )
    gone = [row["need_id"] for row in asked if row not in kept]
    if operation.on is None:
        # All needs were to be removed: of those that stay, only open ones are worth a refusal.
        kept = [] if gone else [row for row in kept if row["status"] != "done"]
    if kept and task["status"] in _WAITING_STATUSES:
        detail = _describe_kept_link(work, task, min(kept, key=lambda row: row["status"] == "done"))
        return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)
    return _delete_links(operation, work, task, gone)


def _delete_links(
    operation: UnblockTask, work: UnitOfWork, task: Row, gone: Sequence[str]
) -> TransitionResult:
    if not gone and task["status"] in _WAITING_STATUSES:
        return _answer_unchanged(task)
    named = {"task_id": operation.task_id, "ids": gone}
    rows = work.change_tasks("unblock_task", actor=operation.actor, **named)
    if not rows:
        return control_refusals.refuse_task(work, operation, task, "queued")
    work.tx.run("delete_needs", **named)
    if task["run_id"] is not None:
        reopen.lift_failing_run(work, task["run_id"], operation.actor)
    reopen.note_tasks_to_evaluate(work, rows)
    return TransitionResult(ok=True, status=task["status"])


def may_be_removed(work: UnitOfWork, task: Row, link: Row) -> bool:
    """Whether a need was added by hand, or closes a cycle, so that it could never be met.

    The first needs of a lone task were given by hand; the order of a plan came later.
    """
    if link["need_id"] in read_event_data(link["data"]).get("linked", ()):
        return True
    if task["run_id"] is None and link["since"] == 1:
        return True
    return need_cycles.describe_cycle(work, task["id"], [link["need_id"]]) is not None


def _describe_kept_link(work: UnitOfWork, task: Row, link: Row) -> str:
    """Say that a need comes from the workflow or plan, and what meets or removes it instead."""
    need = link["need_id"]
    whose = "plan" if task["run_id"] is None else "workflow"
    told = f"its {whose} has it wait for {name_tasks(work.tx, [need])[need]} {need}; "
    if link["kind"] == TaskKind.APPROVAL and link["status"] in _WAITING_STATUSES:
        if link["blocked"] or link["run_holds"]:
            return told + advise(Action.WHY, need) + " says when that can be settled"
        either = AdviceText(advise(Action.APPROVE, need), " or ", advise(Action.REJECT, need))
        return told + either + " settles that"
    if link["status"] in reopen.ENDED_BADLY:
        return told + advise(Action.RETRY, need) + " tries that again"
    if task["run_id"] is None and task["parent_id"] is not None:
        (plan,) = work.tx.read("task_by_id", task_id=task["parent_id"])
        return told + plans.advise_new_plan(plan) + " has that planned anew"
    return told + advise(Action.WHY, need) + " says how that stands"


def _answer_unchanged(task: Row) -> TransitionResult:
    return TransitionResult(ok=True, repeated=True, status=task["status"])


def _find_task(work: UnitOfWork, task_id: str) -> Row | None:
    rows = work.tx.read("task_by_id", task_id=task_id)
    return rows[0] if rows else None
