"""What is told of why a task does not run, or does: the clauses of its claim and their fixes."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.why_taker import TakenBy, tell_left
from holdfast.model.status import Status
from holdfast.model.task import Task

_FREE = "Nothing stands in its way: the next worker that serves it may take it."


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
    fix: str = ""
    # How the attempt ended that the next one follows.
    last: str | None = None
    taken_by: TakenBy = TakenBy.WORKER

    @property
    def claimable(self) -> bool:
        return all(clause.ok for clause in self.clauses)

    def __str__(self) -> str:
        marks = [
            f"  {'✓' if clause.ok else '✗'} {clause.name:<8} {clause.detail}".rstrip()
            for clause in self.clauses
        ]
        if self.claimable:
            marks.append(f"Nothing stands in its way; {self.left}." if self.left else _FREE)
        fixes = dict.fromkeys([*(clause.fix for clause in self.clauses), self.fix])
        return "\n".join([self.summary, *marks, *(f"Fix:   {fix}" for fix in fixes if fix)])

    @property
    def left(self) -> str | None:
        """Why every worker leaves it to whoever claims it, if they do."""
        return tell_left(self.task, self.taken_by)

    @property
    def given_back(self) -> bool:
        """Whether it is ready again because a worker let it go; the log of that may say why."""
        return self.claimable and self.last == "released"

    @property
    def own_fixes(self) -> list[str]:
        """What would change a task that is held up by itself, its agent's limit or a person.

        So does the signal that it waits for, and to be put in the queue; a time comes by itself.
        """
        own = () if self.task.terminal else self.clauses
        names = {"kind", "holds", "usage"}
        names |= set() if self.task.waits_for is None else {"due"}
        names |= {"status"} if self.task.status is Status.IDLE else set()
        return [each.fix for each in own if each.name in names and each.fix]

    @property
    def line(self) -> str:
        """How the task stands, and what holds it up, in one line."""
        reasons = [each.detail for each in self.clauses if not each.ok and each.name != "status"]
        if self.task.terminal or self.task.status is Status.RUNNING or not reasons:
            return self.summary
        return f"{self.summary}: {'; '.join(reasons)}"
