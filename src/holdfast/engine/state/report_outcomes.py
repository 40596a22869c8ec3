"""Outcomes of reports: each is written by statements that are fenced by task and attempt."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TypeVar

from holdfast.engine import lines
from holdfast.engine.core.operation import Complete, Fail, Lose, Release, Renew, Report
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.report_refusals import answer_renewal, answer_report, refuse
from holdfast.engine.state import durable, usage_limits, verdicts
from holdfast.engine.state.durable import AskQuestion
from holdfast.errors import HoldfastError
from holdfast.model.result import Refusal, TransitionResult
from holdfast.store.database import Row
from holdfast.store.sql_text.queries import Rows

AnyReport = TypeVar("AnyReport", bound=Report)
_TASK_ID = attrgetter("task_id")


def complete_tasks(work: UnitOfWork, reports: Sequence[Complete]) -> list[TransitionResult]:
    if all(report.head is None for report in reports):
        return _complete_plainly(work, reports)
    plain = [report for report in reports if report.head is None]
    headed = [report for report in reports if report.head is not None]
    answers = dict(zip(map(_TASK_ID, plain), _complete_plainly(work, plain), strict=True))
    answers |= _complete_with_heads(work, headed)
    return [answers[report.task_id] for report in reports]


def _complete_with_heads(
    work: UnitOfWork, reports: Sequence[Complete]
) -> dict[str, TransitionResult]:
    """Complete attempts that give their lines new heads: a task is done exactly with its head."""
    looked = verdicts.check_outputs(work, reports)
    broken = _fail_misfits(work, [each for each in looked.values() if each is not None])
    sound = [report for report in reports if report.task_id not in broken]
    recorded = lines.insert_heads(work, sound)
    changed = _write_completions(
        work, [each for each in sound if each.task_id in recorded], "complete_with_heads"
    )
    answers = _answer_reports(work, sound, changed, lines.explain_completion(work))
    return dict(zip(map(_TASK_ID, sound), answers, strict=True)) | broken


def _complete_plainly(work: UnitOfWork, reports: Sequence[Complete]) -> list[TransitionResult]:
    changed = _write_completions(work, reports)
    done = {row["entity"] for row in changed}
    left = [report for report in reports if report.task_id not in done]
    looked = verdicts.check_outputs(work, left) if left else {}
    if not looked:
        return _answer_reports(work, reports, changed, answer_report, _conclude_verifier)
    fitting = [report for report in left if looked.get(report.task_id, report) is None]
    changed += _write_completions(work, fitting, checked=True)
    broken = _fail_misfits(work, [each for each in looked.values() if each is not None])
    sound = [report for report in reports if report.task_id not in broken]
    answers = _answer_reports(work, sound, changed, answer_report, _conclude_verifier)
    by_task = dict(zip((report.task_id for report in sound), answers, strict=True)) | broken
    return [by_task[report.task_id] for report in reports]


def _write_completions(
    work: UnitOfWork,
    reports: Sequence[Complete],
    query: str = "complete_tasks",
    *,
    checked: bool = False,
) -> list[Row]:
    if not reports:
        return []
    changed = work.change_tasks(query, rows=completion_rows(reports, checked=checked))
    outputs = {report.task_id: report.output for report in reports}
    for row in changed:
        if row["verifies"] is None:
            gave = outputs[row["entity"]]
            work.given[row["entity"]] = {"id": row["entity"], "step": row["step"], "output": gave}
    return changed


def completion_rows(reports: Sequence[Complete], *, checked: bool = False) -> Rows:
    """The rows of `complete_tasks`, in the order in which every process locks tasks."""
    return [
        (r.task_id, r.fence, r.output, r.digest, r.usage, verdicts.is_acceptance(r), checked)
        for r in sorted(reports, key=_TASK_ID)
    ]


def _fail_misfits(work: UnitOfWork, failures: list[Fail]) -> dict[str, TransitionResult]:
    """Fail the attempts whose outputs are not what their steps declare."""
    answers = fail_tasks(work, failures) if failures else []
    return {
        each.task_id: refuse(Refusal.INVALID_OUTPUT, answer.status, json.loads(each.error))
        for each, answer in zip(failures, answers, strict=True)
    }


def _conclude_verifier(work: UnitOfWork, report: Complete, task: Row) -> TransitionResult:
    reply = verdicts.conclude_verifier(work, report, task)
    if isinstance(reply, Fail):
        (failed,) = fail_tasks(work, [reply])
        return refuse(Refusal.INVALID_OUTPUT, failed.status, json.loads(reply.error))
    return reply


def fail_tasks(work: UnitOfWork, reports: Sequence[Fail]) -> list[TransitionResult]:
    lines.record_leavings(work, reports)
    changed = work.change_tasks(
        "fail_tasks",
        rows=[
            (r.task_id, r.fence, r.error, r.digest, r.retryable, r.jitter, r.usage) for r in reports
        ],
    )
    return _answer_reports(work, reports, changed, answer_report, verdicts.conclude_failure)


def release_tasks(work: UnitOfWork, reports: Sequence[Release]) -> list[TransitionResult]:
    lines.record_drafts(work, reports)
    changed = work.change_tasks(
        "release_tasks", rows=[(r.task_id, r.fence, r.until, r.usage) for r in reports]
    )
    reached = {each.task_id: each.limit for each in reports if each.limit is not None}
    limited = [row for row in changed if row["entity"] in reached]
    usage_limits.note_limits(work, limited, reached)
    return _answer_reports(work, reports, changed, answer_report)


def ask_questions(
    work: UnitOfWork, reports: Sequence[AskQuestion]
) -> list[TransitionResult | HoldfastError]:
    refused = durable.record_notes(work, reports)
    lines.record_drafts(work, [r for r in reports if r.task_id not in refused])
    rows = [(r.task_id, r.fence, r.question) for r in reports if r.task_id not in refused]
    changed = work.change_tasks("ask_tasks", rows=rows)
    answers = _answer_reports(work, reports, changed, answer_report)
    return [refused.get(r.task_id) or told for r, told in zip(reports, answers, strict=True)]


def renew_leases(work: UnitOfWork, reports: Sequence[Renew]) -> list[TransitionResult]:
    renewed = work.tx.write(
        "renew_leases",
        rows=[(r.task_id, r.fence, r.lease, r.progress, r.usage) for r in reports],
    )
    changed = [{"entity": row["id"], "status": "running"} for row in renewed]
    answers = _answer_reports(work, reports, changed, answer_renewal)
    told = {report.task_id for report in reports if report.usage is not None}
    if not told:
        return answers
    work.runs_with_usage |= {
        row["run_id"] for row in renewed if row["id"] in told and row["run_id"]
    }
    over = _end_overspent(work, [report for report in reports if report.task_id in told])
    return [over.get(r.task_id, answer) for r, answer in zip(reports, answers, strict=True)]


def _end_overspent(work: UnitOfWork, reports: Sequence[Renew]) -> dict[str, TransitionResult]:
    """Fail the attempts that report more usage than one may have.

    The answer tells their workers to stop.
    """
    failures = usage_limits.find_overspent_attempts(work, reports)
    answers = fail_tasks(work, failures) if failures else []
    return {
        each.task_id: refuse(
            Refusal.ALREADY_TERMINAL,
            answer.status,
            f"the attempt has failed: {json.loads(each.error)['message']}",
        )
        for each, answer in zip(failures, answers, strict=True)
    }


def lose_tasks(work: UnitOfWork, reports: Sequence[Lose]) -> list[TransitionResult]:
    changed = work.change_tasks(
        "lose_tasks", rows=[(r.task_id, r.fence, r.problem) for r in reports]
    )
    if len(changed) < len(reports):
        work.tx.write("shorten_leases", ids=[r.task_id for r in reports])
    return _answer_reports(work, reports, changed, answer_report, _conclude_loss)


def _conclude_loss(work: UnitOfWork, report: Lose, task: Row) -> TransitionResult | None:
    return verdicts.conclude_failure(work, report, task) if task["expired"] else None


@lru_cache(maxsize=10)
def _accepted(status: str) -> TransitionResult:
    return TransitionResult(ok=True, status=status)


def _answer_reports(
    work: UnitOfWork,
    reports: Sequence[AnyReport],
    changed: list[Row],
    explain: Callable[[AnyReport, Row], TransitionResult],
    conclude: Callable[[UnitOfWork, AnyReport, Row], TransitionResult | None] | None = None,
) -> list[TransitionResult]:
    """Answer from the rows that changed.

    Conclude the other reports one by one, or explain their refusal.
    """
    accepted = {row["entity"]: _accepted(row["status"]) for row in changed}
    refused = [report for report in reports if report.task_id not in accepted]
    if refused and conclude is not None:
        accepted |= _conclude_refused(work, refused, conclude)
        refused = [report for report in refused if report.task_id not in accepted]
    if refused:
        found = work.tx.read("attempt_records", rows=[(r.task_id, r.fence) for r in refused])
        records = {row["task_id"]: row for row in found}
        accepted |= {r.task_id: explain(r, records[r.task_id]) for r in refused}
    return [accepted[report.task_id] for report in reports]


def _conclude_refused(
    work: UnitOfWork,
    refused: Sequence[AnyReport],
    conclude: Callable[[UnitOfWork, AnyReport, Row], TransitionResult | None],
) -> dict[str, TransitionResult]:
    """Conclude reports under a valid fence whose outcome one statement cannot decide."""
    rows = work.tx.read("task_judged", rows=[(r.task_id, r.fence) for r in refused])
    by_task = {report.task_id: report for report in refused}
    answers = {row["id"]: conclude(work, by_task[row["id"]], row) for row in rows}
    return {task_id: answer for task_id, answer in answers.items() if answer is not None}
