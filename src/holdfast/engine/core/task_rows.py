"""Task rows: new tasks as the store inserts them, and what follows from their insertion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from operator import itemgetter
from typing import overload

from holdfast.model.trace import Trace

BASE_SIZE = 500
ID_SIZE = 22


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """A new task that passed every check, with its fields as the columns of the store."""

    id: str
    kind: str = "work"
    run_id: str | None = None
    parent_id: str | None = None
    parent_epoch: int | None = None
    step: str | None = None
    title: str
    agent: str
    status: str
    needs: tuple[str, ...] = ()
    scheduled_for: int | None = None
    priority: int = 0
    position: int = 0
    placed: bool = False
    tags: str = "[]"
    key: str | None = None
    body_digest: str = ""
    concurrency_key: str | None = None
    capacity: int = 1
    max_attempts: int
    max_lost: int
    backoff: int
    backoff_max: int
    timeout: int | None = None
    payload: str = "null"
    item: int | None = None
    conditional: bool = False
    gives: bool = True
    verifies: str | None = None
    max_rounds: int = 1
    on_failure: str = "fail"
    declares: bool = False
    external: bool = False
    calls: str | None = None
    labels: str | None = None
    plan: bool = False
    part: bool = False
    trace: Trace | None = None

    @property
    def size(self) -> int:
        return BASE_SIZE + len(self.payload) + len(self.title) + ID_SIZE * len(self.needs)


# The values of a task that is given nothing else.
TASK_DEFAULTS = {each.name: each.default for each in fields(TaskRow) if each.default is not MISSING}


RUN_PREFIX = "run:"
TASK_PREFIX = "task:"

# The fields of a task in the order of the columns of `insert_tasks`.
column_values = itemgetter(
    *("id", "kind", "run_id", "parent_id", "step", "title", "agent", "status", "scheduled_for"),
    *("priority", "position", "tags", "key", "body_digest", "concurrency_key", "max_attempts"),
    *("max_lost", "backoff", "backoff_max", "timeout", "payload", "parent_epoch", "item"),
    *("conditional", "gives", "verifies", "max_rounds", "on_failure", "declares", "calls"),
    "labels",
    "external",
)


@dataclass(kw_only=True, slots=True)
class TaskInserts:
    """Rows of tasks to insert, and what follows from their insertion."""

    rows: list[tuple[object, ...]] = field(default_factory=list)
    needs: list[tuple[str, str, int]] = field(default_factory=list)
    # Tasks that go on without a claim: they are evaluated.
    to_evaluate: list[str] = field(default_factory=list)
    # Keys with the digests of their tasks.
    keys: set[tuple[str, str]] = field(default_factory=set)
    slots: dict[str, int] = field(default_factory=dict)
    wakes: bool = False
    # Tasks that can be claimed, as far as these rows tell.
    ready: list[str] = field(default_factory=list)

    def add(self, task: TaskRow, actor: str, *, waits: bool, run_holds: int) -> None:
        self.rows.append((*column_values(vars(task)), waits, run_holds, actor))
        if task.status == "queued":
            self.wakes = True
            if not waits:
                self.ready.append(task.id)
        if task.key is not None:
            self.keys.add((task.key, task.body_digest))
        if task.concurrency_key is not None:
            self.slots[task.concurrency_key] = task.capacity
        self.needs += [(task.id, need, 1) for need in task.needs]
        if waits:
            return
        if task.conditional or (task.kind == "group" and task.item is None):
            self.to_evaluate.append(task.id)

    def add_run(self, tasks: Sequence[TaskRow], actor: str, run_holds: int) -> None:
        """Add all tasks of a new run; a task with needs waits."""
        if type(tasks) is TemplatedTasks:
            tasks.template.add_rows(self, tasks, actor, run_holds)
            return
        for task in tasks:
            self.add(task, actor, waits=bool(task.needs), run_holds=run_holds)


class RowTemplate:
    """The rows of the tasks of one workflow, made once and copied for each run with its own ids."""

    def __init__(self, tasks: Sequence[TaskRow]) -> None:
        """Make a template of tasks of a run without an id; no task may verify another."""
        inserts = TaskInserts()
        inserts.add_run(tasks, "", 0)
        self.tasks = tasks
        self.size = measure_tasks(tasks)
        self.places = {task.id: place for place, task in enumerate(tasks)}
        # A row begins with the id, the kind and the run, and ends with the holds and the actor of
        # the run: only the kind and what stands between is the same for each run.
        self._rows = [(row[1], row[3:-2]) for row in inserts.rows]
        self._needs = [(self.places[one], self.places[other]) for one, other, _ in inserts.needs]
        self._ready = [self.places[each] for each in inserts.ready]
        self._to_evaluate = [self.places[each] for each in inserts.to_evaluate]
        self._inserts = inserts

    def add_rows(
        self, inserts: TaskInserts, tasks: TemplatedTasks, actor: str, run_holds: int
    ) -> None:
        ids, run_id = tasks.ids, tasks.run_id
        inserts.rows += [
            (identifier, kind, run_id, *rest, run_holds, actor)
            for identifier, (kind, rest) in zip(ids, self._rows, strict=True)
        ]
        inserts.needs += [(ids[one], ids[other], 1) for one, other in self._needs]
        inserts.to_evaluate += [ids[each] for each in self._to_evaluate]
        inserts.ready += [ids[each] for each in self._ready]
        inserts.slots |= self._inserts.slots
        inserts.wakes = inserts.wakes or self._inserts.wakes


class TemplatedTasks(Sequence[TaskRow]):
    """The tasks of one run made from a template; a task is made only when it is asked for."""

    __slots__ = ("ids", "run_id", "template")

    def __init__(self, template: RowTemplate, ids: Sequence[str], run_id: str) -> None:
        self.template = template
        self.ids = ids
        self.run_id = run_id

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> TaskRow: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[TaskRow]: ...

    def __getitem__(self, place: int | slice) -> TaskRow | Sequence[TaskRow]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        task = self.template.tasks[place]
        needs = tuple(self.ids[self.template.places[need]] for need in task.needs)
        return replace(task, id=self.ids[place], run_id=self.run_id, needs=needs)


def measure_tasks(tasks: Sequence[TaskRow]) -> int:
    """About how many bytes the rows of tasks have."""
    return (
        tasks.template.size if type(tasks) is TemplatedTasks else sum([task.size for task in tasks])
    )
