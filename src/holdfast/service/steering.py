"""Steers runs and tasks: each a command, done in the store or in a rehearsal of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from holdfast.engine.runs import Runs
from holdfast.engine.tasks import Tasks
from holdfast.errors import InvalidInput
from holdfast.model.result import TransitionResult
from holdfast.service.naming import renamed
from holdfast.service.queries import Queries
from holdfast.service.refused import accepted
from holdfast.service.views import View

Change = Callable[..., TransitionResult]
# What `resume` lifts from a task, one at a time.
RESUMED = ("paused", "limit", "version")


class Desks(Protocol):
    """Where it is done: an engine, or a transaction of somebody's own."""

    @property
    def runs(self) -> Runs: ...

    @property
    def tasks(self) -> Tasks: ...


class Steering:
    """Steers for one actor; what is refused raises `Refused`."""

    def __init__(self, desks: Desks, queries: Queries, actor: str = "user") -> None:
        self._desks = desks
        self._queries = queries
        self._actor = actor

    def cancel(self, identifier: str) -> View:
        return self._either(identifier, self._desks.runs.cancel, self._desks.tasks.cancel)

    def retry(self, identifier: str, *, step: str | None = None) -> View:
        """Try again what failed; with a step, that one of a run and all that needs it."""
        if step is None:
            return self._either(identifier, self._desks.runs.retry, self._desks.tasks.retry)
        return self._changed(identifier, self._desks.runs.retry, step=step)

    def reopen(self, task_id: str) -> View:
        """Do an ended task again, and everything that needs it."""
        return self._changed(task_id, self._desks.tasks.reopen)

    def follow_up(self, task_id: str, message: object) -> View:
        """Have who did an ended task go on with a message, and all that needs it done again."""
        return self._changed(task_id, self._desks.tasks.follow_up, message)

    def pause(self, identifier: str) -> View:
        return self._either(identifier, self._desks.runs.pause, self._desks.tasks.hold)

    def resume(
        self, identifier: str, *, add_usd: float | None = None, add_attempts: int | None = None
    ) -> View:
        """Go on with what was paused; what is added raises the budget of a run."""
        if add_usd is None and add_attempts is None:
            return self._either(identifier, self._desks.runs.resume, self._unhold)
        if identifier.startswith("t_"):
            raise InvalidInput("run", f"{identifier} is a task, and only runs have a budget")
        resume = self._desks.runs.resume
        return self._changed(identifier, resume, add_usd=add_usd, add_attempts=add_attempts)

    def approve(self, task_id: str, note: object = None) -> View:
        return self._changed(task_id, self._desks.tasks.approve, note)

    def reject(self, task_id: str, reason: object = None) -> View:
        with renamed(note="reason"):
            return self._changed(task_id, self._desks.tasks.reject, reason)

    def answer(self, task_id: str, answer: object) -> View:
        return self._changed(task_id, self._desks.tasks.answer, answer)

    def enqueue(self, task_id: str) -> View:
        return self._changed(task_id, self._desks.tasks.enqueue)

    def run_now(self, task_id: str) -> View:
        return self._changed(task_id, self._desks.tasks.run_now)

    def reset(self, task_id: str) -> View:
        return self._changed(task_id, self._desks.tasks.reset)

    def block(self, task_id: str, needs: Sequence[str]) -> View:
        """Have a task that has not begun wait for others too."""
        return self._changed(task_id, self._desks.tasks.block, _some(needs))

    def unblock(self, task_id: str, needs: Sequence[str] | None = None) -> View:
        """Have a task wait for some others no more, or for none that it was linked to by hand.

        What its workflow or plan has it wait for stays: somebody's approval may be among that.
        """
        chosen = None if needs is None else _some(needs)
        return self._changed(task_id, self._desks.tasks.unblock, chosen, by_hand=True)

    def delete(self, task_id: str) -> View:
        answer = accepted(task_id, self._desks.tasks.delete(task_id, actor=self._actor))
        return {"ok": True, "repeated": answer.repeated, "id": task_id}

    def start_planning(self, task_id: str) -> View:
        return self._changed(task_id, self._desks.tasks.start_planning)

    def finalize_plan(self, task_id: str, graph: Mapping[str, Sequence[str]] | None) -> View:
        return self._changed(task_id, self._desks.tasks.finalize_plan, graph=graph)

    def reorder_plan(self, task_id: str, order: Sequence[str]) -> View:
        return self._changed(task_id, self._desks.tasks.reorder_plan, order)

    def _unhold(self, task_id: str, *, actor: str) -> TransitionResult:
        """What stopped a task: a usage limit or a missing function where it was not paused."""
        held = self._queries.task(task_id)["holds"]
        reason = next((each for each in RESUMED if each in held), "paused")
        return self._desks.tasks.unhold(task_id, reason, actor=actor)

    def _either(self, identifier: str, of_run: Change, of_task: Change) -> View:
        return self._changed(identifier, of_run if identifier.startswith("r_") else of_task)

    def _changed(self, identifier: str, change: Change, *args: Any, **options: Any) -> View:
        answer = accepted(identifier, change(identifier, *args, actor=self._actor, **options))
        kind = "run" if identifier.startswith("r_") else "task"
        now = self._queries.run(identifier) if kind == "run" else self._queries.task(identifier)
        return {"ok": True, "repeated": answer.repeated, kind: now}


def _some(needs: Sequence[str]) -> Sequence[str]:
    if not needs:
        raise InvalidInput("needs", "must name at least one task")
    return needs
