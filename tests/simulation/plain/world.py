"""The plain model: everything a store knows, as dictionaries, and what can be read off it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.status import Hold
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference

OPEN = frozenset({"idle", "queued", "running"})
WAITING = frozenset({"idle", "queued"})
BROKEN = frozenset({"failed", "cancelled"})
TERMINAL = frozenset({"done", "failed", "cancelled"})
NONE = Hold(0)

Answer = tuple[str, str | None]
"""`ok`, `repeated` or the reason of a refusal, and the status that was told."""


@dataclass(kw_only=True)
class Task:
    id: str
    title: str
    run: str | None = None
    parent: str | None = None
    step: str | None = None
    kind: str = "work"
    agent: str = "default"
    status: str = "queued"
    needs: set[str] = field(default_factory=set)
    holds: Hold = NONE
    held_until: int | None = None
    scheduled_for: int | None = None
    run_now: bool = False
    priority: int = 0
    position: int = 0
    tags: frozenset[str] = frozenset()
    key: str | None = None
    body: object = None
    slot: str | None = None
    attempt: int = 0
    failures: int = 0
    max_attempts: int = 3
    lost: int = 0
    max_lost: int = 5
    backoff: int = 0
    backoff_max: int = 0
    generation: int = 1
    epoch: int = 1
    made_from: Step | None = None
    total: int | None = None
    """Of a loop, how long its list is, once that is known."""
    item: int | None = None
    value: object = None
    gives: bool = True
    superseded: bool = False
    verifies: str | None = None
    round: int = 0
    max_rounds: int = 1
    said: dict[str, Any] = field(default_factory=dict)
    """With which word its last round ended."""
    on_failure: OnFailure = field(default_factory=OnFailure)
    detours: int = 0
    when: Reference | None = None
    decided: bool = False
    """Whether its condition was looked at, and held."""
    skipped: bool = False
    left_out: bool = False
    feedback: object = None
    question: object = None
    output: object = None
    error: object = None
    owner: str | None = None
    expires_at: int | None = None
    endings: dict[int, tuple[str, object]] = field(default_factory=dict)
    """How each attempt ended, and what it said."""

    def leave_running(self, outcome: str, said: object = None) -> None:
        if self.status == "running":
            self.endings[self.attempt] = (outcome, said)
            self.owner = self.expires_at = None

    def begin_again(self) -> None:
        """What had failed waits for approval no more; what a person held is held."""
        if self.asks:
            self.holds &= ~Hold.APPROVAL
        self.error = None

    def forget(self) -> None:
        """Begin again as if for the first time: what was asked is asked no more."""
        if self.question is not None:
            self.holds &= ~Hold.QUESTION
        self.output = self.question = None
        self.begin_again()

    @property
    def asks(self) -> bool:
        """Whether it waits for approval because it has failed."""
        failed = self.on_failure.action == "ask" and self.error is not None
        return failed and Hold.APPROVAL in self.holds

    @property
    def is_item(self) -> bool:
        return self.kind == "group" and self.item is not None

    @property
    def begun(self) -> bool:
        """Whether it has started, which of a group its parts say."""
        if self.kind == "group" and self.status == "queued":
            return self.is_item or self.total is not None
        return self.attempt > 0 or self.status not in WAITING

    @property
    def undecided(self) -> bool:
        return self.when is not None and not self.decided

    @property
    def out_of_rounds(self) -> bool:
        return self.verifies is not None and self.round >= self.max_rounds

    @property
    def place(self) -> tuple[bool, int, int, str]:
        return (not self.run_now, -self.priority, self.position, self.id)


@dataclass(kw_only=True)
class Run:
    id: str
    workflow: str
    key: str | None = None
    body: object = None
    status: str = "running"
    holds: Hold = NONE
    input: object = None
    error: object = None
    slot: str | None = None
    generation: int = 1

    @property
    def has_slot(self) -> bool:
        return self.status == "running" and self.slot is not None and Hold.SLOT not in self.holds


@dataclass(kw_only=True)
class Lease:
    owner: str
    fence: int
    expires_at: int


Place = tuple[str, int, str, int | None]
"""Whose part a task is, in which epoch of that, its step, and which item of a loop it is."""


@dataclass(kw_only=True)
class World:
    now: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    freed: Counter[str] = field(default_factory=Counter)
    """Places that ended tasks and runs gave back, and that nobody was offered yet."""

    names: dict[Place, str] = field(default_factory=dict)
    """What the store called the tasks it made itself; the model takes that on trust."""

    def of_run(self, run: str | None) -> list[Task]:
        """The tasks of a run that count."""
        tasks = [task for task in self.tasks.values() if task.run == run and not task.superseded]
        return sorted(tasks, key=lambda task: task.id)

    def children(self, task: Task) -> list[Task]:
        """The tasks of a group that count."""
        below = [each for each in self.tasks.values() if each.parent == task.id]
        return sorted((each for each in below if not each.superseded), key=lambda each: each.id)

    def around(self, task: Task) -> list[Task]:
        """The groups that a task is part of, the nearest first."""
        found: list[Task] = []
        while task.parent is not None:
            task = self.tasks[task.parent]
            found.append(task)
        return found

    def blocked(self, task: Task) -> bool:
        return any(self.tasks[need].status != "done" for need in task.needs)

    def due(self, task: Task) -> bool:
        return task.scheduled_for is None or task.scheduled_for <= self.now

    def run_holds(self, task: Task) -> Hold:
        holds = NONE if task.run is None else self.runs[task.run].holds
        return holds & ~Hold.PAUSED if task.run_now else holds

    def used(self, key: str) -> int:
        tasks = sum(task.slot == key and task.status == "running" for task in self.tasks.values())
        return tasks + sum(run.slot == key and run.has_slot for run in self.runs.values())

    def room(self, key: str | None) -> bool:
        return key is None or self.used(key) < self.capacity[key]

    def startable(self, task: Task) -> bool:
        """Whether nothing but its place in line and being idle keeps a task from starting."""
        return (
            task.status in WAITING
            and task.kind == "work"
            and not task.undecided
            and not self.blocked(task)
            and not task.holds
            and not self.run_holds(task)
            and self.due(task)
            and self.room(task.slot)
        )

    def leave(self, task: Task, status: str, ending: tuple[str, object]) -> None:
        """End the attempt of a task that runs, and give back its place."""
        task.leave_running(*ending)
        task.status = status
        if task.slot is not None:
            self.freed[task.slot] += 1

    def needed(self, task_id: str) -> set[str]:
        """All that a task needs, directly or through others."""
        found: set[str] = set()
        while more := set().union(*(self.tasks[each].needs for each in {task_id} | found)) - found:
            found |= more
        return found

    def dependents(self, task_id: str) -> set[str]:
        """The tasks that need a task, directly or through what counts, and the task itself."""
        found = {task_id}
        while more := self._needing({t for t in found if not self.tasks[t].superseded}) - found:
            found |= more
        return found

    def _needing(self, ids: set[str]) -> set[str]:
        return {task.id for task in self.tasks.values() if task.needs & ids}

    def behind(self, task_id: str) -> set[str]:
        """What ends after a task, also because an item that does so keeps its place in its loop."""
        return self._behind(task_id)[0]

    def waits_for_itself(self, item: Task) -> bool:
        """Whether an item waits for a place, and who has those of its loop for the item."""
        needed = any(item.id in task.needs for task in self.tasks.values())
        return needed and any(loop.id == item.parent for loop in self._behind(item.id)[1])

    def _behind(self, task_id: str) -> tuple[set[str], list[Task]]:
        """What ends after a task, and the loops in which no other item begins before that."""
        full = [loop for loop in self.of_run(self.tasks[task_id].run) if self._is_loop(loop)]
        while True:
            waiting = [item.id for loop in full for item in self._items(loop, placed=False)]
            ended = self._after({task_id, *waiting})
            stuck = [loop for loop in full if self._is_full(loop, ended)]
            if stuck == full:
                return ended, full
            full = stuck

    def _is_loop(self, task: Task) -> bool:
        return task.kind == "group" and task.made_from is not None and not task.is_item

    def _is_full(self, loop: Task, waiting: set[str]) -> bool:
        assert loop.made_from is not None
        placed = [item for item in self._items(loop, placed=True) if item.id in waiting]
        return len(placed) >= loop.made_from.parallel

    def _items(self, loop: Task, *, placed: bool) -> list[Task]:
        """The open items of a loop that have their steps, and so a place, or wait for one."""
        items = [item for item in self.children(loop) if item.status != "done"]
        return [item for item in items if bool(self.children(item)) == placed]

    def _after(self, tasks: set[str]) -> set[str]:
        """What ends after tasks: who needs them, the groups around, what begins with those."""
        begun, ended = set(tasks), set(tasks)
        while True:
            begins = {t.id for t in self.tasks.values() if t.needs & ended or self._part(t) & begun}
            ends = begins.union(*(self._part(self.tasks[each]) for each in ended))
            if begins <= begun and ends <= ended:
                return ended
            begun, ended = begun | begins, ended | ends

    def _part(self, task: Task) -> set[str]:
        """The group that a task counts for, if any."""
        around = self.around(task)[:1] if not task.superseded else []
        return {each.id for each in around if each.kind == "group"}

    def tree(self, task_id: str) -> set[str]:
        """All below the topmost parent of a task, and that one: what stands for a run."""
        top = self.tasks[task_id]
        while top.parent is not None:
            top = self.tasks[top.parent]
        return self.descendants(top.id)

    def descendants(self, task_id: str) -> set[str]:
        found = {task_id}
        while more := {t.id for t in self.tasks.values() if t.parent in found} - found:
            found |= more
        return found
