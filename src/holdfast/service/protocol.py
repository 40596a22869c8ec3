"""The worker's protocol for front ends: claims as JSON, and reports that are refused when late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.duration import Moment
from holdfast.model.result import TransitionResult
from holdfast.model.task import Renewal
from holdfast.service.logs import append_log
from holdfast.service.place import Place
from holdfast.service.queries import Queries
from holdfast.service.refused import accepted
from holdfast.service.views import View, view_assignment


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a worker says of itself when it asks for work."""

    worker: str
    agents: Sequence[str] = ()
    tags: Sequence[str] = ()
    lease: float = 30.0


class Protocol:
    """Every report carries the token of its attempt; what is refused raises `Refused`."""

    def __init__(self, engine: Engine, queries: Queries, place: Place) -> None:
        self._engine = engine
        self._queries = queries
        self._place = place

    def claim(self, offer: Offer, *, most: int = 1, task_id: str | None = None) -> View:
        """Lease the first ready tasks, or the one named; without agents, for its own."""
        # Nobody else may be there to take back what a dead worker left.
        self._engine.work.recover()
        work = self._engine.work
        chosen: dict[str, Any] = {"tags": offer.tags, "lease": offer.lease}
        if task_id is None:
            agents = offer.agents or ["default"]
            got = work.claim(offer.worker, agents=agents, count=most, **chosen)
        else:
            agents = offer.agents or [self._engine.tasks.get(task_id).agent]
            got = work.claim_by_id(task_id, offer.worker, agents=agents, **chosen)
        return {"assignments": [view_assignment(each) for each in got]}

    def renew(self, renewal: Renewal, lease: float) -> View:
        (answer,) = self._engine.work.renew([renewal], lease=lease)
        return self._answered(renewal.task_id, answer)

    def complete(self, task_id: str, token: str, output: object, usage: object = None) -> View:
        answer = self._engine.work.complete(task_id, token, output, usage=usage)
        return self._answered(task_id, answer)

    def fail(self, task_id: str, token: str, error: object, *, retryable: bool) -> View:
        answer = self._engine.work.fail(task_id, token, error, retryable=retryable)
        return self._answered(task_id, answer)

    def release(self, task_id: str, token: str, until: Moment | None = None) -> View:
        return self._answered(task_id, self._engine.work.release(task_id, token, until=until))

    def guard(self, task_id: str, token: str) -> View:
        return self._answered(task_id, self._engine.work.guard(task_id, token))

    def log(self, task_id: str, token: str, chunk: bytes) -> int:
        """Add to the log of an attempt that may still act; how long it is then."""
        accepted(task_id, self._engine.work.guard(task_id, token))
        return append_log(self._place, task_id, int(token.partition(".")[0]), chunk)

    def _answered(self, task_id: str, answer: TransitionResult) -> View:
        told = accepted(task_id, answer)
        return {"ok": True, "repeated": told.repeated, "task": self._queries.task(task_id)}
