"""Imports: trees of tasks and runs of an older store become tasks and runs of this one.

Each task is led along the transition table to where it stood in the older store. No part of a tree
or run can be seen before all of it is written, so that no worker claims what was done before. Every
end is an attempt of its own by `import`, and comes after the ends of what the task needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import Any

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Complete, Fail, Import, ImportedProgress, StartRun
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.engine.state import creation, plans, report_outcomes
from holdfast.engine.state.idempotency_keys import IdempotencyKeys, KeyRequest
from holdfast.errors import HoldfastError, InvalidInput, KeyConflict
from holdfast.model.retry import positive_microseconds
from holdfast.model.run import CreateResult, NewRun
from holdfast.model.status import TERMINAL, PlanningPhase, Status
from holdfast.model.task import NewTask
from holdfast.model.text import digest, encode_json
from holdfast.store.database import Row, Transaction

FIRST_FENCE = 1
IMPORT_ACTOR = "import"
NAMES_AT_ONCE = 1_000
ImportReply = list[CreateResult] | HoldfastError


@dataclass(frozen=True, kw_only=True, slots=True)
class PastTask:
    """A task under its name in the older store; `parent`, `needs` and `late` are such names too.

    The `needs` of a task that has ended are done. The task ran before its `late` needs were done,
    and needs them from now on. A plan that `settled` ended with its children, and not by an attempt
    of its own. `rank` is the position of the task among all tasks of the older store.
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
    """A task and all tasks below it, parents first; they are imported together, or not at all."""

    tasks: tuple[PastTask, ...]
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PastRun:
    """A run, and a task for each step under the name of the step."""

    run: NewRun
    tasks: tuple[PastTask, ...]
    body: str
    cancelled: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportUnit:
    """A tree or run that is imported whole: its tasks by their old names, and their new ids."""

    tasks: Mapping[str, PastTask]
    ids: Mapping[str, str]
    children: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def find_ids(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.ids[name] for name in names)

    def is_below_plan(self, task: PastTask) -> bool:
        """Whether a plan is above the task: plans begin before any task below them moves."""
        while task.parent is not None:
            task = self.tasks[task.parent]
            if task.phase is not PlanningPhase.NONE:
                return True
        return False

    def find_ended_before(self, task: PastTask) -> tuple[str, ...]:
        first = [*task.needs, *self._find_below_first(task)]
        return self.find_ids([name for name in first if self.tasks[name].status in TERMINAL])

    def _find_below_first(self, task: PastTask) -> Sequence[str]:
        """The tasks below a task that end before it: a cancel would end them all."""
        if task.status is Status.CANCELLED:
            below = list(self.children.get(task.name, ()))
            for name in below:
                below += self.children.get(name, ())
            return below
        return self.children.get(task.name, ()) if task.settled else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedTask:
    """The past of a task, and the import that the task is part of."""

    past: ImportedProgress
    operation: Import


def carry_out_imports(work: UnitOfWork, operations: Sequence[Import]) -> list[ImportReply]:
    """Import each tree or run, unless any part of it is in this store already."""
    replies = _start_runs(work, operations) | _create_trees(work, operations)
    created = [
        operation for place, operation in enumerate(operations) if _is_created(replies[place])
    ]
    imported = [
        ImportedTask(past=past, operation=operation)
        for operation in created
        for past in operation.past
    ]
    _plan_tasks(work, imported)
    for each in imported:
        if each.past.enqueue:
            _change_task(work, "enqueue_task", each)
    _end_tasks(work, imported)
    _inherit_needs(work, created)
    for unit in created:
        if unit.run is not None and unit.cancelled:
            run_id, actor = unit.run.run_id, unit.actor
            work.change_runs("cancel_run", run_id=run_id, actor=actor)
            work.change_tasks("cancel_run_tasks", ids=[run_id], actor=actor)
    return [replies[place] for place in range(len(operations))]


def _is_created(reply: ImportReply) -> bool:
    return isinstance(reply, list) and all(each.created for each in reply)


def _start_runs(work: UnitOfWork, operations: Sequence[Import]) -> dict[int, ImportReply]:
    runs: dict[int, StartRun] = {
        place: each.run for place, each in enumerate(operations) if each.run is not None
    }
    started = creation.start_runs(work, list(runs.values()), imported=True) if runs else []
    return {
        place: [reply] if isinstance(reply, CreateResult) else reply
        for place, reply in zip(runs, started, strict=True)
    }


