"""Expected versions: commands that are meant for one version of a run or task.

The version is checked, and its row locked, before the command is carried out. A command for another
version is refused, and recorded in the run as a conflict. Only a version that has not come yet can
be waited for.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import RunOperation, TaskOperation
from holdfast.engine.core.sync_async import operation
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.errors import NotFound
from holdfast.model.result import Expectation
from holdfast.model.status import RUN_TERMINAL, TERMINAL
from holdfast.store.database import Row

_ENDED = frozenset({*TERMINAL, *RUN_TERMINAL})


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionedCommand:
    """A command by its name, the version it is for, its actor, and the message it came with.

    A `patient` command waits for a version that has not come yet, and no conflict is recorded.
    """

    name: str
    expected_version: int
    actor: str
    message_id: str | None = None
    patient: bool = False


class ExpectVersion:
    """An operation that locks a run or task at a version, or says that it is at another.

    It has no fields of its own, because each kind is an operation on a run or on a task as well.
    """

    __slots__ = ()
    command: VersionedCommand


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectTaskVersion(TaskOperation, ExpectVersion):
    command: VersionedCommand


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectRunVersion(RunOperation, ExpectVersion):
    command: VersionedCommand


def check_expected_version(work: UnitOfWork, operation: ExpectVersion) -> Expectation:
    """Compare the version of a locked row, which stays the same until the transaction has ended."""
    row, command = _find_row(work, operation), operation.command
    early = row["version"] < command.expected_version
    if not early and not _has_changed(work, row["id"], command.expected_version):
        return Expectation(met=True, version=row["version"], status=row["status"])
    early &= row["status"] not in _ENDED
    if not (early and command.patient):
        record_conflict(work, row, command)
    return Expectation(met=False, early=early, version=row["version"], status=row["status"])


def record_conflict(work: UnitOfWork, row: Row, command: VersionedCommand) -> None:
    """Record a conflict in the run, unless the run or the task has ended.

    A lone task has no run.
    """
    told: dict[str, object] = {
        "asked": command.name,
        "expected_version": command.expected_version,
        "version": row["version"],
    }
    run_id = row["id"]
    if "run_id" in row:
        run_id, told["task_id"] = row["run_id"], row["id"]
    if command.message_id is not None:
        told["message_id"] = command.message_id
    if run_id is not None and row["status"] not in _ENDED:
        work.change_runs("tell_conflict", run_id=run_id, told=json.dumps(told), actor=command.actor)


def _find_row(work: UnitOfWork, operation: ExpectVersion) -> Row:
    match operation:
        case ExpectTaskVersion(task_id=entity):
            found = work.tx.read("task_by_id", task_id=entity)
        case ExpectRunVersion(run_id=entity):
            found = work.tx.read("run_by_id", run_id=entity)
        case _:
            raise TypeError(f"{operation!r} expects nothing of a run or task")
    if not found:
        raise NotFound(entity)
    return found[0]


def _has_changed(work: UnitOfWork, entity: str, version: int) -> bool:
    """Whether the run or task has changed since a version, conflicts aside."""
    return bool(work.tx.read("changes_since", entity=entity, seen=version))


class Expectations:
    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def check(self, target: str, command: VersionedCommand) -> Future[Expectation]:
        """Check whether a run or task is at the version of a command.

        If not, record the conflict.
        """
        validation.number("expected_version", command.expected_version, least=1)
        if target.startswith("r_"):
            return self._context.submit(
                ExpectRunVersion(run_id=validation.run_id(target), command=command)
            )
        return self._context.submit(
            ExpectTaskVersion(task_id=validation.task_id(target), command=command)
        )
