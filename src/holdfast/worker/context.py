"""What a running step can ask and tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from holdfast.engine.edge import reading
from holdfast.engine.engine import Engine
from holdfast.engine.validation import JSON_SCALAR_LIMIT
from holdfast.errors import HoldfastError
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment
from holdfast.model.text import encode_json
from holdfast.threads import Event


class AttemptEnded(HoldfastError):
    """The attempt was cancelled or lost its lease: stop, and change nothing more."""


class Context:
    """One attempt, as its step sees it."""

    def __init__(
        self,
        engine: Engine,
        assignment: Assignment,
        ended: Event,
        deadline: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._assignment = assignment
        self._ended = ended
        self._deadline = deadline
        self.noted: Any = None

    @property
    def task_id(self) -> str:
        return self._assignment.task.id

    @property
    def run_id(self) -> str | None:
        return self._assignment.task.run_id

    @property
    def attempt(self) -> int:
        """The fence: it grows with every lease of this task."""
        return self._assignment.attempt

    @property
    def token(self) -> str:
        return self._assignment.token

    @property
    def ended(self) -> bool:
        """Whether this attempt is known to be over: cancelled, lost or out of time."""
        # By the clock too: after a suspend the step may be awake before the heartbeat is.
        return self._ended.is_set() or self._engine.clock.monotonic() >= self._deadline()

    @reading
    def check(self) -> TransitionResult:
        """Ask the store whether this attempt may still act."""
        return self._engine.work.guard(self.task_id, self.token)

    @reading
    def guard(self) -> None:
        """Call before a side effect; raises `AttemptEnded` when it must not happen."""
        answer = self.check()
        if not answer.ok:
            self._ended.set()
            message = f"attempt {self.attempt} of {self.task_id} may not act: {answer.reason}"
            raise AttemptEnded(message)

    def progress(self, note: object) -> None:
        """Say how far the step is; it is stored with the next renewal of the lease."""
        # Refused here, where the step sees it: one bad note would spoil the renewal of all leases.
        self.noted = json.loads(encode_json("progress", note, limit=JSON_SCALAR_LIMIT))
