"""Small worlds in one store: tasks known by name, claimed by nobody else, compared whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.clock import ManualClock
from holdfast.engine import validation
from holdfast.engine.engine import Engine
from holdfast.engine.operations import CancelRun, CancelTask, Claim, ClaimById, Complete, CreateTasks
from holdfast.ids import Ids
from holdfast.model.graph import Concurrency, Step, Workflow
from holdfast.model.result import AdvanceResult, TransitionResult
from holdfast.model.run import Created, NewRun
from holdfast.model.task import Assignment, NewTask
from holdfast.model.text import digest
from holdfast.store.database import Row, Transaction

LEASE = 30_000_000
FACTS = ("status", "generation", "version", "holds")
TASK_FACTS = (
    *FACTS,
    *("attempt", "epoch", "failures", "lost", "blocked", "run_holds", "due", "run_now"),
    *("worker", "output", "error"),
)


@dataclass(kw_only=True)
class World:
    """What one interleaving plays with; its agent and keys are its own."""

    engine: Engine
    day: ManualClock
    number: int
    ids: dict[str, str] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    key: str | None = None

    @property
    def agent(self) -> str:
        return f"agent-{self.number}"

    def concurrency(self, limit: int) -> Concurrency:
        self.key = f"key-{self.number}"
        return Concurrency(key=self.key, limit=limit)

    def task(self, name: str, *needs: str, **fields: Any) -> str:
        """Create a task that belongs to no run."""
        created = self.engine.tasks.create(self.new_task(name, *needs, **fields))
        self.ids[name] = created.id
        return created.id

    def new_task(self, name: str, *needs: str, **fields: Any) -> NewTask:
        # Ids are ordered by time: each task is younger than those before it.
        self.day.advance(0.001)
        needed = tuple(self.ids[need] for need in needs)
        return NewTask(title=name, agent=self.agent, needs=needed, **fields)

    def run(self, *steps: Step, limit: int | None = None, name: str = "run") -> str:
        """Start a run; its steps are known by their ids."""
        concurrency = None if limit is None else self.concurrency(limit)
        workflow = Workflow.define(
            "race",
            tuple(Step(id=s.id, needs=s.needs, agent=self.agent) for s in steps),
            concurrency=concurrency,
        )
        run = self.engine.runs.start(NewRun(workflow=workflow)).id
        self.ids[name] = run
        self.ids |= {str(task.step): task.id for task in self.engine.runs.tasks(run)}
        return run

    def start(self, name: str, worker: str = "worker") -> Assignment:
        """Claim a task by name and remember its fence."""
        (assignment,) = self.engine.work.claim_by_id(self.ids[name], worker, agents=(self.agent,))
        self.fences[name] = assignment.attempt
        return assignment

    def finish(self, name: str) -> None:
        assignment = self.start(name)
        assert self.engine.work.complete(assignment.task.id, assignment.token, name).ok

    def claim(self, worker: str, count: int = 1) -> Claim:
        return Claim(worker=worker, agents=(self.agent,), tags="[]", count=count, lease=LEASE)

    def claim_by_id(self, name: str, worker: str) -> ClaimById:
        return ClaimById(
            task_id=self.ids[name], worker=worker, agents=(self.agent,), tags="[]", lease=LEASE
        )

    def complete(self, name: str, output: str = '"made"') -> Complete:
        return Complete(
            task_id=self.ids[name], fence=self.fences[name], output=output, digest=digest(output)
        )

    def create(self, name: str, *needs: str, **fields: Any) -> CreateTasks:
        ids = Ids(self.engine.clock, self.engine.randomness)
        row = validation.new_task(self.new_task(name, *needs, **fields), ids, max_payload=1000)
        self.ids[name] = row.id
        return CreateTasks(tasks=(row,), actor="user")

    def cancel(self, name: str) -> CancelTask | CancelRun:
        if self.ids[name].startswith("r_"):
            return CancelRun(run_id=self.ids[name], actor="user")
        return CancelTask(task_id=self.ids[name], actor="user")

    def observe(self) -> tuple[object, ...]:
        """Everything that became of this world, in the names of the test."""
        return self.engine.database.view(self._observe)

    def _observe(self, tx: Transaction) -> tuple[object, ...]:
        seen: list[object] = []
        for name, identifier in sorted(self.ids.items()):
            run = identifier.startswith("r_")
            rows = (
                tx.read("run_by_id", run_id=identifier)
                if run
                else tx.read("task_by_id", task_id=identifier)
            )
            history = [event["type"] for event in tx.read("entity_events", entity=identifier)]
            facts = [_facts(row, FACTS if run else TASK_FACTS) for row in rows]
            seen.append((name, *facts, *history))
        if self.key is not None:
            slots = [row for kind in ("run", "task") for row in self._slot(tx, kind)]
            seen.append(("used", *(slot["used"] for slot in slots)))
        return tuple(seen)

    def _slot(self, tx: Transaction, kind: str) -> list[Row]:
        return tx.read("slot_by_key", key=f"{kind}:{self.key}")

    def describe(self, replies: Sequence[object]) -> tuple[object, ...]:
        return tuple(self._describe(reply) for reply in replies)

    def _describe(self, reply: object) -> object:
        match reply:
            case TransitionResult():
                return (reply.ok, reply.reason, reply.repeated, reply.status)
            case AdvanceResult():
                return (reply.advanced, reply.completed)
            case Assignment():
                return (self._name(reply.task.id), reply.attempt)
            case Created():
                return (self._name(reply.id), reply.created)
            case list():
                return self.describe(reply)
            case Exception():
                return type(reply).__name__
            case _:
                return reply

    def _name(self, identifier: str) -> str:
        return next(name for name, known in self.ids.items() if known == identifier)


def _facts(row: Row, names: Sequence[str]) -> tuple[object, ...]:
    # SQLite has no booleans of its own: 0 and false are one answer.
    return tuple(int(row[name]) if isinstance(row[name], bool) else row[name] for name in names)
