"""Expected versions: commands that are meant for one version of a run or task.

The version is checked, and its row locked, before the command is carried out. A command for another
version is refused, and recorded in the run as a conflict. Only a version that has not come yet can
be waited for, for less than a second.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from holdfast.clock import Clock
from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import EditTask, RunOperation, TaskOperation
from holdfast.engine.core.sync_async import operation, settle_future
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.errors import NotFound
from holdfast.model.result import Expectation, TransitionResult
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import RUN_TERMINAL, TERMINAL
from holdfast.randomness import Randomness
from holdfast.store.database import Row
from holdfast.store.group_commit.entries import follow_future
from holdfast.threads import Threads

VERSION_RETRY = RetryPolicy(max_attempts=5, backoff=0.02, backoff_max=0.2)
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


class TooEarly(TransitionResult):
    """The reply to a patient edit whose version may still come; nothing was recorded."""


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
    passed = row["version"] >= command.expected_version
    if passed and not _has_changed(work, row["id"], command.expected_version):
        return Expectation(met=True, version=row["version"], status=row["status"])
    early = may_still_come(row, command.expected_version)
    if not (early and command.patient):
        record_conflict(work, row, command)
    return Expectation(met=False, early=early, version=row["version"], status=row["status"])


def may_still_come(row: Row, version: int) -> bool:
    """Whether a run or task has not reached a version, and has not ended."""
    return bool(row["version"] < version and row["status"] not in _ENDED)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionWait:
    """The wait of an edit for a version that the store does not have yet.

    A caller may have seen that version: the edit is tried again at growing intervals, a few times,
    and refused at last. The wait has a thread of its own, so that coroutines may await it.
    """

    threads: Threads
    clock: Clock
    randomness: Randomness

    def follow(
        self, submit: Callable[[EditTask], Future[TransitionResult]], edit: EditTask
    ) -> Future[TransitionResult]:
        """The reply to a patient edit, or to the last of its repetitions."""
        first = submit(edit)
        final: Future[TransitionResult] = follow_future(first)

        def settle(finished: Future[TransitionResult]) -> None:
            early = finished.exception() is None and isinstance(finished.result(), TooEarly)
            if early:
                self.threads.start("holdfast-edit", lambda: settle_future(final, repeat))
            else:
                settle_future(final, finished.result)

        def repeat() -> TransitionResult:
            for attempt in range(1, VERSION_RETRY.max_attempts):
                self.clock.sleep(VERSION_RETRY.delay(attempt, self.randomness.random()))
                patient = attempt < VERSION_RETRY.max_attempts - 1
                reply = submit(replace(edit, patient=patient)).result()
                if not isinstance(reply, TooEarly):
                    return reply
            raise AssertionError("the last repetition is not patient")

        first.add_done_callback(settle)
        return final


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
