"""Attempt watch: the attempt of a running process, its lease and its record."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from holdfast.model.task import Assignment
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.steps.orphans import make_record
from holdfast.worker.steps.step_resources import StepResources

log = logging.getLogger("holdfast.worker")


class TakeOutput(Protocol):
    def __call__(self, data: bytes, *, error: bool) -> None: ...


class AttemptWatch:
    """The attempt of a running process; `on_output` gets what the process writes."""

    def __init__(
        self,
        resources: StepResources,
        assignment: Assignment,
        context: AttemptContext,
        on_output: TakeOutput,
    ) -> None:
        self._directory = resources.state.processes
        self._clock = resources.store.clock
        self._context = context
        self.on_output = on_output
        self.record = make_record(assignment.task_id, assignment.attempt)
        self.record.write(self._directory)

    def is_over(self) -> bool:
        return self._context.ended

    def deadline(self) -> float | None:
        return None if self._clock.manual else self._context.deadline

    def on_interrupt(self, wake: Callable[[], object] | None) -> None:
        self._context.interrupt = wake

    def on_begin(self, keeper_id: int, command_id: int, started: str) -> None:
        self.record = replace(self.record, command=command_id, command_started=started)
        self.record.write(self._directory)
        log.debug("process %d runs under its keeper %d", command_id, keeper_id)

    def end(self) -> None:
        self.record.remove(self._directory)