def _create_trees(work: UnitOfWork, operations: Sequence[Import]) -> dict[int, ImportReply]:
    trees = {place: each for place, each in enumerate(operations) if each.run is None}
    wanted = [task.key for tree in trees.values() for task in tree.tasks]
    keys = IdempotencyKeys(work, "task", wanted)
    replies = {place: _claim_keys(keys, tree.tasks) for place, tree in trees.items()}
    accepted = [
        (task, trees[place].actor)
        for place, reply in replies.items()
        if _is_created(reply)
        for task in trees[place].tasks
    ]
    depths = _find_depths([task for task, _ in accepted])
    # A parent goes before its children, which may be written with a later statement. The keys are
    # in one order, because an insert of a key waits for another one that has not committed.
    accepted.sort(key=lambda each: (depths[each[0].id], each[0].key or ""))
    creation.insert_tasks(work, accepted, {}, run_holds=0)
    return replies


def _find_depths(tasks: Sequence[TaskRow]) -> dict[str, int]:
    """Find how far below the top of its tree each task stands."""
    parents = {task.id: task.parent_id for task in tasks}
    depths: dict[str, int] = {}
    for task in tasks:
        ancestors: list[str] = []
        current: str | None = task.id
        while current is not None and current not in depths:
            ancestors.append(current)
            current = parents.get(current)
        first = 0 if current is None else depths[current] + 1
        depths |= {each: number for number, each in enumerate(reversed(ancestors), start=first)}
    return depths


def _claim_keys(keys: IdempotencyKeys, tasks: Sequence[TaskRow]) -> ImportReply:
    own = [task.id for task in tasks]
    try:
        # The digest of an import names the whole content that was imported.
        wanted = [KeyRequest(id=task.id, digest=task.body_digest) for task in tasks]
        found = [keys.claim(task.key, each) for task, each in zip(tasks, wanted, strict=True)]
    except KeyConflict as error:
        keys.forget(own)
        return error
    if found == own:
        return [CreateResult(id=each, created=True) for each in own]
    keys.forget(own)
    # A task that was deleted in this store since its import stays deleted.
    return [
        CreateResult(id=each, created=False)
        for each, new in zip(found, own, strict=True)
        if each != new
    ]


def _plan_tasks(work: UnitOfWork, imported: Sequence[ImportedTask]) -> None:
    """Start and finalize the plans while all their children are idle, as in any other plan."""
    for each in imported:
        if each.past.phase != "none":
            _change_task(work, "start_planning", each)
    for each in imported:
        if each.past.phase == "finalized":
            _change_task(work, "finalize_plan", each, shape=None)


def _inherit_needs(work: UnitOfWork, created: Sequence[Import]) -> None:
    for each in created:
        if finalized := [past.task_id for past in each.past if past.phase == "finalized"]:
            plans.inherit_needs(work, finalized, each.actor)


def _change_task(work: UnitOfWork, query: str, imported: ImportedTask, **more: Any) -> None:
    past = imported.past
    if not work.change_tasks(query, task_id=past.task_id, actor=imported.operation.actor, **more):
        raise RuntimeError(f"{query} does not move {past.task_id}; nothing of it is imported")


def _end_tasks(work: UnitOfWork, imported: Sequence[ImportedTask]) -> None:
    """End tasks round by round: all that a task needed has ended in the rounds before."""
    ended = {each.past.task_id: each for each in imported if each.past.ended is not None}
    order = TopologicalSorter({key: ended[key].past.after for key in ended})
    order.prepare()
    while order.is_active():
        names = order.get_ready()
        ready = [ended[name] for name in names]
        cancelled = [each for each in ready if each.past.ended == "cancelled"]
        _run_attempts(work, [each for each in ready if _ends_by_attempt(each.past)])
        _settle_plans(work, [each.past for each in ready if each.past.settled])
        _cancel_tasks(work, cancelled)
        work.change_tasks("unblock_dependents", ids=names)
        order.done(*names)
    _add_late_needs(work, ended.values())


def _ends_by_attempt(past: ImportedProgress) -> bool:
    return not past.settled and past.ended != "cancelled"


