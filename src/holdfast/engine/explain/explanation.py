"""Explanations of tasks: the clauses of a claim with their fixes, and who takes the task.

A task is taken by a worker that has its function, by any worker, or by a claimant that is no worker
of Holdfast.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.errors import read_traceback, summarize_error
from holdfast.model.advice import (
    Action,
    AdviceText,
    advice_of,
    advise,
    join_texts,
    read_stored,
)
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.store.database import Row, Transaction

NOTHING_IN_THE_WAY = "Nothing stands in its way: the next worker that serves it may take it."


class TakenBy(StrEnum):
    """`PROGRAM`: a worker that has its function; `WORKER`: any; `CLAIMANT`: none of Holdfast's."""

    PROGRAM = "program"
    WORKER = "worker"
    CLAIMANT = "claimant"


def find_taker(tx: Transaction, row: Row) -> TakenBy:
    if row["step"] is None:
        return TakenBy.CLAIMANT
    # Loaded late: most reports have no ready step to look at.
    from holdfast.engine.read.step_texts import is_step  # noqa: PLC0415
    from holdfast.model.workflow.graph import read_workflow  # noqa: PLC0415
    from holdfast.model.workflow.step import all_steps  # noqa: PLC0415

    runs = tx.read("run_by_id", run_id=row["run_id"]) if row["run_id"] and is_step(row) else []
    if not runs:
        return TakenBy.PROGRAM
    named = {"name": runs[0]["workflow"], "version": runs[0]["workflow_version"]}
    (found,) = tx.read("workflow_definition", **named)
    workflow = read_workflow(found["definition"])
    works = [step.work for step in all_steps(workflow.steps) if step.id == row["step"]]
    if any(work and not work.external for work in works):
        return TakenBy.WORKER
    return TakenBy.PROGRAM if workflow.declared is None else TakenBy.CLAIMANT


def describe_no_worker(task: Task, taken_by: TakenBy) -> str | None:
    """Say why no worker runs a task, though one may serve its agent; None if a worker does."""
    if taken_by is not TakenBy.CLAIMANT:
        return None
    lacks = "it names no function" if task.step is None else "its workflow file gives it no program"
    command = f"a worker with a command for agent {task.agent!r} in its holdfast.yaml"
    tagged = f" with the tags {', '.join(task.tags)}" if task.tags else ""
    return f"{lacks}: it waits for {command}, or for whoever claims it{tagged}"


def describe_taker(task: Task, taken_by: TakenBy) -> str:
    """The call by which the task is taken."""
    action = Action.CLAIM if taken_by is TakenBy.CLAIMANT else Action.START_WORKER
    return advise(action, "", ("agent", task.agent), *(("tag", tag) for tag in task.tags))


def describe_stored_error(before: str, error: object) -> str:
    """The error of an attempt in one line, after some text; nothing where there is no error."""
    return "" if error is None else before + read_stored(summarize_error(error))


def head_fix(fix: str) -> str:
    """A fix in a line of its own, with another heading where it changes nothing."""
    looks = all(each.action.looks for each in advice_of(fix))
    return f"{'Look:' if looks else 'Fix: '}  " + fix


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One condition of the claim: whether it is met, and if not, why and what would change it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    # Lines below the detail.
    more: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """What is said of a task by its `name`: its state, the clauses of its claim, and who takes it.

    `fix` is the call by which it is taken. `worker` says whether a live worker would take the task;
    None where it needs no worker.
    """

    task: Task
    name: str
    state: str
    clauses: tuple[Clause, ...]
    fix: str = ""
    worker: Clause | None = None
    # The outcome of the last attempt, if the task waits for the next one.
    last_outcome: str | None = None
    taken_by: TakenBy = TakenBy.WORKER

    @property
    def claimable(self) -> bool:
        return all(clause.ok for clause in self.clauses)

    def __str__(self) -> str:
        shown = self.causes_first
        marks = [line for clause in shown for line in _draw_clause(clause)]
        if all(clause.ok for clause in shown):
            marks.append(NOTHING_IN_THE_WAY)
        fixes = dict.fromkeys([*(clause.fix for clause in self.clauses), *self.taking_fixes])
        lines = [f"    {line}" for line in read_traceback(self.task.error)]
        return "\n".join([self.summary, *lines, *marks, *map(head_fix, filter(None, fixes))])

    @property
    def causes_first(self) -> list[Clause]:
        """The clauses with that of the workers, those that are not met before the others."""
        known = [*self.clauses, *([] if self.worker is None else [self.worker])]
        return sorted(known, key=lambda clause: clause.ok)

    @property
    def taking_fixes(self) -> list[str]:
        """The calls by which the task is taken; none where a live worker will take it."""
        worker = self.worker
        if worker is not None and worker.ok:
            return []
        return [fix for fix in (self.fix, "" if worker is None else worker.fix) if fix]

    @property
    def no_worker(self) -> str | None:
        """The reason why no worker runs the task, but a claimant; None if workers do."""
        return describe_no_worker(self.task, self.taken_by)

    @property
    def busy_workers(self) -> tuple[str, ...]:
        """What keeps each worker busy that serves the task, if all of them are full."""
        return () if self.worker is None or not self.claimable else self.worker.more

    @property
    def given_back(self) -> bool:
        """Whether the task is ready because an attempt gave it back.

        The log of that attempt may say why.
        """
        return self.claimable and self.last_outcome == "released"

    @property
    def own_fixes(self) -> list[str]:
        """The fixes of a task that is held up by itself, by the limit of its agent or by a person.

        Among them are the signal that the task waits for, and enqueuing an idle task. A time that
        has not come yet needs no fix.
        """
        own = () if self.task.terminal else self.clauses
        names = {"kind", "holds", "usage"}
        names |= set() if self.task.waits_for is None else {"due"}
        names |= {"status"} if self.task.status is Status.IDLE else set()
        return [each.fix for each in own if each.name in names and each.fix]

    @property
    def one_line(self) -> str:
        """The state of the task, and what holds it up, in one line."""
        return AdviceText(self.name, " ", self.said_of_task)

    @property
    def said_of_task(self) -> str:
        """The same without the name of the task, which other tasks may have in common with it."""
        reasons = [each.detail for each in self.clauses if not each.ok and each.name != "status"]
        if self.task.terminal or self.task.status is Status.RUNNING:
            return self.state
        if not reasons and self.worker is not None and not self.worker.ok:
            reasons = [self.worker.detail]
        return AdviceText(self.state, ": ", join_texts("; ", reasons)) if reasons else self.state

    @property
    def summary(self) -> str:
        return AdviceText(self.name, " ", self.state)


def _draw_clause(clause: Clause) -> list[str]:
    line = f"  {'✓' if clause.ok else '✗'} {clause.name:<8} {clause.detail}".rstrip()
    return [line, *(f"      {each}" for each in clause.more)]
