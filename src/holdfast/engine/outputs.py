"""What attempts give, against what their steps declare to give."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.engine.answers import digest_misfit
from holdfast.engine.group import Group
from holdfast.engine.operations import Complete, Fail
from holdfast.model import json_schema


def check(group: Group, reports: Sequence[Complete]) -> dict[str, Fail | None]:
    """Of the tasks that declare what they give: None where it fits, else how the attempt failed."""
    rows = group.tx.read("declared_reports", rows=[(r.task_id, r.fence) for r in reports])
    by_task = {report.task_id: report for report in reports}
    return {row["id"]: _check(group, by_task[row["id"]], row) for row in rows}


def _check(group: Group, report: Complete, task: dict[str, str]) -> Fail | None:
    step = group.graphs.step(group.tx, task["workflow"], task["workflow_version"], task["step"])
    declared = None if step.work is None else step.work.outputs
    misfits = (
        []
        if declared is None
        else json_schema.misfits(declared, json.loads(report.output), "output")
    )
    return fail(report, "; ".join(misfits)) if misfits else None


def fail(report: Complete, why: str) -> Fail:
    """The failure of an attempt whose result cannot be taken; it is tried again."""
    return Fail(
        task_id=report.task_id,
        fence=report.fence,
        error=json.dumps(why),
        digest=digest_misfit(report),
        retryable=True,
        jitter=1.0,
        usage=report.usage,
    )
