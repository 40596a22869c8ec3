"""Back from an end: retry, re-open and everything that must come back with it.

What a verifier said with its last round, kept until what it rejected begins again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read import addresses
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.task_state import name_tasks
from holdfast.engine.state import child_run_refusals, slots, superseded_needs
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import RUN_TERMINAL, Hold, RunStatus, TaskKind
from holdfast.model.verdict import Verdict, find_items_mistake
from holdfast.store.database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class LastRejection:
    """What is to be done otherwise, and the places of a loop's items that are meant, or all."""

    feedback: Any = None
    items: tuple[int, ...] = ()


def write_rejection(verdict: Verdict, task: Row) -> str:
    """A verdict as the error of its verifier, with the epoch of the loop that the places are of."""
    said = {"rounds": task["max_rounds"], "feedback": verdict.feedback}
    if verdict.items:
        said |= {"items": verdict.items, "epoch": task["subject_epoch"]}
    return json.dumps(said)


def read_last_rejection(tx: Transaction, verifier: Row) -> LastRejection:
    """What a verifier without rounds has said; of a loop that has begun anew, all is meant."""
    said = _parse_verdict(verifier["error"]) or _read_earlier_verdict(tx, verifier["id"])
    items = said.get("items", ())
    # Whoever may write an error may write anything into it.
    known = said.get("epoch") == verifier["subject_epoch"] and find_items_mistake(items) is None
    return LastRejection(feedback=said.get("feedback"), items=tuple(items) if known else ())


def _read_earlier_verdict(tx: Transaction, task_id: str) -> dict[str, Any]:
    """The verdict in whose place another error stands by now: a person's word."""
    for event in reversed(tx.read("entity_events", entity=task_id)):
        told = json.loads(event["data"] or "null")
        if isinstance(told, dict) and (said := _parse_verdict(json.dumps(told.get("error")))):
            return said
    return {}


def _parse_verdict(error: str | None) -> dict[str, Any]:
    said = json.loads(error or "null")
    return said if isinstance(said, dict) and "rounds" in said and "feedback" in said else {}


