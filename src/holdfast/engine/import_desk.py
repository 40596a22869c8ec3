"""Imports: what an older store knew becomes tasks and runs of this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from holdfast.engine import validation
from holdfast.engine.asked import TaskRow
from holdfast.engine.desk import Desk
from holdfast.engine.edge import operation
from holdfast.engine.operations import Import, Past
from holdfast.errors import InvalidInput, KeyConflict
from holdfast.model.past import PastRun, PastTask, PastTree
from holdfast.model.retry import positive_microseconds
from holdfast.model.run import Created
from holdfast.model.status import TERMINAL, PlanningPhase, Status
from holdfast.model.text import encode_json
from holdfast.store.database import Row, Transaction

IMPORT = "import"
AT_ONCE = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """What comes over in one piece: its tasks by their old names, and the ids they get."""

    tasks: Mapping[str, PastTask]
    ids: Mapping[str, str]
    children: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def ids_of(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.ids[name] for name in names)

    def is_planned(self, task: PastTask) -> bool:
        """Whether a plan is anywhere above it: those are planned before anything below moves."""
        while task.parent is not None:
            task = self.tasks[task.parent]
            if task.phase is not PlanningPhase.NONE:
                return True
        return False

    def ended_before(self, task: PastTask) -> tuple[str, ...]:
        below = self.children.get(task.name, ()) if task.settled else ()
        first = [*task.needs, *below]
        return self.ids_of([name for name in first if self.tasks[name].status in TERMINAL])


class Imports:
    """Trees and runs of an older store; each comes over whole, and once."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @operation
    def take_over(
        self, units: Sequence[PastTree | PastRun], *, actor: str = IMPORT
    ) -> Future[list[list[Created]]]:
        """Take over each unit, unless it is here already; nothing, if one is here otherwise."""
        operations = self.prepare(units, validation.actor(actor))
        self._refuse_others(operations)
        return self._desk.submit_all(operations)

    def prepare(self, units: Sequence[PastTree | PastRun], actor: str) -> list[Import]:
        """What the writer will be asked, one operation for each unit; all checked, none written."""
        ids = self._ids([unit for unit in units if isinstance(unit, PastTree)])
        operations: list[Import] = []
        for unit in units:
            if isinstance(unit, PastTree):
                operations.append(self._tree(unit, ids, actor))
            else:
                with told(f"runs[{unit.run.key}]"):
                    operations.append(self._run(unit, actor))
        return operations

    def _ids(self, trees: Sequence[PastTree]) -> dict[str, str]:
        """Ids in the order the tasks had there, which decides between two of one position."""
        ranked = sorted((task.rank, task.name) for tree in trees for task in tree.tasks)
        return {name: self._desk.ids.task() for _, name in ranked}

    def _tree(self, tree: PastTree, ids: Mapping[str, str], actor: str) -> Import:
        tasks = {task.name: task for task in tree.tasks}
        children: dict[str, list[str]] = {}
        for task in tree.tasks:
            if task.parent is not None:
                children.setdefault(task.parent, []).append(task.name)
        unit = Unit(tasks=tasks, ids=ids, children=children)
        rows = []
        for task in tree.tasks:
            with told(f"tasks[{task.name}]"):
                rows.append(self._row(unit, task, tree.body))
        return replace(self._import(unit, actor), tasks=validation.batch(rows))

    def _run(self, past: PastRun, actor: str) -> Import:
        limit = self._desk.settings.max_payload
        start = validation.new_run(past.run, self._desk.ids, max_payload=limit, actor_name=actor)
        unit = Unit(
            tasks={task.name: task for task in past.tasks},
            ids={str(row.step): row.id for row in start.tasks},
        )
        rows = [
            replace(
                row,
                needs=unit.ids_of(task.needs),
                payload=encode_json("payload", task.task.payload, limit=limit),
            )
            for row, task in zip(start.tasks, past.tasks, strict=True)
        ]
        run = replace(start, tasks=validation.batch(rows), body_digest=past.body)
        return replace(self._import(unit, actor), run=run, cancelled=past.cancelled)

    def _import(self, unit: Unit, actor: str) -> Import:
        lease = positive_microseconds("lease", self._desk.settings.lease)
        past: list[Past] = []
        for task in unit.tasks.values():
            with told(f"tasks[{task.name}]"):
                past.append(self._past(unit, task))
        return Import(past=tuple(past), actor=actor, lease=lease)

    def _row(self, unit: Unit, past: PastTask, body: str) -> TaskRow:
        limit = self._desk.settings.max_payload
        row = validation.new_task(past.task, self._desk.ids, max_payload=limit, now=self._desk.now)
        ready = past.status is Status.QUEUED and not unit.is_planned(past)
        return replace(
            row,
            id=unit.ids[past.name],
            status="queued" if ready else "idle",
            parent_id=None if past.parent is None else unit.ids[past.parent],
            needs=unit.ids_of(past.needs),
            body_digest=body,
        )

    def _past(self, unit: Unit, task: PastTask) -> Past:
        ended = task.status in TERMINAL
        limit = self._desk.settings.max_output
        return Past(
            task_id=unit.ids[task.name],
            agent=task.task.agent,
            ended=task.status.value if ended else None,
            result=encode_json("result", task.result, limit=limit),
            after=unit.ended_before(task) if ended else (),
            enqueue=task.status is Status.QUEUED and unit.is_planned(task),
            phase=task.phase.value,
            settled=task.settled,
            late=unit.ids_of(task.late),
        )

    def _refuse_others(self, operations: Sequence[Import]) -> None:
        """Before the first of them is written: what came over before must be the same today.

        Of a tree its top is told, which stands before all that belongs to it.
        """
        bodies = {row.key: row.body_digest for each in operations for row in each.tasks}
        self._refuse_other("tasks_by_key", bodies)
        runs = [each.run for each in operations if each.run is not None]
        self._refuse_other("runs_by_key", {run.key: run.body_digest for run in runs})

    def _refuse_other(self, query: str, bodies: Mapping[str | None, str]) -> None:
        keys = sorted(filter(None, bodies))

        def read(tx: Transaction) -> list[Row]:
            return [row for page in pages(keys) for row in tx.read(query, keys=page)]

        found = {row["key"]: row for row in self._desk.view(read)}
        for key, body in bodies.items():
            if key in found and found[key]["body_digest"] != body:
                raise KeyConflict(found[key]["key"], found[key]["id"])


@contextmanager
def told(place: str) -> Iterator[None]:
    """Say of bad input where it stands."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{place}.{error.field}", error.reason) from error


def pages(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many at a time as one statement is given."""
    for place in range(0, len(names), AT_ONCE):
        yield names[place : place + AT_ONCE]
