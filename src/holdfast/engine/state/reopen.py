"""Re-opening: retry and re-open of tasks and runs, with all that must come back with them.

The last rejection of a verifier is kept as its error until the rejected work begins again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read import addresses, step_texts
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.task_state import name_tasks
from holdfast.engine.state import child_run_refusals, slots, superseded_needs
from holdfast.model.advice import Action, advise
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import RUN_TERMINAL, Hold, RunStatus, TaskKind
from holdfast.model.verdict import Verdict, find_items_mistake
from holdfast.model.workflow.graph_text import read_steps
from holdfast.store.database import Row, Transaction

ENDED_BADLY = ("failed", "cancelled")
MAX_TASKS_FOR_PEOPLE = 1_000
# Of the steps of a run, an answer names so many.
SHOWN = 5
# Parameters of `reopen_tasks`: tasks by id, tasks with dependents to reopen, and the statuses.
ChosenTasks = dict[str, Sequence[str]]
STARTED_STATUSES = ("queued", "running", "done", "failed", "cancelled")


@dataclass(frozen=True, kw_only=True, slots=True)
class LastRejection:
    """The feedback of a rejection, and the places of the rejected items of a loop.

    No places mean all.
    """

    feedback: Any = None
    items: tuple[int, ...] = ()


def write_rejection(verdict: Verdict, task: Row) -> str:
    """Write a rejection as the error of its verifier, with the epoch of the loop of its places."""
    said = {"rounds": task["max_rounds"], "feedback": verdict.feedback}
    if verdict.items:
        said |= {"items": verdict.items, "epoch": task["subject_epoch"]}
    return json.dumps(said)


def read_last_rejection(tx: Transaction, verifier: Row) -> LastRejection:
    """Read the last rejection of a verifier.

    If its loop has begun a new epoch, all items are meant.
    """
    said = _parse_verdict(verifier["error"]) or _read_earlier_verdict(tx, verifier["id"])
    items = said.get("items", ())
    # An error may hold anything, because workers and people write errors too.
    known = said.get("epoch") == verifier["subject_epoch"] and find_items_mistake(items) is None
    return LastRejection(feedback=said.get("feedback"), items=tuple(items) if known else ())


def _read_earlier_verdict(tx: Transaction, task_id: str) -> dict[str, Any]:
    """The last rejection among the events, if another error has replaced it on the task."""
    for event in reversed(tx.read("entity_events", entity=task_id)):
        told = json.loads(event["data"] or "null")
        if isinstance(told, dict) and (said := _parse_verdict(json.dumps(told.get("error")))):
            return said
    return {}


def _parse_verdict(error: str | None) -> dict[str, Any]:
    said = json.loads(error or "null")
    return said if isinstance(said, dict) and "rounds" in said and "feedback" in said else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReopenExtent:
    """How far a re-open goes: to tasks that the verifier `until` needs, without the task `apart`.

    The `feedback` is for all tasks that are re-opened, the `follow_up` for the task `told` alone.
    If a person re-opens them, they may go back as often as at first: they are `renewed`.
    """

    until: str | None = None
    apart: str | None = None
    feedback: str | None = None
    follow_up: str | None = None
    told: str | None = None
    renewed: bool = False


NO_LIMIT = ReopenExtent()


def retry_run(
    work: UnitOfWork, run_id: str, actor: str, named: str | None = None
) -> TransitionResult:
    """Retry what failed in a run; an ended called run is retried through its caller."""
    call = child_run_refusals.find_ended_call(work.tx, run_id)
    if call is None:
        return retry_run_itself(work, run_id, actor, named)
    if call.retry_run_id is None:
        return refuse_ended_call(call)
    return retry_run_itself(work, call.retry_run_id, actor)


def refuse_ended_call(call: child_run_refusals.EndedCall) -> TransitionResult:
    return refuse(Refusal.PART_OF_RUN, call.status, call.detail)


def retry_run_itself(
    work: UnitOfWork, run_id: str, actor: str, named: str | None = None
) -> TransitionResult:
    """Re-open every failed or cancelled task of a run, and the run if it had ended.

    A completed run may have a failed task that a step made; it is retried if it is `named`.
    """
    reopened = work.change_runs("reopen_run", run_id=run_id, statuses=ENDED_BADLY, actor=actor)
    rows = _retry_tasks(work, run_id, actor, named)
    if not rows and not reopened:
        return _refuse_empty_retry(work, run_id, named)
    if rows:
        completed = (RunStatus.COMPLETED,)
        reopened += work.change_runs("reopen_run", run_id=run_id, statuses=completed, actor=actor)
    _continue_run(work, run_id, actor, reopened)
    return TransitionResult(ok=True, status="running")


def _retry_tasks(work: UnitOfWork, run_id: str, actor: str, named: str | None = None) -> list[Row]:
    """Retry the failed tasks of a run; a verifier without rounds begins again with its subject.

    A landing that met a conflict begins again with its item.
    """
    for verifier in work.tx.read("spent_verifiers", run_id=run_id):
        reopen_rejected_work(work, verifier, actor)
    for landing in work.tx.read("conflicted_landings", run_id=run_id):
        reopen_conflicted_item(work, landing, actor)
    rows = work.change_tasks("retry_run_tasks", run_id=run_id, named=named, actor=actor)
    note_tasks_to_evaluate(work, rows)
    return rows


def retry_from_step(work: UnitOfWork, run_id: str, step: str, actor: str) -> TransitionResult:
    """Re-open a step and everything that needs it, in any status but idle."""
    run = work.tx.read("run_by_id", run_id=run_id)
    if not run:
        return refuse(Refusal.NOT_FOUND, None)
    if (call := child_run_refusals.find_ended_call(work.tx, run_id)) is not None:
        return refuse_ended_call(call)
    sought = addresses.follow_address(work.tx, run_id, step)
    if (task := sought.found) is None:
        detail = addresses.describe_unknown_address(work.tx, run_id, step, sought)
        return refuse(Refusal.UNKNOWN_STEP, None, detail)
    if task["run_id"] != run_id:
        own, named = task["run_id"], name_tasks(work.tx, [task["id"]])[task["id"]]
        detail = f"it is a step of {own}, which was called; "
        detail += advise(Action.RETRY, own, ("step", named)) + " begins again there"
        return refuse(Refusal.PART_OF_RUN, run[0]["status"], detail)
    if not reopen_task(work, task["id"], actor, STARTED_STATUSES):
        detail = f"step {step!r} is {task['status']} and cannot be started again"
        return refuse(Refusal.INVALID_TRANSITION, run[0]["status"], detail)
    return TransitionResult(ok=True, status="running")


def reopen_task(
    work: UnitOfWork,
    task_id: str,
    actor: str,
    statuses: Sequence[str],
    extent: ReopenExtent = NO_LIMIT,
) -> list[Row]:
    """Re-open a task and its dependents, with its run.

    What failed or was cancelled in the run is retried.
    """
    landing = find_conflicted_landing(work, task_id)
    rows = reopen_task_within_run(work, task_id, actor, statuses, replace(extent, renewed=True))
    if rows and landing is not None:
        reopen_conflicted_item(work, landing, actor)
    if rows and rows[0]["run_id"] is not None:
        reopen_run(work, rows[0]["run_id"], actor, retry_failed=True)
    _lift_failing_trees(work, rows, actor)
    named = [row for row in rows if row["entity"] == task_id]
    if named and named[0]["run_id"] is None and named[0]["parent_id"] is not None:
        retry_task_tree(work, task_id, actor, named)
    return named


def retry_task_tree(
    work: UnitOfWork, task_id: str, actor: str, reopened: Sequence[Row] = ()
) -> list[Row]:
    """Retry what failed in the tree of a task without a run, below its topmost parent."""
    rows = work.change_tasks("retry_task", task_id=task_id, actor=actor)
    back = [*reopened, *rows]
    parents = {row["parent_id"] for row in back if row["parent_id"] is not None}
    ids = sorted(parents | {row["entity"] for row in back})
    work.change_tasks("lift_failing_below", ids=ids, actor=actor)
    # The failed parts of a plan may have been deleted since, so that nothing else would settle it.
    work.groups_to_settle.update(row["entity"] for row in rows if row["kind"] == TaskKind.GROUP)
    return rows


def lift_failing_tree(work: UnitOfWork, task_id: str, actor: str) -> None:
    """Lift hold failing in the tree of a task; other tasks that have failed there set it again."""
    work.change_tasks("lift_failing_below", ids=[task_id], actor=actor)
    work.groups_to_settle.add(task_id)
    for row in work.tx.read("failed_in_tree", task_id=task_id):
        work.groups_to_settle.add(row["parent_id"])


def _lift_failing_trees(work: UnitOfWork, rows: Iterable[Row], actor: str) -> None:
    """Lift hold failing in the trees of re-opened tasks that have no run."""
    alone = (row["parent_id"] for row in rows if row["run_id"] is None)
    for parent in sorted({each for each in alone if each is not None}):
        lift_failing_tree(work, parent, actor)


def reopen_dependents(work: UnitOfWork, ids: Sequence[str], actor: str) -> None:
    """Re-open all that transitively need some tasks without a run that begin again."""
    behind: ChosenTasks = {"ids": [], "beyond": ids, "statuses": STARTED_STATUSES}
    rows, _ = _reopen_all(work, behind, actor, ReopenExtent(renewed=True))
    _lift_failing_trees(work, rows, actor)


def reopen_task_within_run(
    work: UnitOfWork, task_id: str, actor: str, statuses: Sequence[str], extent: ReopenExtent
) -> list[Row]:
    """Re-open a task and its dependents, and the groups around them with the dependents of these.

    The run stays as it is.
    """
    chosen = {"ids": [task_id], "beyond": [], "statuses": statuses}
    return _reopen_all(work, chosen, actor, extent)[0]


def reopen_groups_around(work: UnitOfWork, ids: Sequence[str], actor: str) -> list[str]:
    """Re-open the ended groups around re-opened tasks; return these groups."""
    rows = work.change_tasks("reopen_above", ids=ids, actor=actor)
    around = [row["entity"] for row in rows]
    work.groups_to_settle.update(around)
    return around


def reopen_subject(
    work: UnitOfWork, verifier: Row, items: Sequence[int], said: ReopenExtent, actor: str
) -> None:
    """Re-open the subject of a verifier and the tasks between both; of a loop, the given items.

    Other tasks that need any of these, by a need added by hand, wait for them again.
    """
    subject = verifier["verifies"]
    extent = replace(said, until=verifier["id"], apart=verifier["id"])
    found: list[Row] = []
    if verifier["subject_kind"] == TaskKind.GROUP:
        found = _reopen_items(work, verifier, items, said.feedback, actor)
    begun = [subject, *(row["entity"] for row in found)]
    if found:
        supersede_children(work, found, actor)
        reopen_groups_around(work, begun[1:2], actor)
        work.groups_to_settle.add(subject)
        chosen: ChosenTasks = {"ids": [], "beyond": begun, "statuses": STARTED_STATUSES}
    else:
        chosen = {"ids": [subject], "beyond": [], "statuses": STARTED_STATUSES}
    rows, around = _reopen_all(work, chosen, actor, extent)
    again = [*begun, *around, *(row["entity"] for row in rows)]
    work.change_tasks("block_dependents", ids=again, actor=actor)


def reopen_rejected_work(work: UnitOfWork, verifier: Row, actor: str) -> None:
    """Re-open what a verifier rejected in its last round, with the feedback of that rejection."""
    said = read_last_rejection(work.tx, verifier)
    extent = ReopenExtent(feedback=json.dumps(said.feedback))
    reopen_subject(work, verifier, said.items, extent, actor)


def find_conflicted_landing(work: UnitOfWork, task_id: str) -> Row | None:
    """A failed landing whose conflict has left the line of its item without commits."""
    tasks = work.tx.read("tasks_by_id", ids=[task_id])
    if not tasks or tasks[0]["on_failure"] != "goto" or tasks[0]["run_id"] is None:
        return None
    found = work.tx.read("conflicted_landings", run_id=tasks[0]["run_id"])
    return next((row for row in found if row["id"] == task_id), None)


def reopen_conflicted_item(work: UnitOfWork, landing: Row, actor: str) -> None:
    """Re-open the steps of the item of a landing that met a conflict, with the conflict."""
    first = step_texts.read_step(work, landing).on_failure.step
    (target,) = work.tx.read("task_beside", task_id=landing["id"], step=str(first))
    extent = ReopenExtent(apart=landing["id"], feedback=landing["error"])
    rows = reopen_task_within_run(work, target["id"], actor, STARTED_STATUSES, extent)
    again = [row["entity"] for row in rows]
    work.change_tasks("block_dependents", ids=again, actor=actor)


def reopen_unaccepted_work(
    work: UnitOfWork, rows: Sequence[Row], actor: str, reopened: ReopenExtent = NO_LIMIT
) -> None:
    """Re-open the subjects that were skipped with verifiers which now begin again.

    The follow-up may be for a task between subject and verifier, which is re-opened once more.
    """
    ids = [row["entity"] for row in rows]
    said = ReopenExtent(follow_up=reopened.follow_up, told=reopened.told)
    for verifier in work.tx.read("left_out", ids=ids) if ids else ():
        reopen_subject(work, verifier, (), said, actor)


def _reopen_items(
    work: UnitOfWork, verifier: Row, items: Sequence[int], feedback: str | None, actor: str
) -> list[Row]:
    """Re-open the given items of a loop, or all if none is given."""
    return work.change_tasks(
        "reopen_items",
        loop_id=verifier["verifies"],
        every=not items,
        places=[str(place) for place in items],
        feedback=feedback,
        actor=actor,
    )


def _reopen_all(
    work: UnitOfWork, chosen: ChosenTasks, actor: str, extent: ReopenExtent
) -> tuple[list[Row], list[str]]:
    """Re-open tasks and their dependents, the groups around these, and so on outwards."""
    found = rows = _reopen_tasks(work, chosen, actor, extent)
    groups: list[str] = []
    while found:
        around = reopen_groups_around(work, [row["entity"] for row in found], actor)
        groups += around
        beyond: ChosenTasks = {"ids": [], "beyond": around, "statuses": chosen["statuses"]}
        found = _reopen_tasks(work, beyond, actor, extent) if around else []
        rows = rows + found
    reopen_unaccepted_work(work, rows, actor, extent)
    return rows, groups


def _reopen_tasks(
    work: UnitOfWork, chosen: ChosenTasks, actor: str, extent: ReopenExtent
) -> list[Row]:
    rows = work.change_tasks(
        "reopen_tasks",
        **chosen,
        until=extent.until,
        apart=extent.apart,
        feedback=extent.feedback,
        follow_up=extent.follow_up,
        told=extent.told,
        renewed=extent.renewed,
        actor=actor,
    )
    supersede_children(work, rows, actor)
    note_tasks_to_evaluate(work, rows)
    return rows


def unblock_task_gone_back(work: UnitOfWork, task_id: str, actor: str) -> None:
    """Unblock a task that went back to a step, if a person has removed the need on that step."""
    if not work.tx.read("unmet_needs", ids=[task_id]):
        note_tasks_to_evaluate(
            work, work.change_tasks("unblock_task", task_id=task_id, ids=[], actor=actor)
        )


def note_tasks_to_evaluate(work: UnitOfWork, rows: Iterable[Row]) -> None:
    """Note re-opened and unblocked tasks as tasks to evaluate, to settle, or as ended calls."""
    for row in rows:
        if row["kind"] == TaskKind.GROUP and row.get("begun", True):
            work.groups_to_settle |= {row["entity"], row.get("parent_id") or row["entity"]}
        if row["kind"] == TaskKind.GROUP and row.get("waits_for") is not None:
            work.called_runs_ended.add(row["waits_for"])
        if not row["blocked"] and (row["conditional"] or row["kind"] == TaskKind.GROUP):
            work.to_evaluate.append(row["entity"])


def supersede_children(work: UnitOfWork, rows: list[Row], actor: str) -> None:
    """Supersede what tasks had made in the epoch before, and replace the needs on it."""
    if rows:
        ids = [row["entity"] for row in rows]
        over = work.change_tasks("supersede_children", ids=ids, actor=actor)
        if lost := [row["entity"] for row in over if row["status"] != "done"]:
            note_tasks_to_evaluate(work, superseded_needs.replace_needs(work, lost, actor))


def reopen_run(work: UnitOfWork, run_id: str, actor: str, *, retry_failed: bool = False) -> None:
    """Re-open the ended run of a task that was re-opened."""
    statuses = sorted(RUN_TERMINAL)
    reopened = work.change_runs("reopen_run", run_id=run_id, statuses=statuses, actor=actor)
    if retry_failed:
        _retry_tasks(work, run_id, actor)
    _continue_run(work, run_id, actor, reopened)


def lift_failing_run(work: UnitOfWork, run_id: str, actor: str) -> None:
    """Lift hold failing from a run that has no failed task any more."""
    if work.change_runs("lift_failing", run_id=run_id, actor=actor):
        work.change_tasks("copy_run_holds", ids=[run_id])


def _continue_run(work: UnitOfWork, run_id: str, actor: str, reopened: list[Row]) -> None:
    work.change_runs("lift_failing", run_id=run_id, actor=actor)
    work.change_tasks("copy_run_holds", ids=[run_id])
    work.runs_to_settle.add(run_id)
    work.runs_with_failure.add(run_id)
    work.runs_with_usage.add(run_id)
    if reopened and reopened[0]["concurrency_key"]:
        slots.admit_runs(work, reopened[0]["concurrency_key"], 1)


def _refuse_empty_retry(work: UnitOfWork, run_id: str, named: str | None) -> TransitionResult:
    """Refuse a retry of a run without failed tasks.

    It is a repetition if the run was re-opened before.
    """
    found = work.tx.read("run_by_id", run_id=run_id)
    if not found:
        return refuse(Refusal.NOT_FOUND, None)
    status = found[0]["status"]
    again = named is None and status == RunStatus.RUNNING and found[0]["generation"] > 1
    detail = _describe_task_for_approval(work, run_id) if status == RunStatus.RUNNING else ""
    told = detail or "nothing of this run has failed or been cancelled"
    if status == RunStatus.COMPLETED:
        told += "; " + describe_repetition(work.tx, found[0])
    return refuse(Refusal.INVALID_TRANSITION, status, told, repeated=again and not detail)


def describe_repetition(tx: Transaction, run: Row) -> str:
    """Say how a run that has completed is done again: from its first step, or from another."""
    named = {"name": run["workflow"], "version": run["workflow_version"]}
    (kept,) = tx.read("workflow_definition", **named)
    first, *others = [step.id for step in read_steps(kept["definition"])]
    shown = ", ".join(others[:SHOWN]) + (", and so on" if len(others) > SHOWN else "")
    again = advise(Action.RETRY, run["id"], ("step", first))
    again += " does that step and all that needs it again"
    return again + (f"; its other steps are {shown}" if others else "")


def _describe_task_for_approval(work: UnitOfWork, run_id: str) -> str:
    """Name a failed task of a run that waits for approval, which a retry does not replace."""
    for row in work.tx.read("tasks_of_run_for_people", run_id=run_id, count=MAX_TASKS_FOR_PEOPLE):
        if row["holds"] & Hold.APPROVAL:
            named = f"{name_tasks(work.tx, [row['id']])[row['id']]} {row['id']}"
            approve = advise(Action.APPROVE, row["id"])
            return f"{named} has failed, and waits for approval: " + approve
    return ""
