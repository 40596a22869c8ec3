"""Why a task or run stands where it stands, as JSON, with the commands that would change it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.engine import Engine
from holdfast.engine.why import Explanation
from holdfast.service.views import View
from holdfast.service.wording import in_commands


def explain(
    engine: Engine,
    identifier: str,
    *,
    agents: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
) -> View:
    if identifier.startswith("t_"):
        return view_explanation(engine.why(identifier, agents=agents, tags=tags))
    told = engine.why_run(identifier, agents=agents, tags=tags)
    fixes = [told.fix, *(fix for each in told.tasks for fix in each.own_fixes)]
    return {
        "id": told.run.id,
        "status": told.run.status.value,
        "summary": in_commands(told.summary),
        "tasks": [
            {"id": each.task.id, "state": each.task.state, "line": in_commands(each.line)}
            for each in told.tasks
        ],
        "more": told.more,
        "fixes": _commands(fixes),
    }


def view_explanation(told: Explanation) -> View:
    fixes = [*(clause.fix for clause in told.clauses), told.fix]
    return {
        "id": told.task.id,
        "status": told.task.status.value,
        "state": told.task.state,
        "summary": in_commands(told.summary),
        "claimable": told.claimable,
        "clauses": [
            {"name": clause.name, "ok": clause.ok, "detail": in_commands(clause.detail)}
            for clause in told.clauses
        ],
        "fixes": _commands(fixes),
    }


def _commands(fixes: Sequence[str]) -> list[str]:
    """Each thing to type once, in the order it was said."""
    parts = [part for fix in fixes for part in in_commands(fix).split("; ") if part]
    return list(dict.fromkeys(parts))
