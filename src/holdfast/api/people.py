"""What people say to runs and tasks: signals, approvals, answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future

from holdfast.engine.core.context import USER
from holdfast.engine.core.sync_async import operation
from holdfast.engine.engine import Engine
from holdfast.ids import AnyId
from holdfast.model.result import TransitionResult


class People(ABC):
    """The part of a `Holdfast` that people speak through."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """The engine of the store."""

    @operation
    def signal(
        self,
        target: AnyId,
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Send a run, or a task without one, what its `wait_for` waits for; a `key` once."""
        return self.engine.signals.send.submit(target, name, payload, key=key, actor=actor)

    @operation
    def approve(
        self, task: AnyId, note: object = None, *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Let an approval pass, or a task that waits for one run again: `run.task("approve")`."""
        return self.engine.tasks.approve.submit(task, note, actor=actor)

    @operation
    def reject(
        self, task: AnyId, reason: object = None, *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Fail an approval, or a task that waits for one; the reason is its error."""
        return self.engine.tasks.reject.submit(task, reason, actor=actor)

    @operation
    def answer(self, task: AnyId, answer: object, *, actor: str = USER) -> Future[TransitionResult]:
        """Answer what a step asked with `ctx.ask(…)`; its question is in `hf.tasks.get(id)`."""
        return self.engine.tasks.answer.submit(task, answer, actor=actor)
