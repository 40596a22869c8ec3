"""Run cache: facts of runs that never change, read once and kept while the run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from holdfast.model.budget import to_dollars
from holdfast.settings import MEBIBYTE
from holdfast.store.database import Row, Transaction

KEPT_RUNS = 10_000
KEPT_INPUT_CHARACTERS = 32 * MEBIBYTE


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """The facts of one run that never change."""

    id: str
    workflow: str
    version: str
    key: str | None
    # JSON text, so that each step gets a value of its own.
    input: str
    # The topmost of the runs that call each other; None for a run that no other run called.
    root_id: str | None
    depth: int
    # Whether the run has a concurrency key, so that its end may let another run in.
    keyed: bool
    usd_per_attempt: float | None = None
    # The ids of this run and of those above it whose budget limits what this run uses. The
    # budgets themselves can change, and are not kept here.
    limits: tuple[str, ...] = ()

    @property
    def stands_alone(self) -> bool:
        """Whether the steps and the end of this run concern no other run, and no task around it."""
        return not self.limits and not self.keyed and self.depth == 0

    @cached_property
    def value(self) -> Any:  # noqa: ANN401 - JSON is any value
        """The input as a value that must not be changed."""
        return json.loads(self.input)


class StartedTask(NamedTuple):
    """A task that this process started and that runs, as it was when it started."""

    run_id: str | None
    # Whether its end frees no slot, and settles no group or plan.
    simple: bool
    # Whether a task needs it.
    needed: bool


class RunCache:
    """The facts of runs under way; the oldest are forgotten when there are too many."""

    def __init__(self) -> None:
        self._known: dict[str, RunFacts] = {}
        self._characters = 0
        self._started: dict[str, StartedTask] = {}

    def started(self, task_id: str) -> StartedTask | None:
        """A task that this process started and that runs; None if there is none."""
        return self._started.get(task_id)

    def run_of(self, task_id: str) -> str | None:
        """The run of a task that this process started and that runs; None if there is none."""
        started = self._started.get(task_id)
        return None if started is None else started.run_id

    def note_start(self, row: Row) -> None:
        simple = row["parent_id"] is None and row["concurrency_key"] is None
        self._started[row["entity"]] = StartedTask(row["run_id"], simple, row["needed"])
        if len(self._started) > KEPT_RUNS:
            del self._started[next(iter(self._started))]

    def note_stop(self, task_id: str) -> None:
        self._started.pop(task_id, None)

    def add_facts(self, facts: RunFacts) -> None:
        """Keep the facts of a new run, so that nobody has to read them."""
        if facts.id not in self._known:
            self._keep(facts.id, facts)

    def known_facts(self, ids: Iterable[str]) -> list[RunFacts] | None:
        """The facts of some runs; None if not all of them are known."""
        found = [self._known.get(each) for each in ids]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def read_facts(self, tx: Transaction, ids: Iterable[str]) -> dict[str, RunFacts]:
        wanted = set(ids)
        found = {each: self._known[each] for each in wanted & self._known.keys()}
        if missing := sorted(wanted - found.keys()):
            for row in tx.read("run_facts", ids=missing):
                most = row["budget_usd_per_attempt"]
                facts = RunFacts(
                    id=row["id"],
                    workflow=row["workflow"],
                    version=row["workflow_version"],
                    key=row["key"],
                    input=row["input"],
                    root_id=row["root_id"],
                    depth=row["depth"],
                    keyed=row["keyed"],
                    usd_per_attempt=None if most is None else to_dollars(most),
                    limits=_limits(tx, row),
                )
                found[row["id"]] = facts
                self._keep(row["id"], facts)
        return found

    def forget(self, run_id: str) -> None:
        facts = self._known.pop(run_id, None)
        if facts is not None:
            self._characters -= len(facts.input)

    def _keep(self, run_id: str, facts: RunFacts) -> None:
        self._known[run_id] = facts
        self._characters += len(facts.input)
        while len(self._known) > KEPT_RUNS or self._characters > KEPT_INPUT_CHARACTERS:
            self.forget(next(iter(self._known)))


def _limits(tx: Transaction, row: Row) -> tuple[str, ...]:
    if row["root_id"] is None:
        return (row["id"],) if row["limited"] else ()
    return tuple(found["top"] for found in tx.read("limits_above", ids=[row["id"]]))