def _cancel_tasks(work: UnitOfWork, imported: Sequence[ImportedTask]) -> None:
    for each in imported:
        ids = [each.past.task_id]
        rows = work.change_tasks("cancel_tasks", ids=ids, actor=each.operation.actor)
        if [row["entity"] for row in rows] != ids:
            raise RuntimeError(f"{ids[0]} cannot be cancelled alone; nothing of it is imported")


def _settle_plans(work: UnitOfWork, past: Sequence[ImportedProgress]) -> None:
    for plan in past:
        told = None if plan.result == "null" else plan.result
        output, error = (told, None) if plan.ended == "done" else (None, told)
        rows = work.change_tasks("settle_plans", ids=[plan.task_id], output=output, error=error)
        if [row["status"] for row in rows] != [plan.ended]:
            raise RuntimeError("a plan does not end as its children did; nothing of it is imported")


def _run_attempts(work: UnitOfWork, imported: Sequence[ImportedTask]) -> None:
    for each in imported:
        started = work.change_tasks(
            "claim_task_by_id",
            task_id=each.past.task_id,
            agents=[each.past.agent],
            tags="[]",
            worker=each.operation.actor,
            lease=each.operation.lease,
        )
        if [row["attempt"] for row in started] != [FIRST_FENCE]:
            raise RuntimeError(f"{each.past.task_id} cannot start; nothing of it is imported")
    pasts = [each.past for each in imported]
    done = [_build_completion(past) for past in pasts if past.ended == "done"]
    failed = [_build_failure(past) for past in pasts if past.ended == "failed"]
    answers = report_outcomes.complete_tasks(work, done) if done else []
    answers += report_outcomes.fail_tasks(work, failed) if failed else []
    for answer in answers:
        if not answer.ok:
            raise RuntimeError(f"a task cannot end, {answer}; nothing of it is imported")


def _build_completion(past: ImportedProgress) -> Complete:
    result = past.result
    return Complete(task_id=past.task_id, fence=FIRST_FENCE, output=result, digest=digest(result))


def _build_failure(past: ImportedProgress) -> Fail:
    return Fail(
        task_id=past.task_id,
        fence=FIRST_FENCE,
        error=past.result,
        digest=digest(past.result),
        retryable=False,
        jitter=0.0,
    )


def _add_late_needs(work: UnitOfWork, imported: Iterable[ImportedTask]) -> None:
    """Add the needs of tasks that had run before those needs were done."""
    late = {each.past.task_id: each.past.late for each in imported if each.past.late}
    if late:
        found = work.tx.read("tasks_by_id", ids=sorted(late))
        since = {row["id"]: row["version"] for row in found}
        rows = [(task, need, since[task]) for task, needs in late.items() for need in needs]
        work.tx.run("insert_needs", rows=rows)


