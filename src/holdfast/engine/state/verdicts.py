"""Verdicts: what follows from a rejection, and from a final failure for which the step has a plan.

The outputs of attempts are checked here against those that their steps declare.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.engine.core.operation import Complete, Fail, Lose
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input.blueprint import encode_limits, write_tags
from holdfast.engine.input.host_tags import find_host_tag
from holdfast.engine.read.report_refusals import digest_invalid_output
from holdfast.engine.state import reopen
from holdfast.model import json_schema
from holdfast.model.advice import Action, advise
from holdfast.model.result import TransitionResult
from holdfast.model.status import TaskKind
from holdfast.model.verdict import Verdict, find_items_mistake, read_verdict
from holdfast.model.workflow.step import Step
from holdfast.store.database import Row

NO_VERDICT = "a verifier's output must hold `verdict`: `accept`, or `reject` with `feedback`"


def check_outputs(work: UnitOfWork, reports: Sequence[Complete]) -> dict[str, Fail | None]:
    """Check the outputs of tasks that declare one: None, or the failure of the attempt."""
    rows = work.tx.read("declared_reports", rows=[(r.task_id, r.fence) for r in reports])
    by_task = {report.task_id: report for report in reports}
    return {row["id"]: _check_output(work, by_task[row["id"]], row) for row in rows}


def _check_output(work: UnitOfWork, report: Complete, task: dict[str, str]) -> Fail | None:
    step = work.workflow_cache.step(
        work.tx, task["workflow"], task["workflow_version"], task["step"]
    )
    declared = None if step.work is None else step.work.outputs
    misfits = (
        []
        if declared is None
        else json_schema.find_misfits(declared, json.loads(report.output), "output")
    )
    return build_failure(report, "; ".join(misfits)) if misfits else None


def build_failure(report: Complete, why: str) -> Fail:
    """The failure of an attempt whose result cannot be taken; the task is retried."""
    return Fail(
        task_id=report.task_id,
        fence=report.fence,
        error=json.dumps(why),
        digest=digest_invalid_output(report),
        retryable=True,
        jitter=1.0,
        usage=report.usage,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalFailure:
    """The final failure of a task: it was reported, the worker vanished, or no round is left."""

    problem: str
    feedback: str | None = None
    digest: str = ""
    usage: str | None = None
    failed: int = 0
    vanished: int = 0
    rejected: int = 0

    @property
    def actor(self) -> str | None:
        return "recovery" if self.vanished else None


def is_acceptance(report: Complete) -> bool:
    """Whether a result is a verdict that accepts; the answer counts for verifiers only."""
    verdict = _read_verdict(report)
    return verdict is not None and verdict.accepts


def conclude_verifier(work: UnitOfWork, report: Complete, task: Row) -> TransitionResult | Fail:
    """Conclude a verifier that did not accept; without a valid verdict its attempt has failed."""
    verdict = _read_verdict(report)
    if verdict is None:
        return build_failure(report, _describe_missing_verdict(report))
    if (mistake := _describe_unknown_items(verdict, task)) is not None:
        return build_failure(report, mistake)
    row = (report.task_id, report.fence, report.output, report.digest, report.usage)
    if rows := work.change_tasks("reject_round", rows=[row]):
        reopen.supersede_children(work, rows, "verifier")
        said = reopen.ReopenExtent(feedback=json.dumps(verdict.feedback))
        reopen.reopen_subject(work, task, verdict.items, said, "verifier")
        reopen.lift_failing_run(work, task["run_id"], "verifier")
        reopen.unblock_task_gone_back(work, report.task_id, "verifier")
        return TransitionResult(ok=True, status="queued")
    loss = FinalFailure(
        problem=reopen.write_rejection(verdict, task),
        feedback=json.dumps(verdict.feedback),
        digest=report.digest,
        usage=report.usage,
        rejected=1,
    )
    return _write_failure(work, report, task, loss)


def conclude_failure(work: UnitOfWork, report: Fail | Lose, task: Row) -> TransitionResult:
    """Conclude a failure or a loss without tries left, as the `on_failure` of the step says."""
    if isinstance(report, Fail):
        loss = FinalFailure(
            problem=report.error, digest=report.digest, usage=report.usage, failed=1
        )
    else:
        loss = FinalFailure(problem=report.problem, vanished=1)
    return _write_failure(work, report, task, loss)


def _write_failure(
    work: UnitOfWork, report: Complete | Fail | Lose, task: Row, loss: FinalFailure
) -> TransitionResult:
    named = (report.task_id, report.fence, loss.problem, loss.digest, loss.usage)
    if task["on_failure"] == "goto":
        step = work.workflow_cache.step(
            work.tx, task["workflow"], task["workflow_version"], task["step"]
        )
        if step.handed_over is not None:
            return _hand_over(work, step.handed_over, (*named, loss.actor))
        plan = step.on_failure
        if rows := work.change_tasks("go_back", rows=[(*named, plan.max_rounds, loss.actor)]):
            reopen.supersede_children(work, rows, "goto")
            go_back_to_step(work, task, str(plan.step), loss.feedback or loss.problem)
            detail = f"it goes back to {plan.step}, and is tried again after it"
            return TransitionResult(ok=True, status="queued", detail=detail)
    row = (*named, loss.failed, loss.vanished, loss.rejected, loss.actor)
    (changed,) = work.change_tasks("conclude_tasks", rows=[row])
    skip_unaccepted_work(work, [changed])
    return TransitionResult(
        ok=True,
        status=changed["status"],
        detail=_describe_outcome(changed["status"], report.task_id),
    )


def _hand_over(work: UnitOfWork, step: Step, named: tuple[object, ...]) -> TransitionResult:
    """Hand a task to the other agent that its step names, with the failure as its feedback."""
    limits = encode_limits(step.retry, step.timeout, None)
    columns = ("max_attempts", "max_lost", "backoff", "backoff_max", "timeout")
    row = (
        *named,
        step.agent,
        write_tags((*step.tags, *_tags_of_host(work, str(named[0])))),
        *(limits[name] for name in columns),
        step.work is not None and step.work.external,
        step.on_failure.action,
    )
    work.change_tasks("escalate_tasks", rows=[row])
    return TransitionResult(ok=True, status="queued", detail=f"it is handed to {step.agent}")


def _tags_of_host(work: UnitOfWork, task_id: str) -> tuple[str, ...]:
    """The tag of the host that a task is pinned to, which stays when its agent changes."""
    (task,) = work.tx.read("tasks_by_id", ids=[task_id])
    tag = find_host_tag(task["tags"])
    return () if tag is None else (tag,)


def skip_unaccepted_work(work: UnitOfWork, rows: Sequence[Row]) -> None:
    """Skip the subjects of skipped verifiers: without an acceptance their outputs do not count."""
    for row in rows:
        if row["skipped"] and row["verifies"] is not None:
            work.change_tasks("skip_unaccepted", task_id=row["entity"])


def _describe_outcome(status: str, task_id: str) -> str:
    """Say what `on_failure` made of a task that has failed for good."""
    if status == "queued":
        return "it waits for approval: " + advise(Action.APPROVE, task_id)
    return "it is skipped" if status == "done" else ""


def go_back_to_step(work: UnitOfWork, task: Row, step: str, feedback: str) -> None:
    """Re-open an earlier step, with the feedback or error of the task that goes back to it."""
    (target,) = work.tx.read("task_beside", task_id=task["id"], step=step)
    extent = reopen.ReopenExtent(apart=task["id"], feedback=feedback)
    reopen.reopen_task_within_run(work, target["id"], "goto", reopen.STARTED_STATUSES, extent)
    reopen.lift_failing_run(work, task["run_id"], "goto")
    reopen.unblock_task_gone_back(work, task["id"], "goto")


def _describe_unknown_items(verdict: Verdict, task: Row) -> str | None:
    if task["subject_kind"] != TaskKind.GROUP:
        return None
    mistake = find_items_mistake(verdict.items, task["subject_total"] or 0)
    return None if mistake is None else f"a verdict's `items`: {mistake}"


def _describe_missing_verdict(report: Complete) -> str:
    output = json.loads(report.output)
    items = output.get("items") if isinstance(output, dict) else None
    mistake = None if items is None else find_items_mistake(items)
    return NO_VERDICT if mistake is None else f"a verdict's `items`: {mistake}"


def _read_verdict(report: Complete) -> Verdict | None:
    # This test is cheap: every result is asked, and nearly none is a verdict.
    if '"verdict"' not in report.output:
        return None
    return read_verdict(json.loads(report.output))
