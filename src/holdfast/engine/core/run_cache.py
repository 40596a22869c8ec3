"""What never changes of a run or a task: read once, kept while it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.model.budget import to_dollars
from holdfast.settings import MEBIBYTE
from holdfast.store.database import Row, Transaction

KEPT_RUNS = 10_000
KEPT_INPUT_CHARACTERS = 32 * MEBIBYTE


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    id: str
    workflow: str
    version: str
    key: str | None
    # As JSON: each step gets a value of its own.
    input: str
    # The run at the top of those that call each other, where that is another one.
    root_id: str | None
    depth: int
    # Whether its end lets another run in.
    keyed: bool
    usd_per_attempt: float | None = None
    # It and those that called it, as far as a budget limits all that they use and call; how far
    # it does is another thing, and changes.
    limits: tuple[str, ...] = ()

    @property
    def stands_alone(self) -> bool:
        """Whether its steps and its end concern no other run."""
        return not self.limits and not self.keyed and self.root_id is None

    @cached_property
    def value(self) -> Any:  # noqa: ANN401 - JSON is any value
        """The input itself, for who only looks at it."""
        return json.loads(self.input)


class RunCache:
    """The facts of the runs that are under way, as far as there is room for them."""

    def __init__(self) -> None:
        self._known: dict[str, RunFacts] = {}
        self._characters = 0
        self._runs: dict[str, str] = {}

    def run_of(self, task_id: str) -> str | None:
        """The run of a task that was started here; None for one that has none, or is not known."""
        return self._runs.get(task_id)

    def note_start(self, task_id: str, run_id: str) -> None:
        self._runs[task_id] = run_id
        if len(self._runs) > KEPT_RUNS:
            del self._runs[next(iter(self._runs))]

    def note_stop(self, task_id: str) -> None:
        self._runs.pop(task_id, None)

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
