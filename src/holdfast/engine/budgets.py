"""What runs may use in all, and one attempt of them: who is at a limit is held, or has failed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from holdfast.engine.facts import RunFacts
from holdfast.engine.group import Group
from holdfast.engine.operations import Fail, Renew
from holdfast.model.budget import CODE, tell_usd, to_dollars
from holdfast.model.text import digest
from holdfast.store.database import Row


def hold_spent(group: Group) -> None:
    """Hold those of the runs whose attempts ended or told of their usage that are at a limit."""
    if group.used:
        used, group.used = group.used, set()
        hold_runs_at_budget(group, group.facts.of(group.tx, used).values())


def hold_runs_at_budget(group: Group, runs: Iterable[RunFacts]) -> None:
    """Hold those of some runs, and of what called them, that are at a limit, with all below."""
    limits = {limit for run in runs for limit in run.limits}
    if not limits:
        return
    if held := group.change_runs("hold_spent_runs", ids=sorted(limits)):
        group.change_tasks("copy_run_holds", ids=[row["entity"] for row in held])


def overspent(group: Group, reports: Sequence[Renew]) -> list[Fail]:
    """How those of some renewed attempts failed that tell of more than one of them may use."""
    found = group.tx.read("overspent_attempts", rows=[(r.task_id, r.fence) for r in reports])
    fences = {report.task_id: report.fence for report in reports}
    return [_fail(row, fences[row["id"]]) for row in found]


def _fail(row: Row, fence: int) -> Fail:
    used, most = (tell_usd(to_dollars(row[name])) for name in ("used", "most"))
    error = json.dumps({"code": CODE, "message": f"it used {used}, and an attempt may use {most}"})
    return Fail(
        task_id=row["id"],
        fence=fence,
        error=error,
        digest=digest(error),
        retryable=True,
        jitter=1.0,
    )
