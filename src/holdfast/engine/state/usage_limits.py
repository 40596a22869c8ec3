"""Usage limits of agents, and budgets of runs and attempts.

A task that met a usage limit is held; other tasks of the agent find the limit when they are
claimed. A run at its budget is held, and an attempt over its budget has failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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


def note_limits(work: UnitOfWork, rows: Sequence[Row], reached: Mapping[str, int]) -> None:
    """Note the limits that some released tasks have met, for all agents on the same account."""
    runs = {row["run_id"] for row in rows if row["run_id"] is not None}
    facts = work.run_cache.read_facts(work.tx, runs) if runs else {}
    for row in rows:
        agents = frozenset({row["agent"]})
        if (run := facts.get(row["run_id"])) is not None:
            version = (run.workflow, run.version)
            agents = work.workflow_cache.agents_on_account(work.tx, version, row["agent"])
        work.limits += [(each, reached[row["entity"]], row["entity"]) for each in sorted(agents)]


def hold_limited_tasks(work: UnitOfWork) -> None:
    """Hold the tasks that met a limit, before the claims.

    The rows of other tasks stay as they are: claims and queries read the limit itself.
    """
    met = {task_id: until for _, until, task_id in work.limits}
    for task_id, until in met.items():
        work.change_tasks("limit_task", task_id=task_id, until=until)


def agents_below_limit(work: UnitOfWork, agents: Sequence[str]) -> tuple[str, ...]:
    """Those of some agents that have reached no limit in this unit of work.

    Limits are written only after every counter is locked, so that the claims here do not read them.
    """
    reached = {agent for agent, _, _ in work.limits}
    return tuple(agent for agent in agents if agent not in reached)


def write_limits(work: UnitOfWork) -> None:
    """Write new limits, and delete those that have lifted.

    This comes after every counter, in the order of agents, because other processes write limits
    too.
    """
    if work.lifted:
        work.tx.run("forget_limits")
    for agent, until, task_id in sorted(work.limits):
        work.tx.run("note_limit", agent=agent, until=until, task_id=task_id)


def lift_limits(work: UnitOfWork, lifts: Sequence[LiftLimit]) -> list[TransitionResult]:
    """End the limits of agents; the answer is `repeated` for an agent that has none."""
    agents = sorted({each.agent for each in lifts})
    ended = {agent for agent in agents if work.tx.write("end_limit", agent=agent)}
    if ended:
        work.wake()
    return [TransitionResult(ok=True, repeated=each.agent not in ended) for each in lifts]


def notice_lifted_limits(work: UnitOfWork) -> None:
    """Wake claims if a limit has lifted: tasks of its agent are ready, though unchanged."""
    if work.tx.read("lifted_limits"):
        work.lifted = True
        work.wake()


def hold_spent_runs(work: UnitOfWork) -> None:
    """Hold the runs at their budgets, of those whose attempts have ended or reported usage."""
    if work.runs_with_usage:
        used, work.runs_with_usage = work.runs_with_usage, set()
        hold_runs_at_budget(work, work.run_cache.read_facts(work.tx, used).values())


def hold_runs_at_budget(work: UnitOfWork, runs: Iterable[RunFacts]) -> None:
    """Hold those of some runs and their callers that are at their budgets, with all runs below."""
    limits = {limit for run in runs for limit in run.limits}
    if not limits:
        return
    if held := work.change_runs("hold_spent_runs", ids=sorted(limits)):
        work.change_tasks("copy_run_holds", ids=[row["entity"] for row in held])


def find_overspent_attempts(work: UnitOfWork, reports: Sequence[Renew]) -> list[Fail]:
    """The failures of those renewed attempts whose usage is over the budget of one attempt."""
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