class Imports:
    """Imports of trees and runs of an older store; each is imported whole, and once."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def take_over(self, units: Sequence[PastTree | PastRun]) -> Future[list[list[CreateResult]]]:
        """Import the units that are not here yet; none, if one is here with other content."""
        operations = self.build_operations(units, IMPORT_ACTOR)
        self._refuse_changed_units(operations)
        return self._context.submit_all(operations)

    @reading
    def is_imported(self, task_id: str) -> bool:
        """Whether a task came with an import, as the event of its creation says."""
        rows = self._context.view(lambda tx: tx.read("creator_of_task", task_id=task_id))
        return [row["actor"] for row in rows] == [IMPORT_ACTOR]

    def build_operations(self, units: Sequence[PastTree | PastRun], actor: str) -> list[Import]:
        """Build one operation for each unit, all checked; none is submitted."""
        ids = self._make_ids([unit for unit in units if isinstance(unit, PastTree)])
        operations: list[Import] = []
        for unit in units:
            if isinstance(unit, PastTree):
                operations.append(self._build_tree(unit, ids, actor))
            else:
                with locate_bad_input(f"runs[{unit.run.key}]"):
                    operations.append(self._build_run(unit, actor))
        return operations

    def _make_ids(self, trees: Sequence[PastTree]) -> dict[str, str]:
        """Make ids in the order of the older store, which decides between tasks of one position."""
        ranked = sorted((task.rank, task.name) for tree in trees for task in tree.tasks)
        return {name: self._context.ids.task() for _, name in ranked}

    def _build_tree(self, tree: PastTree, ids: Mapping[str, str], actor: str) -> Import:
        tasks = {task.name: task for task in tree.tasks}
        children: dict[str, list[str]] = {}
        for task in tree.tasks:
            if task.parent is not None:
                children.setdefault(task.parent, []).append(task.name)
        unit = ImportUnit(tasks=tasks, ids=ids, children=children)
        rows = []
        for task in tree.tasks:
            with locate_bad_input(f"tasks[{task.name}]"):
                rows.append(self._build_row(unit, task, tree.body))
        return replace(self._build_import(unit, actor), tasks=validation.bounded_batch(rows))

    def _build_run(self, past: PastRun, actor: str) -> Import:
        limit = self._context.settings.max_payload
        start = validation.new_run(past.run, self._context.ids, max_payload=limit, actor_name=actor)
        unit = ImportUnit(
            tasks={task.name: task for task in past.tasks},
            ids={str(row.step): row.id for row in start.tasks},
        )
        rows = [
            replace(
                row,
                needs=unit.find_ids(task.needs),
                payload=encode_json("payload", task.task.payload, limit=limit),
            )
            for row, task in zip(start.tasks, past.tasks, strict=True)
        ]
        run = replace(start, tasks=validation.bounded_batch(rows), body_digest=past.body)
        return replace(self._build_import(unit, actor), run=run, cancelled=past.cancelled)

    def _build_import(self, unit: ImportUnit, actor: str) -> Import:
        lease = positive_microseconds("lease", self._context.settings.lease)
        past: list[ImportedProgress] = []
        for task in unit.tasks.values():
            with locate_bad_input(f"tasks[{task.name}]"):
                past.append(self._build_past(unit, task))
        return Import(past=tuple(past), actor=actor, lease=lease)

    def _build_row(self, unit: ImportUnit, past: PastTask, body: str) -> TaskRow:
        limit = self._context.settings.max_payload
        row = validation.new_task(
            past.task, self._context.ids, max_payload=limit, now=self._context.now
        )
        ready = past.status is Status.QUEUED and not unit.is_below_plan(past)
        return replace(
            row,
            id=unit.ids[past.name],
            status="queued" if ready else "idle",
            parent_id=None if past.parent is None else unit.ids[past.parent],
            needs=unit.find_ids(past.needs),
            body_digest=body,
        )

    def _build_past(self, unit: ImportUnit, task: PastTask) -> ImportedProgress:
        ended = task.status in TERMINAL
        limit = self._context.settings.max_output
        return ImportedProgress(
            task_id=unit.ids[task.name],
            agent=task.task.agent,
            ended=task.status.value if ended else None,
            result=encode_json("result", task.result, limit=limit),
            after=unit.find_ended_before(task) if ended else (),
            enqueue=task.status is Status.QUEUED and unit.is_below_plan(task),
            phase=task.phase.value,
            settled=task.settled,
            late=unit.find_ids(task.late),
        )

    def _refuse_changed_units(self, operations: Sequence[Import]) -> None:
        """Refuse units that were imported before with other content, before any unit is written.

        The error about a tree names its top, which stands before all tasks of the tree.
        """
        bodies = {row.key: row.body_digest for each in operations for row in each.tasks}
        self._refuse_changed("tasks_by_key", bodies)
        runs = [each.run for each in operations if each.run is not None]
        self._refuse_changed("runs_by_key", {run.key: run.body_digest for run in runs})

    def _refuse_changed(self, query: str, bodies: Mapping[str | None, str]) -> None:
        keys = sorted(filter(None, bodies))

        def read(tx: Transaction) -> list[Row]:
            return [row for page in split_into_pages(keys) for row in tx.read(query, keys=page)]

        found = {row["key"]: row for row in self._context.view(read)}
        for key, body in bodies.items():
            if key in found and found[key]["body_digest"] != body:
                raise KeyConflict(found[key]["key"], found[key]["id"])


@contextmanager
def locate_bad_input(field: str) -> Iterator[None]:
    """Name the record that bad input stands in, before the name of the field."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{field}.{error.field}", error.reason) from error


def split_into_pages(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split names into pages, each as large as one statement takes."""
    for place in range(0, len(names), NAMES_AT_ONCE):
        yield names[place : place + NAMES_AT_ONCE]
