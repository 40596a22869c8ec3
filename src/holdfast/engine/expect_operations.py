"""What is asked before a command that was meant for one version of a run or task."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import RunOperation, TaskOperation


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """A command by its name, the version it is for, who gave it, and the message it came with.

    Who is `patient` waits for a version that has not come yet, and nothing is told of it.
    """

    asked: str
    expected_version: int
    actor: str
    message_id: str | None = None
    patient: bool = False


class Expect:
    """An operation that has a run or task held still at a version, or tells that it is at another.

    With no fields of its own: each is an operation on a run or on a task besides.
    """

    __slots__ = ()
    meant: Meant


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectTask(TaskOperation, Expect):
    meant: Meant


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectRun(RunOperation, Expect):
    meant: Meant
