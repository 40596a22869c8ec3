"""Explanations as JSON: why a task or run does not go on, with the commands that would help."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.engine import Engine
from holdfast.engine.explain.explanation import Explanation, TakenBy
from holdfast.engine.explain.why_run import RunExplanation
from holdfast.errors import read_traceback
from holdfast.model.advice import advice_of, join_texts
from holdfast.model.status import Status, TaskKind
from holdfast.model.worker import LiveWorker
from holdfast.service.queries.command_lines import (
    ANY_PROGRAM,
    WriteCommand,
    describe_command,
    describe_text,
)
from holdfast.service.queries.views import View


def explain(
    engine: Engine,
    identifier: str,
    *,
    agents: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    typed: WriteCommand = str,
) -> View:
    """The explanation of a run or task; `typed` writes each command for the front end."""
    workers = engine.workers.list()
    if identifier.startswith("t_"):
        told = engine.why(identifier, agents=agents, tags=tags)
        view = _view_task(told, _check_live_workers(told, workers), typed)
    else:
        view = _view_run(engine.why_run(identifier, agents=agents, tags=tags), workers, typed)
    # Whatever else is said, nothing goes on while nobody can write.
    if (stopped := engine.database.find_stopped_holder()) is not None:
        view["summary"] += f" But {stopped}."
    return view


def _view_run(told: RunExplanation, workers: Sequence[LiveWorker], typed: WriteCommand) -> View:
    free = [each for each in told.tasks if each.claimable]
    unserved = {
        each.task.id: served for each in free if (served := _describe_missing_worker(each, workers))
    }
    fixes = _write_commands(told.fix)
    fixes += [fix for each in told.tasks for fix in _write_fixes(each, *each.own_fixes)]
    fixes += [f"holdfast logs {each.task.id}" for each in free if each.given_back]
    fixes += [
        fix for each in free if each.task.id in unserved for fix in _write_fixes(each, each.fix)
    ]
    lines = {
        each.task.id: join_texts(": ", [each.one_line, *unserved.get(each.task.id, ())])
        for each in told.tasks
    }
    return {
        "id": told.run.id,
        "status": told.run.status.value,
        "summary": describe_text(told.summary, typed),
        "tasks": [
            {
                "id": each.task.id,
                "state": each.task.state,
                "line": describe_text(lines[each.task.id], typed),
            }
            for each in told.tasks
        ],
        "more": told.more,
        "fixes": [typed(fix) for fix in dict.fromkeys(fixes)],
    }


def _describe_missing_worker(told: Explanation, workers: Sequence[LiveWorker]) -> list[str]:
    """The text that says that no live worker would take a task; empty if one would."""
    served = _check_live_workers(told, workers)
    return [] if served is None or served["ok"] else [served["detail"]]


def _view_task(told: Explanation, served: View | None, typed: WriteCommand) -> View:
    waits = served is not None and not served["ok"]
    fixes = _write_fixes(told, *(clause.fix for clause in told.clauses))
    fixes += [f"holdfast logs {told.task.id}"] if told.given_back else []
    # Where a live worker would take the task, starting another worker does not help.
    fixes += _write_fixes(told, told.fix) if served is None or waits else []
    clauses = [
        {"name": clause.name, "ok": clause.ok, "detail": describe_text(clause.detail, typed)}
        for clause in told.clauses
    ]
    return {
        "id": told.task.id,
        "status": told.task.status.value,
        "state": told.task.state,
        "summary": describe_text(told.summary, typed),
        **({"traceback": lines} if (lines := read_traceback(told.task.error)) else {}),
        "claimable": told.claimable,
        "clauses": clauses if served is None else [*clauses, served],
        "fixes": [typed(fix) for fix in dict.fromkeys(fixes)],
    }


def _check_live_workers(told: Explanation, workers: Sequence[LiveWorker]) -> View | None:
    """Whether a live worker would take a queued task; None where the task needs no worker."""
    task = told.task
    if task.kind is not TaskKind.WORK or task.status is not Status.QUEUED:
        return None
    if told.no_worker:
        return {"name": "worker", "ok": False, "detail": told.no_worker}
    fitting = [
        each for each in workers if task.agent in each.agents and {*task.tags} <= {*each.tags}
    ]
    serving = [each for each in fitting if each.told is None and each.pausing is None]
    wanted = f'"{task.agent}"' + (f" with {', '.join(task.tags)}" if task.tags else "")
    many = "live worker" if len(serving) == len(workers) == 1 else "live workers"
    verb = "serves" if len(serving) == 1 else "serve"
    detail = f"{len(serving)} of {len(workers)} {many} {verb} {wanted}"
    detail = "; ".join(
        [detail, *(f"{each.name}: {each.pausing}" for each in fitting if each.pausing)]
    )
    return {"name": "worker", "ok": bool(serving), "detail": detail}


def _write_fixes(told: Explanation, *fixes: str) -> list[str]:
    """The commands of some fixes; a task of a program's functions needs a worker of the program."""
    app = ANY_PROGRAM if told.taken_by is TakenBy.PROGRAM else None
    return [command for fix in fixes for command in _write_commands(fix, app)]


def _write_commands(fix: str, app: str | None = None) -> list[str]:
    return [describe_command(each, app=app) for each in advice_of(fix)]
