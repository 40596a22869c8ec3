"""Versions that commands were meant for: looked at, and held still, before they are carried out."""

from __future__ import annotations

from concurrent.futures import Future

from holdfast.engine import validation
from holdfast.engine.desk import Desk
from holdfast.engine.edge import operation
from holdfast.engine.expect_operations import ExpectRun, ExpectTask, Meant
from holdfast.model.result import Expectation


class Expectations:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @operation
    def check(self, target: str, meant: Meant) -> Future[Expectation]:
        """Whether a run or task is at the version that a command is for; if not, tell of it."""
        validation.number("expected_version", meant.expected_version, least=1)
        if target.startswith("r_"):
            return self._desk.submit(ExpectRun(run_id=validation.run_id(target), meant=meant))
        return self._desk.submit(ExpectTask(task_id=validation.task_id(target), meant=meant))
