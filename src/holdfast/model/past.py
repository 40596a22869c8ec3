"""What an older store knew of tasks and runs, in the words of this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.model.run import NewRun
from holdfast.model.status import PlanningPhase, Status
from holdfast.model.task import NewTask


@dataclass(frozen=True, kw_only=True, slots=True)
class PastTask:
    """A task under the name it had there; `parent`, `needs` and `late` are such names too.

    What it needed when it ended is done, or `late`: it ran before that, and needs it from now on.
    A plan that `settled` ended with its children, and not by an attempt of its own. `rank` is its
    place among all tasks there.
    """

    name: str
    task: NewTask
    status: Status
    phase: PlanningPhase = PlanningPhase.NONE
    settled: bool = False
    parent: str | None = None
    needs: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    result: Any = None
    rank: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PastTree:
    """A task and all below it, parents first; they come over together, or not at all."""

    tasks: tuple[PastTask, ...]
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PastRun:
    """A run, and a task for each step, by the step's name."""

    run: NewRun
    tasks: tuple[PastTask, ...]
    body: str
    cancelled: bool = False
