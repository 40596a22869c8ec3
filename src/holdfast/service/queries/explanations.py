"""Explanations as JSON: why a task or run does not go on, and what would help."""

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
    AdviceWords,
    CommandWords,
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
    words: AdviceWords | None = None,
) -> View:
    """The explanation of a run or task, with advice in the words of the front end."""
    words = words or CommandWords()
    if identifier.startswith("t_"):
        view = _view_task(engine.why(identifier, agents=agents, tags=tags), words)
    else:
        view = _view_run(engine.why_run(identifier, agents=agents, tags=tags), words)
    # Whatever else is said, nothing goes on while nobody can write.
    if (stopped := engine.database.find_stopped_holder()) is not None:
        view["summary"] += f" But {stopped}."
    return view


def _view_run(told: RunExplanation, words: AdviceWords) -> View:
    free = [each for each in told.tasks if each.claimable]
    commands = _write_commands(told.fix, words)
    commands += [fix for each in told.tasks for fix in _write_fixes(each, words, *each.own_fixes)]
    commands += [_read_log(each, words) for each in free if each.given_back]
    commands += [fix for each in free for fix in _write_fixes(each, words, *each.taking_fixes)]
    return {
        "id": told.run.id,
        "status": told.run.status.value,
        "summary": words.describe_text(told.summary),
        "tasks": [_view_alike(alike, words) for alike in told.folded],
        "more": told.more,
        **_view_commands(commands),
    }


def _view_commands(commands: Sequence[AdvisedCommand]) -> View:
    """The commands that change something, each once, and apart the commands that only tell more."""
    found = dict.fromkeys(commands)
    return {
        name: [each.text for each in found if each.looks is looks]
        for name, looks in (("fixes", False), ("looks", True))
    }


def _view_alike(alike: Sequence[Explanation], words: AdviceWords) -> View:
    """The first of some tasks of which the same is said, with the others in `alike`."""
    first, *others = alike
    view: View = {
        "id": first.task.id,
        "state": first.task.state,
        "line": words.describe_text(first.one_line),
    }
    if first.busy_workers:
        view["more"] = [*first.busy_workers]
    if others:
        view |= {"alike": [each.task.id for each in others], "others": describe_alike(alike)}
    return view


def _view_task(told: Explanation, words: AdviceWords) -> View:
    commands = _write_fixes(told, words, *(clause.fix for clause in told.clauses))
    commands += [_read_log(told, words)] if told.given_back else []
    commands += _write_fixes(told, words, *told.taking_fixes)
    worker = [] if told.worker is None else [told.worker]
    return {
        "id": told.task.id,
        "status": told.task.status.value,
        "state": told.task.state,
        "summary": words.describe_text(told.summary),
        **({"traceback": lines} if (lines := read_traceback(told.task.error)) else {}),
        "claimable": told.claimable,
        "clauses": [_view_clause(each, words) for each in (*told.clauses, *worker)],
        **_view_commands(commands),
    }


def _view_clause(clause: Clause, words: AdviceWords) -> View:
    view: View = {
        "name": clause.name,
        "ok": clause.ok,
        "detail": words.describe_text(clause.detail),
    }
    return view | ({"more": [*clause.more]} if clause.more else {})


def _write_fixes(told: Explanation, words: AdviceWords, *fixes: str) -> list[AdvisedCommand]:
    """The commands of some fixes; a task of a program's functions needs a worker of the program."""
    app = ANY_PROGRAM if told.taken_by is TakenBy.PROGRAM else None
    return [command for fix in fixes for command in _write_commands(fix, words, app)]


def _write_commands(fix: str, words: AdviceWords, app: str | None = None) -> list[AdvisedCommand]:
    return [
        AdvisedCommand(text=words.describe_advice(each, app=app), looks=each.action.looks)
        for each in advice_of(fix)
    ]


def _read_log(told: Explanation, words: AdviceWords) -> AdvisedCommand:
    return AdvisedCommand(text=words.describe_log(told.task.id), looks=True)
