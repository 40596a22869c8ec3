"""Usage limits of agents: who met one is held, and who else waits for that agent finds it.

What is asked about the usage limits of agents: that one is over.

What runs may use in all, and one attempt of them: who is at a limit is held, or has failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.engine.core.operation import Fail, Keys, Operation, Renew
from holdfast.engine.core.run_cache import RunFacts
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.model.budget import BUDGET_CODE, describe_usd, to_dollars
from holdfast.model.result import TransitionResult
from holdfast.model.text import digest
from holdfast.store.database import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class LiftLimit(Operation):
    agent: str

    @property
    def keys(self) -> Keys:
        return (f"limit:{self.agent}",)


def hold_limited_tasks(work: UnitOfWork) -> None:
    """Hold the tasks that met a limit, before anybody claims.

    Nobody else's row is written: a claim asks for the limit itself, and so does who looks.
    """
    for _, until, task_id in work.limits:
        work.change_tasks("limit_task", task_id=task_id, until=until)


def agents_below_limit(work: UnitOfWork, agents: Sequence[str]) -> tuple[str, ...]:
    """Those of some agents that have reached no limit in this very group.

    Their limits are written down only after every counter is held.
    """
    reached = {agent for agent, _, _ in work.limits}
    return tuple(agent for agent in agents if agent not in reached)


def write_limits(work: UnitOfWork) -> None:
    """Write the limits down for who comes later, and forget those that have lifted.

    After every counter, and in the order of the agents: another process may write down the same.
    """
    if work.lifted:
        work.tx.run("forget_limits")
    for agent, until, task_id in sorted(work.limits):
        work.tx.run("note_limit", agent=agent, until=until, task_id=task_id)


def lift_limits(work: UnitOfWork, lifts: Sequence[LiftLimit]) -> list[TransitionResult]:
    """Have agents be at no limit any more; repeated where one is at none."""
    agents = sorted({each.agent for each in lifts})
    ended = {agent for agent in agents if work.tx.write("end_limit", agent=agent)}
    if ended:
        work.wake()
    return [TransitionResult(ok=True, repeated=each.agent not in ended) for each in lifts]


def notice_lifted_limits(work: UnitOfWork) -> None:
    """Who waits for an agent whose limit has lifted is ready, though nothing of it was changed."""
    if work.tx.read("lifted_limits"):
        work.lifted = True
        work.wake()


def hold_spent_runs(work: UnitOfWork) -> None:
    """Hold those of the runs whose attempts ended or told of their usage that are at a limit."""
    if work.runs_with_usage:
        used, work.runs_with_usage = work.runs_with_usage, set()
        hold_runs_at_budget(work, work.run_cache.of(work.tx, used).values())


def hold_runs_at_budget(work: UnitOfWork, runs: Iterable[RunFacts]) -> None:
    """Hold those of some runs, and of what called them, that are at a limit, with all below."""
    limits = {limit for run in runs for limit in run.limits}
    if not limits:
        return
    if held := work.change_runs("hold_spent_runs", ids=sorted(limits)):
        work.change_tasks("copy_run_holds", ids=[row["entity"] for row in held])


def find_overspent_attempts(work: UnitOfWork, reports: Sequence[Renew]) -> list[Fail]:
    """How those of some renewed attempts failed that tell of more than one of them may use."""
    found = work.tx.read("overspent_attempts", rows=[(r.task_id, r.fence) for r in reports])
    fences = {report.task_id: report.fence for report in reports}
    return [_build_failure(row, fences[row["id"]]) for row in found]


def _build_failure(row: Row, fence: int) -> Fail:
    used, most = (describe_usd(to_dollars(row[name])) for name in ("used", "most"))
    error = json.dumps(
        {"code": BUDGET_CODE, "message": f"it used {used}, and an attempt may use {most}"}
    )
    return Fail(
        task_id=row["id"],
        fence=fence,
        error=error,
        digest=digest(error),
        retryable=True,
        jitter=1.0,
    )
