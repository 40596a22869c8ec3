"""Task forests: the tasks of an older file as trees, with what each needs and how far it came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from holdfast.engine.surroundings.imports import PastTask, PastTree
from holdfast.importing.report import Remark
from holdfast.importing.rows import FAILED_BEFORE, Row, digest_rows, row_as_json, sort_key
from holdfast.model.status import TERMINAL, PlanningPhase, Status
from holdfast.model.task import NewTask

LONGEST_TITLE = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class OldTask:
    """A row of the older table; the phase and the need are in a column only in the later shape."""

    id: str
    status: str
    parent: str | None
    position: int
    scheduled_for: datetime | None
    row: Row
    phase: PlanningPhase = PlanningPhase.NONE
    blocked_by: str | None = None

    @property
    def order(self) -> tuple[object, ...]:
        places = (self.row["sort_order"], self.row["created_at"])
        return (*(sort_key(each) for each in places), self.id)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportOptions:
    """The options of the caller for every imported task."""

    name: str
    agent: str
    step: str | None


class TaskForest:
    """The tasks of a file as trees; `remarks` grow while trees are made.

    In this shape one status says everything, and a waiting task waits for its siblings before it.
    """

    # The worker of the older program has no lease here, so running tasks begin again.
    statuses: ClassVar[Mapping[str, Status]] = {
        "manual": Status.IDLE,
        "draft": Status.IDLE,
        "planning": Status.IDLE,
        "planned": Status.IDLE,
        "queued": Status.QUEUED,
        "running": Status.QUEUED,
        "waiting": Status.QUEUED,
        "done": Status.DONE,
        "failed": Status.FAILED,
    }

    def __init__(self, tasks: Sequence[OldTask], chosen: ImportOptions) -> None:
        self.tasks = tasks
        self.remarks: list[Remark] = []
        self._chosen = chosen
        self._ranks = {task.id: rank for rank, task in enumerate(tasks)}
        self._children: dict[str | None, list[OldTask]] = {}
        for task in tasks:
            self._children.setdefault(task.parent, []).append(task)
        self.roots = self._children.get(None, [])

    def trees(self) -> list[PastTree]:
        """All tasks of the file, in as many units as can be imported apart."""
        return [self._tree([root]) for root in self.roots]

    def _tree(self, roots: Sequence[OldTask]) -> PastTree:
        past: list[PastTask] = []
        rows: list[Row] = []
        families: list[Sequence[OldTask]] = [[root] for root in roots]
        while families:
            siblings = families.pop()
            past += self._chain(siblings)
            rows += [task.row for task in siblings]
            families += [self._children[each.id] for each in siblings if each.id in self._children]
        return PastTree(tasks=tuple(past), body=digest_rows(rows))

    def _chain(self, siblings: Sequence[OldTask]) -> Iterator[PastTask]:
        """The siblings: a waiting task needs the one before it, and all unfinished ones before it.

        Another queued task came into the queue by itself: it needs the sibling before it only
        where that is done, so that it waits when the sibling is done again.
        """
        before: OldTask | None = None
        unfinished: list[OldTask] = []
        for task in siblings:
            needs: list[OldTask] = []
            if task.status == "waiting":
                needs = [*unfinished, *_if_done(before)]
                # Later siblings need this task, and through it all that it waits for.
                unfinished = []
                self._remark_idle(task, needs)
            elif self.statuses[task.status] is not Status.IDLE:
                needs = _if_done(before)
            yield self._past(task, tuple(each.id for each in needs))
            before = task
            unfinished += [task] if task.status != "done" else []

    def _remark_idle(self, task: OldTask, needs: Sequence[OldTask]) -> None:
        for need in needs:
            if need.status in {"manual", "draft"}:
                reason = f"waits for {need.id}, which is idle: enqueue that, or unblock this"
                self.remarks.append(Remark(old=task.id, reason=reason))

    def _past(self, task: OldTask, needs: tuple[str, ...]) -> PastTask:
        status, phase = self.statuses[task.status], self._phase(task)
        if task.status == "waiting" and not needs:
            status = Status.IDLE
            reason = "waits, and what it waited for is gone: it is idle; enqueue it if it may run"
            self.remarks.append(Remark(old=task.id, reason=reason))
        if task.status == "planned" and phase is PlanningPhase.ACTIVE:
            reason = "is planned and has no children: its plan is open; add some and finalize it"
            self.remarks.append(Remark(old=task.id, reason=reason))
        return self._make(task, status, phase, needs=needs)

    def _make(
        self,
        task: OldTask,
        status: Status,
        phase: PlanningPhase,
        *,
        needs: tuple[str, ...],
        late: tuple[str, ...] = (),
    ) -> PastTask:
        return PastTask(
            name=task.id,
            task=self._new(task, status),
            status=status,
            phase=phase,
            settled=phase is not PlanningPhase.NONE and status is not Status.IDLE,
            parent=task.parent,
            needs=needs,
            late=late,
            result=_result(task, status, plan=phase is not PlanningPhase.NONE),
            rank=self._ranks[task.id],
        )

    def _phase(self, task: OldTask) -> PlanningPhase:
        """The planning phase; a task that ended as its children did was their plan."""
        below = {child.status for child in self._children.get(task.id, [])}
        match task.status:
            case "planning":
                return PlanningPhase.ACTIVE
            case "planned":
                return PlanningPhase.FINALIZED if below else PlanningPhase.ACTIVE
            case "done" if below == {"done"}:
                return PlanningPhase.FINALIZED
            case "failed" if "failed" in below:
                return PlanningPhase.FINALIZED
            case _:
                return PlanningPhase.NONE

    def _new(self, task: OldTask, status: Status) -> NewTask:
        later = status in {Status.IDLE, Status.QUEUED} and task.status != "running"
        return NewTask(
            title=_title(task),
            step=self._chosen.step,
            agent=self._chosen.agent,
            payload=row_as_json(task.row),
            scheduled_for=task.scheduled_for if later else None,
            position=task.position,
            key=f"import:{self._chosen.name}:{task.id}",
        )


def _title(task: OldTask) -> str:
    title = str(task.row.get("title") or task.id)
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"


def _if_done(before: OldTask | None) -> list[OldTask]:
    return [before] if before is not None and before.status == "done" else []


def _result(task: OldTask, status: Status, *, plan: bool) -> Any:  # noqa: ANN401 - JSON is any value
    """The output or the error; None for a plan without one, which has those of its children."""
    if status not in TERMINAL or status is Status.CANCELLED:
        return None
    told = task.row.get("result")
    if status is Status.FAILED:
        told = task.row.get("error") or told
    if plan:
        return told or None
    return told or FAILED_BEFORE if status is Status.FAILED else told
