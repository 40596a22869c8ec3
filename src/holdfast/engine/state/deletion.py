"""Deletion of tasks; a refusal says what keeps the task in the store, and what goes before it.

A task stays while others need it or belong to it, and while the task that made it is open.
"""

from __future__ import annotations

from holdfast.engine.core.operation import DeleteTask
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.state import needs, plans, reopen
from holdfast.model.advice import Action, AdviceText, advise, join_texts
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import RUN_TERMINAL, TERMINAL
from holdfast.store.database import Row

SHOWN = 5
# A chain of tasks, of which each keeps the one before it, is followed so far.
MAX_DEPTH = 50
_WAITING = frozenset({"idle", "queued"})


def delete_task(operation: DeleteTask, work: UnitOfWork) -> TransitionResult:
    rows = work.tx.change("delete_task", task_id=operation.task_id, actor=operation.actor)
    if rows:
        work.notify = True
        work.ended.append(operation.task_id)
        _settle_parent_of_deleted(work, rows[0], operation.actor)
        return TransitionResult(ok=True)
    task = work.tx.read("task_by_id", task_id=operation.task_id)
    return _refuse_deletion(work, task[0]) if task else refuse(Refusal.NOT_FOUND, None)


def _settle_parent_of_deleted(work: UnitOfWork, gone: Row, actor: str) -> None:
    """Settle the parent of a deleted task, which may have been the last open or failed child."""
    found = work.tx.read("task_by_id", task_id=gone["parent_id"] or "")
    if not found or found[0]["status"] in TERMINAL:
        return
    work.groups_to_settle.add(found[0]["id"])
    if gone["previous"] in reopen.ENDED_BADLY:
        reopen.lift_failing_tree(work, found[0]["id"], actor)


def _refuse_deletion(work: UnitOfWork, task: Row) -> TransitionResult:
    status = task["status"]
    if task["run_id"] is not None:
        return refuse(Refusal.PART_OF_RUN, status, _describe_part_of_run(work, task["run_id"]))
    if status == "running":
        detail = "it is running; " + advise(Action.CANCEL, task["id"]) + " ends that first"
        return refuse(Refusal.INVALID_TRANSITION, status, detail)
    if status == "queued" and task["calls"] is not None and task["waits_for"] is not None:
        goes_on = f"it has called {task['waits_for']}, which goes on; "
        told = goes_on + advise(Action.CANCEL, task["id"]) + " ends both first"
        return refuse(Refusal.INVALID_TRANSITION, status, told)
    return refuse(Refusal.NEEDED_BY_OTHERS, status, _describe_keepers(work, task))


def _describe_part_of_run(work: UnitOfWork, run_id: str) -> str:
    (run,) = work.tx.read("run_by_id", run_id=run_id)
    if run["status"] in RUN_TERMINAL:
        return f"it is part of {run_id}, which `holdfast clean` removes as a whole in its time"
    return f"it is part of {run_id}; " + advise(Action.CANCEL, run_id) + " ends that instead"


def _describe_keepers(work: UnitOfWork, task: Row) -> str:
    """Name the tasks that keep a task, and say what frees it from each of them."""
    found = work.tx.read("kept_for", task_id=task["id"], count=SHOWN + 1)
    keepers = [row for row in found if not row["made"]]
    if not keepers:
        return _describe_maker(task, found[0])
    shown = ", ".join(f"{row['title']} {row['id']}" for row in keepers[:SHOWN])
    more = " and more" if len(found) > SHOWN else ""
    ways = dict.fromkeys(_free_from(work, task, row["id"]) for row in keepers[:SHOWN])
    told = f"other tasks need it or belong to it: {shown}{more}; "
    return AdviceText(told, join_texts(", ", ways), " lets it go")


def _describe_maker(task: Row, maker: Row) -> str:
    told = f"{maker['title']} {maker['id']} has made it, and reads what it gives; "
    if task["status"] in TERMINAL:
        return told + advise(Action.WHY, maker["id"]) + " says how that stands"
    return told + advise(Action.CANCEL, task["id"]) + " ends it instead"


def _free_from(work: UnitOfWork, task: Row, keeper_id: str, depth: int = 0) -> str:
    """The call that removes the need of another task on a task, or else the other task."""
    (keeper,) = work.tx.read("task_by_id", task_id=keeper_id)
    links = work.tx.read("links_of", task_id=keeper_id)
    link = next((row for row in links if row["need_id"] == task["id"]), None)
    if link is None or keeper["parent_id"] == task["id"] or keeper["status"] not in _WAITING:
        return _remove_keeper(work, keeper, depth)
    if needs.may_be_removed(work, keeper, link):
        return advise(Action.UNBLOCK, keeper_id, ("need", task["id"]))
    (plan,) = work.tx.read("task_by_id", task_id=keeper["parent_id"])
    return plans.advise_new_plan(plan)


def _remove_keeper(work: UnitOfWork, keeper: Row, depth: int) -> str:
    """The call that deletes a task, or frees it from what keeps it."""
    kept = work.tx.read("kept_for", task_id=keeper["id"], count=1)
    if not kept:
        delete = advise(Action.DELETE, keeper["id"])
        if keeper["status"] != "running":
            return delete
        return advise(Action.CANCEL, keeper["id"]) + " and then " + delete
    if kept[0]["made"]:
        return advise(Action.CANCEL, kept[0]["id"])
    if depth == MAX_DEPTH:
        return advise(Action.WHY, kept[0]["id"])
    return _free_from(work, keeper, kept[0]["id"], depth + 1)