ENDED_BADLY = ("failed", "cancelled")
MAX_TASKS_FOR_PEOPLE = 1_000
# The tasks that are named, those behind whom all begins again, and in which statuses that may be.
ChosenTasks = dict[str, Sequence[str]]
STARTED_STATUSES = ("queued", "running", "done", "failed", "cancelled")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReopenExtent:
    """How far a re-open goes: up to what a verifier needs, leaving one task out.

    The `feedback` is for all that is done again, what follows up for the task `told` alone. Where a
    person begins it again, what goes back may do so as often as at first: it is `renewed`.
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
    """Try again what failed in a run; one that was called ends with its caller, and so begins."""
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

    A run may have completed without what a step has made: that is taken up where it is named.
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
    """Retry what failed; a verifier out of rounds begins again with what it verifies."""
    for verifier in work.tx.read("spent_verifiers", run_id=run_id):
        reopen_rejected_work(work, verifier, actor)
    rows = work.change_tasks("retry_run_tasks", run_id=run_id, named=named, actor=actor)
    note_tasks_to_evaluate(work, rows)
    return rows


def retry_from_step(work: UnitOfWork, run_id: str, step: str, actor: str) -> TransitionResult:
    """Re-open a step and everything that needs it, whatever became of them."""
    if not work.tx.read("run_by_id", run_id=run_id):
        return refuse(Refusal.NOT_FOUND, None)
    if (call := child_run_refusals.find_ended_call(work.tx, run_id)) is not None:
        return refuse_ended_call(call)
    sought = addresses.seek(work.tx, run_id, step)
    if (task := sought.found) is None:
        detail = addresses.tell_unknown(work.tx, run_id, step, sought)
        return refuse(Refusal.UNKNOWN_STEP, None, detail)
    if task["run_id"] != run_id:
        own, named = task["run_id"], name_tasks(work.tx, [task["id"]])[task["id"]]
        detail = f"it is a step of {own}, which was called; "
        detail += f'hf.runs.retry("{own}", step="{named}") begins again there'
        return refuse(Refusal.PART_OF_RUN, task["status"], detail)
    if not reopen_task(work, task["id"], actor, STARTED_STATUSES):
        detail = f"step {step!r} is {task['status']} and cannot be started again"
        return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)
    return TransitionResult(ok=True, status="running")


def reopen_task(
    work: UnitOfWork,
    task_id: str,
    actor: str,
    statuses: Sequence[str],
    extent: ReopenExtent = NO_LIMIT,
) -> list[Row]:
    """Re-open a task and what needs it; a run that had ended badly comes back whole."""
    rows = reopen_task_within_run(work, task_id, actor, statuses, replace(extent, renewed=True))
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
    """Without a run, the topmost parent stands for it: what failed below it is tried again."""
    rows = work.change_tasks("retry_task", task_id=task_id, actor=actor)
    back = [*reopened, *rows]
    parents = {row["parent_id"] for row in back if row["parent_id"] is not None}
    ids = sorted(parents | {row["entity"] for row in back})
    work.change_tasks("lift_failing_below", ids=ids, actor=actor)
    # What had failed of a plan may have been deleted since.
    work.groups_to_settle.update(row["entity"] for row in rows if row["kind"] == TaskKind.GROUP)
    return rows


def lift_failing(work: UnitOfWork, task_id: str, actor: str) -> None:
    """Let the tree of a task go on; whatever else of it has failed holds it again."""
    work.change_tasks("lift_failing_below", ids=[task_id], actor=actor)
    work.groups_to_settle.add(task_id)
    for row in work.tx.read("failed_in_tree", task_id=task_id):
        work.groups_to_settle.add(row["parent_id"])


def _lift_failing_trees(work: UnitOfWork, rows: Iterable[Row], actor: str) -> None:
    """Lift, without a run, what held the other parts of plans because of what came back."""
    alone = (row["parent_id"] for row in rows if row["run_id"] is None)
    for parent in sorted({each for each in alone if each is not None}):
        lift_failing(work, parent, actor)


def reopen_dependents(work: UnitOfWork, ids: Sequence[str], actor: str) -> None:
    """Re-open what needs some tasks without a run that begin again, and all that needs that."""
    behind: ChosenTasks = {"ids": [], "beyond": ids, "statuses": STARTED_STATUSES}
    rows, _ = _reopen_all(work, behind, actor, ReopenExtent(renewed=True))
    _lift_failing_trees(work, rows, actor)


def reopen_task_within_run(
    work: UnitOfWork, task_id: str, actor: str, statuses: Sequence[str], extent: ReopenExtent
) -> list[Row]:
    """Re-open a task and what needs it, the groups around all of that and what needs those."""
    chosen = {"ids": [task_id], "beyond": [], "statuses": statuses}
    return _reopen_all(work, chosen, actor, extent)[0]


def reopen_groups_around(work: UnitOfWork, ids: Sequence[str], actor: str) -> list[str]:
    """Bring back the groups around tasks that were taken out of their end."""
    rows = work.change_tasks("reopen_above", ids=ids, actor=actor)
    around = [row["entity"] for row in rows]
    work.groups_to_settle.update(around)
    return around


def reopen_subject(
    work: UnitOfWork, verifier: Row, items: Sequence[int], said: ReopenExtent, actor: str
) -> None:
    """Begin again with what was verified, up to the verifier; of a loop, with the items meant.

    What needs any of it beside the verifier, by somebody's word, waits for it again.
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
    """Begin again with what a verifier rejected with its last round, and hears of that again."""
    said = read_last_rejection(work.tx, verifier)
    extent = ReopenExtent(feedback=json.dumps(said.feedback))
    reopen_subject(work, verifier, said.items, extent, actor)


