"""Child runs: a step that calls a workflow starts a run, waits for it, and ends with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.engine.core.operation import RunCaller, StartRun
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.engine.input.host_tags import PREFIX as HOST_PREFIX
from holdfast.engine.input.host_tags import find_host_tag
from holdfast.engine.read.records import read_value
from holdfast.engine.read.step_texts import StepTexts
from holdfast.engine.state import creation, reopen, verdicts
from holdfast.errors import HoldfastError
from holdfast.model import json_schema
from holdfast.model.run import NewRun
from holdfast.model.status import Hold
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import MAX_CALL_DEPTH, Workflow
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.template import MAX_RENDERED
from holdfast.store.database import Row

ACTOR = "advance"
CANCELLED = '"its run was cancelled"'


@dataclass(frozen=True, kw_only=True, slots=True)
class CallingTask:
    """An unblocked task that calls a workflow, with the texts of its step if it has one.

    A task outside of any run has no step: its payload is the input of the called run.
    """

    row: Row
    script: StepTexts | None = None

    def describe(self) -> str:
        if self.script is None:
            return f"workflow {self.row['calls']!r}"
        return f"step {self.script.scripted.step.id!r}"


def start_called_runs(work: UnitOfWork, calls: Sequence[CallingTask]) -> dict[str, str]:
    """Start the run of each task, or continue the run that it has called in this epoch.

    Returns the tasks whose run cannot be started, each with the reason as JSON.
    """
    ids = [call.row["id"] for call in calls]
    known = {row["parent_id"]: row for row in work.tx.read("child_runs", ids=ids)}
    starts: dict[str, StartRun] = {}
    refused: dict[str, str] = {}
    for call in calls:
        if call.row["id"] not in known:
            try:
                starts[call.row["id"]] = _build_called_run(work, call)
            except (HoldfastError, Unresolved) as error:
                problem = f"{call.describe()}: {error}"
                refused[call.row["id"]] = json.dumps(problem)
    children = {task: start.run_id for task, start in starts.items()}
    children |= {task: row["id"] for task, row in known.items()}
    waiting = work.change_tasks("await_runs", rows=sorted(children.items())) if children else []
    called = sorted(row["entity"] for row in waiting)
    if new := [starts[task] for task in called if task in starts]:
        creation.start_runs(work, new)
    for task in called:
        if task in known:
            _continue_called_run(work, known[task])
    return refused


def _continue_called_run(work: UnitOfWork, run: Row) -> None:
    """Continue a called run: one that failed or was cancelled is retried, and its holds are lifted.

    Its caller has no holds either, or it would not call.
    """
    if run["status"] not in reopen.ENDED_BADLY:
        work.called_runs_ended.add(run["id"])
        return
    reopen.retry_run_itself(work, run["id"], ACTOR)
    if held := run["holds"] & ~int(Hold.SLOT | Hold.FAILING):
        rows = work.change_runs("unhold_run", run_id=run["id"], reason=held, actor=ACTOR)
        work.change_tasks("copy_run_holds", ids=[row["entity"] for row in rows])


def _build_called_run(work: UnitOfWork, call: CallingTask) -> StartRun:
    script, row = call.script, call.row
    if script is None:
        above, depth = None, 1
        declared = StepWork(workflow=row["calls"], input=read_value(row["payload"]))
    else:
        above, depth = script.run, script.run.depth + 1
        declared = script.call(row["feedback"], row["generation"])
    workflow = _called_workflow(work, declared)
    if depth > MAX_CALL_DEPTH:
        message = f"{workflow.name} would be called {depth} deep, and {MAX_CALL_DEPTH} is the most"
        raise Unresolved(f"{message}; do these workflows call each other in a circle?")
    tag = find_host_tag(row["tags"])
    host = None if tag is None else tag.removeprefix(HOST_PREFIX)
    run = NewRun(workflow=workflow, input=declared.input, priority=row["priority"], host=host)
    start = validation.new_run(run, work.ids, max_payload=MAX_RENDERED, actor_name=ACTOR)
    root = None if above is None else above.root_id or above.id
    caller = RunCaller(task_id=row["id"], epoch=row["epoch"], root_id=root, depth=depth)
    key = start.concurrency_key if above is None else _concurrency_key(work, start, above.id)
    return replace(start, caller=caller, concurrency_key=key)


def _concurrency_key(work: UnitOfWork, start: StartRun, caller: str) -> str | None:
    """The concurrency key of a run.

    None if a caller holds that key, because callers end after it.
    """
    key = start.concurrency_key
    if key is None:
        return None
    held = {row["key"] for row in work.tx.read("keys_above", run_id=caller)}
    return None if key in held else key


def _called_workflow(work: UnitOfWork, declared: StepWork) -> Workflow:
    name, version = str(declared.workflow), declared.version
    if version is None:
        newest = work.tx.read("newest_version", name=name)
        if not newest:
            message = f"this store knows no workflow {name!r}"
            raise Unresolved(f"{message}; add it: `holdfast workflow add {name}.yaml`")
        version = newest[0]["version"]
    return work.workflow_cache.workflow(work.tx, name, version)


def cancel_abandoned_runs(work: UnitOfWork) -> None:
    """Cancel the runs that no task waits for any more, with all that they have called."""
    # Repeat for their tasks: another process may have started a called run in the meantime.
    while work.callers_to_abandon:
        orphans, work.callers_to_abandon = sorted(work.callers_to_abandon), set()
        if rows := work.change_runs("cancel_children", ids=orphans):
            cancelled = [row["entity"] for row in rows]
            work.change_tasks("cancel_run_tasks", ids=cancelled, actor=ACTOR)


def end_calling_tasks(work: UnitOfWork) -> None:
    """End the tasks whose called runs have ended, each as its run did."""
    if not work.called_runs_ended:
        return
    returned, work.called_runs_ended = sorted(work.called_runs_ended), set()
    rows = work.tx.read("returned_runs", ids=returned)
    completed = [row["child"] for row in rows if row["status"] == "completed"]
    outputs = _read_outputs(work, completed) if completed else {}
    given: list[tuple[str, str, str]] = []
    for row in rows:
        problem = _find_problem(work, row, outputs.get(row["child"]))
        if problem is None:
            given.append((row["id"], row["child"], outputs[row["child"]]))
        else:
            _fail_call(work, row, problem)
    if given:
        work.change_tasks("finish_calls", rows=given)
    # A failing run ends with the last run that it has called, however that one ended.
    work.runs_to_settle |= {row["run_id"] for row in rows if row["run_id"] is not None}


def _read_outputs(work: UnitOfWork, runs: Sequence[str]) -> dict[str, str]:
    """The outputs of runs as JSON: that of the last step, or those of the last steps by name."""
    found: dict[str, dict[str, str]] = {run: {} for run in runs}
    for row in work.tx.read("outputs_of_runs", ids=runs):
        found[row["run_id"]][row["step"]] = row["output"] or "null"
    return {run: _join_outputs(outputs) for run, outputs in found.items()}


def _join_outputs(outputs: dict[str, str]) -> str:
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    return "{" + ",".join(f"{json.dumps(step)}:{text}" for step, text in outputs.items()) + "}"


def _find_problem(work: UnitOfWork, row: Row, output: str | None) -> str | None:
    """The error of a task whose run has ended; None if the output is what the step declares."""
    if output is None:
        return str(row["error"] or CANCELLED)
    declared = _find_declared_outputs(work, row)
    misfits = (
        [] if declared is None else json_schema.find_misfits(declared, json.loads(output), "output")
    )
    return json.dumps("; ".join(misfits)) if misfits else None


def _find_declared_outputs(work: UnitOfWork, row: Row) -> Mapping[str, Any] | None:
    """The outputs that a calling step declares; a task outside of any run declares none."""
    if row["run_id"] is None:
        return None
    step = work.workflow_cache.step(work.tx, row["workflow"], row["workflow_version"], row["step"])
    return None if step.work is None else step.work.outputs


def _fail_call(work: UnitOfWork, row: Row, problem: str) -> None:
    named = (row["id"], row["child"], problem)
    if row["on_failure"] == "goto":
        step = work.workflow_cache.step(
            work.tx, row["workflow"], row["workflow_version"], row["step"]
        )
        plan = step.on_failure
        if work.change_tasks("turn_back_calls", rows=[(*named, plan.max_rounds)]):
            verdicts.go_back_to_step(work, row, str(plan.step), problem)
            return
    work.change_tasks("break_calls", rows=[named])
