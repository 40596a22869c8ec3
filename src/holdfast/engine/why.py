"""Why a task does not run, or does: the claim's own clauses, one by one, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.clock import MICROSECONDS
from holdfast.engine import validation
from holdfast.engine.records import read_task
from holdfast.errors import NotFound
from holdfast.model.status import Hold, Status
from holdfast.model.task import Task
from holdfast.store.database import Database, Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One condition of the claim: whether it holds, what holds it up, what would change it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    task: Task
    summary: str
    clauses: tuple[Clause, ...]

    @property
    def claimable(self) -> bool:
        return all(clause.ok for clause in self.clauses)

    def __str__(self) -> str:
        marks = [
            f"  {'✓' if clause.ok else '✗'} {clause.name:<8} {clause.detail}".rstrip()
            for clause in self.clauses
        ]
        fixes = [f"Fix:   {clause.fix}" for clause in self.clauses if clause.fix]
        return "\n".join([self.summary, *marks, *fixes])


def explain(
    database: Database,
    task_id: str,
    *,
    agents: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
) -> Explanation:
    """Explain a task as a worker with these agents and tags would find it, or any worker."""
    identifier = validation.task_id(task_id)
    serves = None if agents is None else validation.agents(agents)
    offered = None if tags is None else validation.tags(tags)
    return database.view(lambda tx: _Reading(tx, identifier, serves, offered).explain())


class _Reading:
    def __init__(
        self, tx: Transaction, task_id: str, agents: tuple[str, ...] | None, tags: str | None
    ) -> None:
        self._tx = tx
        rows = tx.read("task_by_id", task_id=task_id)
        if not rows:
            raise NotFound(task_id)
        self._row: Row = rows[0]
        self._task = read_task(self._row)
        self._agents = agents
        self._tags = self._row["tags"] if tags is None else tags
        self._now: int = tx.read("now")[0]["now"]

    def explain(self) -> Explanation:
        agent = self._task.agent
        if self._agents is not None and agent not in self._agents:
            agent = self._agents[0]
        found = self._tx.read(
            "claim_tasks_clauses", task_id=self._task.id, agent=agent, tags=self._tags
        )[0]
        clauses = tuple(self._clause(name, ok=bool(ok)) for name, ok in found.items())
        return Explanation(task=self._task, summary=self._summary(), clauses=clauses)

    def _clause(self, name: str, *, ok: bool) -> Clause:
        # A time that has come is only written down by the next claim; it does not hold anyone up.
        if name == "due" and not ok and self._has_come():
            ok = True
        if ok:
            return Clause(name=name, ok=True)
        detail, fix = self._explain_clause(name)
        return Clause(name=name, ok=False, detail=detail, fix=fix)

    def _explain_clause(self, name: str) -> tuple[str, str]:
        words: dict[str, Callable[[], tuple[str, str]]] = {
            "status": self._status,
            "kind": lambda: (f"it is of kind {self._task.kind}, which no worker runs", ""),
            "needs": self._needs,
            "holds": lambda: self._holds(self._task.holds, self._task.id),
            "run": self._run,
            "due": self._due,
            "agent": lambda: (f"it is for agent {self._task.agent!r}", self._serve()),
            "tags": lambda: (f"it needs a worker with the tags {', '.join(self._task.tags)}", ""),
            "slot": self._slot,
        }
        return words[name]()

    def _summary(self) -> str:
        task = self._task
        name = task.step or task.title
        if task.status is Status.RUNNING and task.lease is not None:
            left = self._seconds(task.lease.expires_at)
            when = f"for {left} more" if left != "0s" else "but has expired; recovery takes it back"
            return f"{name} is running: attempt {task.attempt}, leased by {task.lease.owner} {when}"
        if task.terminal:
            return f"{name} is {task.status}" + (f": {task.error}" if task.error else "")
        return f"{name} is {task.status}, not running ({task.state})"

    def _status(self) -> tuple[str, str]:
        task = self._task
        match task.status:
            case Status.IDLE:
                return "it is not in the queue", f'hf.tasks.enqueue("{task.id}")'
            case Status.RUNNING:
                return f"attempt {task.attempt} is running", ""
            case Status.FAILED | Status.CANCELLED:
                return f"it has ended {task.status}", f'hf.tasks.retry("{task.id}")'
            case _:
                return f"it is {task.status}", ""

    def _needs(self) -> tuple[str, str]:
        unmet = self._tx.read("unmet_needs", ids=[self._task.id])
        names = ", ".join(f"{row['step'] or row['id']} ({row['status']})" for row in unmet)
        broken = [row["id"] for row in unmet if row["status"] in {"failed", "cancelled"}]
        return f"waits for {names}", f'hf.tasks.retry("{broken[0]}")' if broken else ""

    def _run(self) -> tuple[str, str]:
        run_id = self._task.run_id or ""
        holds = self._task.run_holds
        if holds & Hold.FAILING:
            tasks = self._tx.read("run_tasks", run_id=run_id)
            broken = [row for row in tasks if row["status"] in {"failed", "cancelled"}]
            names = ", ".join(f"{row['step']} ({row['status']})" for row in broken)
            return f"its run is failing: {names}", f'hf.runs.retry("{run_id}")'
        return self._holds(holds, run_id)

    def _holds(self, holds: Hold, identifier: str) -> tuple[str, str]:
        names = ", ".join(holds.names)
        if holds & Hold.LIMIT and self._row["held_until"] is not None:
            names += f", lifts in {self._seconds(self._row['held_until'])}"
        if holds & Hold.VERSION:
            return self._version(names)
        if not holds & Hold.PAUSED:
            return f"hold: {names}", ""
        return f"hold: {names}", _lift_paused(identifier)

    def _version(self, names: str) -> tuple[str, str]:
        found = self._tx.read("run_by_id", run_id=self._task.run_id or "")
        of = f" of {found[0]['workflow']}@{found[0]['workflow_version'][:8]}" if found else ""
        detail = (
            f"hold: {names}; the worker that claimed it has no function {self._task.step!r}{of}"
        )
        return detail, "start a worker from the program that defines it"

    def _has_come(self) -> bool:
        return self._task.scheduled_for is not None and self._task.scheduled_for <= self._now

    def _due(self) -> tuple[str, str]:
        if self._task.waits_for is not None:
            return self._awaited(self._task.waits_for)
        wait = self._seconds(self._task.scheduled_for or 0)
        return f"its time comes in {wait}", f'hf.tasks.run_now("{self._task.id}")'

    def _awaited(self, awaited: str) -> tuple[str, str]:
        target, _, name = awaited.partition(" ")
        if not name:
            return "it waits until its children have ended", ""
        return f"it waits for the signal {name!r}", f'hf.signal("{target}", "{name}")'

    def _slot(self) -> tuple[str, str]:
        key = self._task.concurrency_key or ""
        slot = self._tx.read("slot_by_key", key=key)[0]
        holders = ", ".join(row["id"] for row in self._tx.read("slot_holders", key=key))
        shown = key.partition(":")[2]
        return f"{shown} is full, {slot['used']} of {slot['capacity']}: {holders}", ""

    def _serve(self) -> str:
        return f'hf.worker(agents=["{self._task.agent}"])'

    def _seconds(self, moment: int) -> str:
        left = max(0, moment - self._now) / MICROSECONDS
        hours, rest = divmod(round(left), 3600)
        minutes, seconds = divmod(rest, 60)
        parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
        return " ".join(f"{value}{unit}" for value, unit in parts if value) or "0s"


def _lift_paused(identifier: str) -> str:
    if identifier.startswith("r_"):
        return f'hf.runs.resume("{identifier}")'
    return f'hf.tasks.unhold("{identifier}")'
