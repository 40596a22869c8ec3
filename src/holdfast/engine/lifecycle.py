"""What workers report of their attempts: every statement is fenced by task and attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.engine.answers import answer_renewal, answer_report
from holdfast.engine.group import Group
from holdfast.engine.operations import Complete, Fail, Lose, Release, Renew, Report
from holdfast.model.result import TransitionResult
from holdfast.store.database import Row

R = TypeVar("R", bound=Report)


def complete(group: Group, reports: Sequence[Complete]) -> list[TransitionResult]:
    changed = group.change_tasks(
        "complete_tasks",
        rows=[(r.task_id, r.fence, r.output, r.digest, r.usage) for r in reports],
    )
    return _answer(group, reports, changed, answer_report)


def fail(group: Group, reports: Sequence[Fail]) -> list[TransitionResult]:
    changed = group.change_tasks(
        "fail_tasks",
        rows=[
            (r.task_id, r.fence, r.error, r.digest, r.retryable, r.jitter, r.usage) for r in reports
        ],
    )
    return _answer(group, reports, changed, answer_report)


def release(group: Group, reports: Sequence[Release]) -> list[TransitionResult]:
    changed = group.change_tasks(
        "release_tasks", rows=[(r.task_id, r.fence, r.until) for r in reports]
    )
    return _answer(group, reports, changed, answer_report)


def renew(group: Group, reports: Sequence[Renew]) -> list[TransitionResult]:
    renewed = group.tx.write(
        "renew_leases",
        rows=[(r.task_id, r.fence, r.lease, r.progress, r.usage) for r in reports],
    )
    changed = [{"entity": row["id"], "status": "running"} for row in renewed]
    return _answer(group, reports, changed, answer_renewal)


def lose(group: Group, reports: Sequence[Lose]) -> list[TransitionResult]:
    problem = '"lost: the worker stopped renewing its lease"'
    changed = group.change_tasks(
        "lose_tasks", rows=[(r.task_id, r.fence, problem) for r in reports]
    )
    return _answer(group, reports, changed, answer_report)


def _answer(
    group: Group,
    reports: Sequence[R],
    changed: list[Row],
    explain: Callable[[R, Row], TransitionResult],
) -> list[TransitionResult]:
    """RETURNING is the answer; only what it leaves out is looked up."""
    accepted = {row["entity"]: row["status"] for row in changed}
    refused = [report for report in reports if report.task_id not in accepted]
    records: dict[str, Row] = {}
    if refused:
        found = group.tx.read("attempt_records", rows=[(r.task_id, r.fence) for r in refused])
        records = {row["task_id"]: row for row in found}
    return [
        TransitionResult(ok=True, status=accepted[report.task_id])
        if report.task_id in accepted
        else explain(report, records[report.task_id])
        for report in reports
    ]
