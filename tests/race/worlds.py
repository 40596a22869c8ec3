"""Small worlds in one store: tasks known by name, claimed by nobody else, compared whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from holdfast.clock import ManualClock
from holdfast.engine.core.operation import (
    CancelRun,
    CancelTask,
    Claim,
    ClaimById,
    Complete,
    CreateTasks,
    StartRun,
)
from holdfast.engine.engine import Engine
from holdfast.engine.input import validation
from holdfast.engine.surroundings.schedules import FireResult
from holdfast.ids import Ids
from holdfast.model.cron_ticks import format_tick
from holdfast.model.effect import EffectRecord
from holdfast.model.result import AdvanceResult, TransitionResult
from holdfast.model.run import CreateResult, NewRun
from holdfast.model.schedule import Schedule
from holdfast.model.task import Assignment, NewTask
from holdfast.model.text import digest
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.model.workflow.line import OpenedLine
from holdfast.store.database import Row, Transaction

LEASE = 30_000_000
HOUR = 3_600_000_000
FACTS = ("status", "generation", "version", "holds")
TASK_FACTS = (
    *FACTS,
    *("attempt", "epoch", "failures", "lost", "blocked", "run_holds", "due", "run_now"),
    *("worker", "output", "error", "planning_phase", "total", "made", "round", "max_rounds"),
    *("detours", "skipped", "superseded", "feedback", "waits_for", "parent_epoch"),
)


@dataclass(kw_only=True)
class World:
    """What one interleaving plays with; its agent and keys are its own."""

    engine: Engine
    day: ManualClock
    number: int
    ids: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    schedules: dict[str, int] = field(default_factory=dict)

    @property
    def agent(self) -> str:
        return f"agent-{self.number}"

    def concurrency(self, limit: int, name: str = "key") -> Concurrency:
        key = f"{name}-{self.number}"
        self.keys.add(key)
        return Concurrency(key=key, limit=limit)

    def task(self, name: str, *needs: str, **fields: Any) -> str:
        """Create a task that belongs to no run."""
        created = self.engine.tasks.create(self.new_task(name, *needs, **fields))
        self.know(name, created.id)
        return created.id

    def know(self, name: str, identifier: str) -> None:
        self.ids[name] = identifier
        self.names[identifier] = name

    def new_task(self, name: str, *needs: str, **fields: Any) -> NewTask:
        # Ids are ordered by time: each task is younger than those before it.
        self.day.advance(0.001)
        needed = tuple(self.ids[need] for need in needs)
        told = {"agent": self.agent, "step": name, **fields}
        return NewTask(title=name, needs=needed, **told)

    def run(
        self,
        *steps: Step,
        limit: int | None = None,
        name: str = "run",
        given: object = None,
        scheduled_for: int | None = None,
        declared: WorkflowDeclarations | None = None,
    ) -> str:
        """Start a run; its steps are known by their ids, and by their items in a loop."""
        operation = self.start_run(
            *steps,
            limit=limit,
            name=name,
            given=given,
            scheduled_for=scheduled_for,
            declared=declared,
        )
        assert self.engine.commits.submit(operation).result().created
        self.discover()
        return operation.run_id

    def start_run(  # noqa: PLR0913 - what a run is made of
        self,
        *steps: Step,
        limit: int | None = None,
        name: str = "run",
        key: str | None = None,
        given: object = None,
        scheduled_for: int | None = None,
        declared: WorkflowDeclarations | None = None,
    ) -> StartRun:
        self.day.advance(0.001)
        workflow = Workflow.define(
            "race",
            self._own(steps),
            concurrency=None if limit is None else self.concurrency(limit),
            declared=declared,
        )
        run = NewRun(workflow=workflow, key=key, input=given, scheduled_for=scheduled_for)
        operation = validation.new_run(
            run, self._ids(), max_payload=1000, actor_name="user", now=self.day.now
        )
        self.know(name, operation.run_id)
        for task in operation.tasks:
            self.know(str(task.step), task.id)
        return operation

    def _own(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(replace(s, agent=self.agent, steps=self._own(s.steps)) for s in steps)

    def discover(self) -> None:
        """Know what the engine has made of loops by step and item; of two, the one that counts."""
        self.engine.database.view(self._discover)

    def _discover(self, tx: Transaction) -> None:
        runs = [identifier for identifier in self.names if identifier.startswith("r_")]
        for row in (row for run in runs for row in tx.read("run_tasks", run_id=run)):
            if row["item"] is not None:
                self.names[row["id"]] = name = f"{row['step']}.{row['item']}"
                self.ids[name] = row["id"] if not row["superseded"] else self.ids.get(name, "")
        for row in tx.read("runs_below", ids=sorted(runs)):
            self._discover_called(tx, row["id"])

    def _discover_called(self, tx: Transaction, run_id: str) -> None:
        """Know a run by the task that called it and in which epoch, and its steps by that."""
        (run,) = tx.read("run_by_id", run_id=run_id)
        (caller,) = tx.read("task_by_id", task_id=run["parent_id"])
        self.names.setdefault(caller["id"], f"{caller['step']} in {self.names[caller['run_id']]}")
        name = f"{self.names[caller['id']]}@{run['parent_epoch']}"
        self.know(name, run_id)
        for row in tx.read("run_tasks", run_id=run_id):
            self.know(f"{name}.{row['step']}", row["id"])

    def flow(self, *steps: Step, name: str = "called", limit: int | None = None) -> Workflow:
        """A workflow that the store knows, to be called by steps of this world's runs."""
        concurrency = None if limit is None else self.concurrency(limit)
        flow = Workflow.define(f"{name}-{self.number}", self._own(steps), concurrency=concurrency)
        self.engine.workflows.add(flow)
        return flow

    def start(self, name: str, worker: str = "worker") -> Assignment:
        """Claim a task by name and remember its fence."""
        (assignment,) = self.engine.work.claim_by_id(self.ids[name], worker, agents=(self.agent,))
        self.fences[name] = assignment.attempt
        return assignment

    def finish(self, name: str, output: object = None) -> None:
        assignment = self.start(name)
        made = name if output is None else output
        assert self.engine.work.complete(assignment.task.id, assignment.token, made).ok
        self.discover()

    def claim(self, worker: str, count: int = 1, *, agents: Sequence[str] = ()) -> Claim:
        chosen = (self.agent, *agents)
        return Claim(worker=worker, agents=chosen, tags="[]", count=count, lease=LEASE, bare=False)

    def claim_by_id(self, name: str, worker: str) -> ClaimById:
        return ClaimById(
            task_id=self.ids[name], worker=worker, agents=(self.agent,), tags="[]", lease=LEASE
        )

    def complete(self, name: str, output: str = '"made"') -> Complete:
        return Complete(
            task_id=self.ids[name], fence=self.fences[name], output=output, digest=digest(output)
        )

    def create(self, name: str, *needs: str, **fields: Any) -> CreateTasks:
        task = self.new_task(name, *needs, **fields)
        row = validation.new_task(task, self._ids(), max_payload=1000, now=self.engine.now)
        self.know(name, row.id)
        return CreateTasks(tasks=(row,), actor="user")

    def _ids(self) -> Ids:
        return Ids(self.engine.clock, self.engine.randomness)

    def cancel(self, name: str) -> CancelTask | CancelRun:
        if self.ids[name].startswith("r_"):
            return CancelRun(run_id=self.ids[name], actor="user")
        return CancelTask(task_id=self.ids[name], actor="user")

    def observe(self) -> tuple[object, ...]:
        """Everything that became of this world, in the names of the test."""
        return self.engine.database.view(self._observe)

    def _observe(self, tx: Transaction) -> tuple[object, ...]:
        self._discover(tx)
        seen = [self._see(tx, identifier) for identifier in self.names]
        seen = sorted((each for each in seen if len(each) > 1), key=str)
        seen += self._see_lines(tx)
        for key in sorted(self.keys):
            for kind in ("run", "task"):
                slots = tx.read("slot_by_key", key=f"{kind}:{key}")
                seen += [(kind, key.partition("-")[0], slot["used"]) for slot in slots]
        return (*seen, *(self._see_schedule(tx, name) for name in sorted(self.schedules)))

    def _see_lines(self, tx: Transaction) -> list[tuple[object, ...]]:
        """The lines of commits, and the commits of the tasks, of which a run has few."""
        states = tx.read("line_states", ids=sorted(self.names))
        made = tx.read("commits_of_tasks", ids=sorted(self.names))
        lines = [("line", self.names[row["id"]], row["base"], row["head"]) for row in states]
        commits = [
            (row["kind"], self.names[row["task_id"]], row["attempt"], row["number"], row["sha"])
            for row in made
        ]
        return sorted([*lines, *commits], key=str)

    def _see_schedule(self, tx: Transaction, name: str) -> tuple[object, ...]:
        """A schedule as it stands, its times counted from its first tick, and what was fired."""
        first = self.schedules[name]
        keys = [f"schedule:{name}:{format_tick(first + hours * HOUR)}" for hours in range(3)]
        fired = sorted(keys.index(row["key"]) for row in tx.read("tasks_by_key", keys=keys))
        facts = [
            (
                *(None if row[at] is None else row[at] - first for at in ("next_at", "last_at")),
                *(row[fact] for fact in ("version", "last_error", "input", "cron")),
                self.names.get(row["run_id"]),
            )
            for row in tx.read("schedule_by_name", name=name)
        ]
        return (name.partition("-")[0], fired, facts)

    def _see(self, tx: Transaction, identifier: str) -> tuple[Any, ...]:
        run = identifier.startswith("r_")
        rows = (
            tx.read("run_by_id", run_id=identifier)
            if run
            else tx.read("task_by_id", task_id=identifier)
        )
        history = [event["type"] for event in tx.read("entity_events", entity=identifier)]
        needs = sorted(
            f"needs {self.names[row['need_id']]}" for row in tx.read("needs_of", task_id=identifier)
        )
        facts = [self._facts(row, run=run) for row in rows]
        return (self.names[identifier], *history, *needs, *facts)

    def _facts(self, row: Row, *, run: bool) -> tuple[object, ...]:
        """What the row says, a run that it waits for by its name."""
        facts = (row[name] for name in (FACTS if run else TASK_FACTS))
        # SQLite has no booleans of its own: 0 and false are one answer.
        plain = (int(fact) if isinstance(fact, bool) else fact for fact in facts)
        return tuple(
            self.names.get(fact, fact) if isinstance(fact, str) else fact for fact in plain
        )

    def describe(self, replies: Sequence[object]) -> tuple[Any, ...]:
        return tuple(self._describe(reply) for reply in replies)

    def _describe(self, reply: object) -> object:
        match reply:
            case TransitionResult() | AdvanceResult() | EffectRecord() | OpenedLine():
                return _answer(reply)
            case Assignment():
                return (self.names[reply.task.id], reply.attempt)
            case CreateResult():
                return (self.names[reply.id], reply.created)
            case FireResult() | Schedule():
                return _told(reply)
            case list():
                return self.describe(reply)
            case _:
                told = type(reply).__name__ if isinstance(reply, Exception) else reply
                return self.names.get(told, told) if isinstance(told, str) else told


def _told(reply: FireResult | Schedule) -> tuple[object, ...]:
    if isinstance(reply, FireResult):
        return (len(reply.started), reply.problem)
    return (reply.version, reply.input)


def _answer(
    reply: TransitionResult | AdvanceResult | EffectRecord | OpenedLine,
) -> tuple[object, ...]:
    match reply:
        case TransitionResult():
            return (reply.ok, reply.reason, reply.repeated, reply.status)
        case AdvanceResult():
            return (reply.advanced, reply.completed)
        case EffectRecord():
            value = reply.value if not isinstance(reply.value, list) else len(reply.value)
            return (_answer(reply.answer), value, f"found={reply.found}")
        case OpenedLine():
            line = reply.line
            known = () if line is None else (line.base, line.head, line.number, line.draft)
            return (_answer(reply.answer), *known)
        case _:
            assert_never(reply)