def reopen_unaccepted_work(
    work: UnitOfWork, rows: Sequence[Row], actor: str, reopened: ReopenExtent = NO_LIMIT
) -> None:
    """Begin again with what verifiers that begin again had left out: what it gave is gone.

    What follows up may be for a task between the two, which is re-opened once more.
    """
    ids = [row["entity"] for row in rows]
    said = ReopenExtent(follow_up=reopened.follow_up, told=reopened.told)
    for verifier in work.tx.read("left_out", ids=ids) if ids else ():
        reopen_subject(work, verifier, (), said, actor)


def _reopen_items(
    work: UnitOfWork, verifier: Row, items: Sequence[int], feedback: str | None, actor: str
) -> list[Row]:
    """The items named, or all; a loop without items has none."""
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
    """Re-open tasks and what needs them; the groups around all of it come back, and so on."""
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
    """Unblock a task that went back to what, by somebody's word, it needs no more."""
    if not work.tx.read("unmet_needs", ids=[task_id]):
        note_tasks_to_evaluate(
            work, work.change_tasks("unblock_task", task_id=task_id, ids=[], actor=actor)
        )


def note_tasks_to_evaluate(work: UnitOfWork, rows: Iterable[Row]) -> None:
    """Look at conditions, lists, items and calls of what came back, or has all it needs now."""
    for row in rows:
        if row["kind"] == TaskKind.GROUP and row.get("begun", True):
            work.groups_to_settle |= {row["entity"], row.get("parent_id") or row["entity"]}
        if row["kind"] == TaskKind.GROUP and row.get("waits_for") is not None:
            work.called_runs_ended.add(row["waits_for"])
        if not row["blocked"] and (row["conditional"] or row["kind"] == TaskKind.GROUP):
            work.to_evaluate.append(row["entity"])


def supersede_children(work: UnitOfWork, rows: list[Row], actor: str) -> None:
    """End for good whatever the tasks of a new epoch had made in the one before."""
    if rows:
        ids = [row["entity"] for row in rows]
        over = work.change_tasks("supersede_children", ids=ids, actor=actor)
        if lost := [row["entity"] for row in over if row["status"] != "done"]:
            note_tasks_to_evaluate(work, superseded_needs.replace_needs(work, lost, actor))


def reopen_run(work: UnitOfWork, run_id: str, actor: str, *, retry_failed: bool = False) -> None:
    """Let a run whose task was taken out of its end go on."""
    statuses = sorted(RUN_TERMINAL)
    reopened = work.change_runs("reopen_run", run_id=run_id, statuses=statuses, actor=actor)
    if retry_failed:
        _retry_tasks(work, run_id, actor)
    _continue_run(work, run_id, actor, reopened)


def lift_failing_run(work: UnitOfWork, run_id: str, actor: str) -> None:
    """Let a run go on in which nothing is failed any more, because all that was is done again."""
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
    """That nothing of a run has failed: it may have come back from its end before."""
    found = work.tx.read("run_by_id", run_id=run_id)
    if not found:
        return refuse(Refusal.NOT_FOUND, None)
    status = found[0]["status"]
    again = named is None and status == RunStatus.RUNNING and found[0]["generation"] > 1
    detail = _describe_task_for_approval(work, run_id) if status == RunStatus.RUNNING else ""
    told = detail or "nothing of this run has failed or been cancelled"
    return refuse(Refusal.INVALID_TRANSITION, status, told, repeated=again and not detail)


def _describe_task_for_approval(work: UnitOfWork, run_id: str) -> str:
    """Which task of a run has failed and waits for a person, whom no retry spares the word."""
    for row in work.tx.read("tasks_of_run_for_people", run_id=run_id, count=MAX_TASKS_FOR_PEOPLE):
        if row["holds"] & Hold.APPROVAL:
            named = f"{name_tasks(work.tx, [row['id']])[row['id']]} {row['id']}"
            return f'{named} has failed, and waits for approval: hf.approve("{row["id"]}")'
    return ""
