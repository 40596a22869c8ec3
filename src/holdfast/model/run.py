"""One execution of one workflow version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.model.budget import Budget
from holdfast.model.graph import Workflow
from holdfast.model.shown import Shown
from holdfast.model.status import RUN_TERMINAL, Hold, RunStatus
from holdfast.model.trace import Trace


@dataclass(frozen=True, kw_only=True, slots=True)
class NewRun:
    """A run as it is asked for: which workflow, with what input, under which key.

    With a `trace` its events belong to that; otherwise they have a trace of their own.
    It has as many seconds as its `deadline` says, or else its workflow's, from its start on.
    """

    workflow: Workflow
    input: Any = None
    key: str | None = None
    priority: int = 0
    trace: Trace | None = None
    deadline: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Run(Shown):
    """A run as it stands; times are microseconds since 1970."""

    id: str
    workflow: str
    workflow_version: str
    key: str | None
    status: RunStatus
    holds: Hold
    input: Any
    error: Any
    priority: int
    concurrency_key: str | None
    version: int
    generation: int
    created_at: int
    finished_at: int | None
    # Of one that was called: the task that did, and the run at the top of them all.
    parent_id: str | None = None
    root_id: str | None = None
    # With what was added to it since it began; and when the run fails if it has not ended.
    budget: Budget | None = None
    deadline: int | None = None

    @property
    def terminal(self) -> bool:
        return self.status in RUN_TERMINAL


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    """The id of a run or task that now exists, and whether this call made it."""

    id: str
    created: bool
