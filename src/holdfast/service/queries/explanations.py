"""Explanations as JSON: why a task or run does not go on, with the commands that would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.engine.engine import Engine
from holdfast.engine.explain.explanation import Clause, Explanation, TakenBy
from holdfast.engine.explain.why_run import RunExplanation, describe_alike
from holdfast.errors import read_traceback
from holdfast.model.advice import advice_of
from holdfast.service.queries.command_lines import (
    ANY_PROGRAM,
    WriteCommand,
    describe_command,
    describe_text,
)
from holdfast.service.queries.views import View


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvisedCommand:
    """A command to type, and whether it only tells more."""

    text: str
    looks: bool


def explain(
    engine: Engine,
    identifier: str,
    *,
    agents: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    typed: WriteCommand = str,
) -> View:
    """The explanation of a run or task; `typed` writes each command for the front end."""
    if identifier.startswith("t_"):
        view = _view_task(engine.why(identifier, agents=agents, tags=tags), typed)
    else:
        view = _view_run(engine.why_run(identifier, agents=agents, tags=tags), typed)
    # Whatever else is said, nothing goes on while nobody can write.
    if (stopped := engine.database.find_stopped_holder()) is not None:
        view["summary"] += f" But {stopped}."
    return view


def _view_run(told: RunExplanation, typed: WriteCommand) -> View:
    free = [each for each in told.tasks if each.claimable]
    commands = _write_commands(told.fix)
    commands += [fix for each in told.tasks for fix in _write_fixes(each, *each.own_fixes)]
    commands += [_read_log(each) for each in free if each.given_back]
    commands += [fix for each in free for fix in _write_fixes(each, *each.taking_fixes)]
    return {
        "id": told.run.id,
        "status": told.run.status.value,
        "summary": describe_text(told.summary, typed),
        "tasks": [_view_alike(alike, typed) for alike in told.folded],
        "more": told.more,
        **_view_commands(commands, typed),
    }


def _view_commands(commands: Sequence[AdvisedCommand], typed: WriteCommand) -> View:
    """The commands that change something, each once, and apart the commands that only tell more."""
    found = dict.fromkeys(commands)
    return {
        name: [typed(each.text) for each in found if each.looks is looks]
        for name, looks in (("fixes", False), ("looks", True))
    }


def _view_alike(alike: Sequence[Explanation], typed: WriteCommand) -> View:
    """The first of some tasks of which the same is said, with the others in `alike`."""
    first, *others = alike
    view: View = {
        "id": first.task.id,
        "state": first.task.state,
        "line": describe_text(first.one_line, typed),
    }
    if others:
        view |= {"alike": [each.task.id for each in others], "others": describe_alike(alike)}
    return view


def _view_task(told: Explanation, typed: WriteCommand) -> View:
    commands = _write_fixes(told, *(clause.fix for clause in told.clauses))
    commands += [_read_log(told)] if told.given_back else []
    commands += _write_fixes(told, *told.taking_fixes)
    worker = [] if told.worker is None else [told.worker]
    return {
        "id": told.task.id,
        "status": told.task.status.value,
        "state": told.task.state,
        "summary": describe_text(told.summary, typed),
        **({"traceback": lines} if (lines := read_traceback(told.task.error)) else {}),
        "claimable": told.claimable,
        "clauses": [_view_clause(each, typed) for each in (*told.clauses, *worker)],
        **_view_commands(commands, typed),
    }


def _view_clause(clause: Clause, typed: WriteCommand) -> View:
    view: View = {
        "name": clause.name,
        "ok": clause.ok,
        "detail": describe_text(clause.detail, typed),
    }
    return view | ({"more": [*clause.more]} if clause.more else {})


def _write_fixes(told: Explanation, *fixes: str) -> list[AdvisedCommand]:
    """The commands of some fixes; a task of a program's functions needs a worker of the program."""
    app = ANY_PROGRAM if told.taken_by is TakenBy.PROGRAM else None
    return [command for fix in fixes for command in _write_commands(fix, app)]


def _write_commands(fix: str, app: str | None = None) -> list[AdvisedCommand]:
    return [
        AdvisedCommand(text=describe_command(each, app=app), looks=each.action.looks)
        for each in advice_of(fix)
    ]


def _read_log(told: Explanation) -> AdvisedCommand:
    return AdvisedCommand(text=f"holdfast logs {told.task.id}", looks=True)
