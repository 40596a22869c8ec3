"""The functions that tasks on hold `version` want, looked through a page of tasks at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from holdfast.model.workflow.graph_text import read_steps
from holdfast.model.workflow.step import all_steps
from holdfast.store.database import Row, Transaction

DEFINITIONS_KEPT = 100
WANTED_AT_ONCE = 5_000


class WantedFunction(NamedTuple):
    """A step of a version of a workflow, or a lone task's; `external` is one that no program has.

    Its workflow file leaves it to whoever claims it, so that there is nothing to wait for.
    """

    workflow: str | None
    version: str | None
    step: str | None
    external: bool = False


class HoldLifter(Protocol):
    """The worker that lifts a hold, to take the task itself."""

    @property
    def named(self) -> str: ...
    @property
    def agents(self) -> Sequence[str]: ...
    @property
    def tags(self) -> Sequence[str]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedFunctions:
    """The functions of the tasks after one id up to another, each once.

    `following` is where the next page begins, which is the first one when there is no other.
    """

    functions: tuple[WantedFunction, ...]
    after: str
    until: str
    following: str


def read_wanted_functions(tx: Transaction, *, after: str, count: int) -> WantedFunctions:
    rows = tx.read("functions_wanted", after=after, count=count)
    until = max((row["last"] for row in rows), default=after)
    whole = sum(row["tasks"] for row in rows) < count
    return WantedFunctions(
        functions=_build_functions(tx, [row for row in rows if row["open"]]),
        after=after,
        until=until,
        following="" if whole else until,
    )


def _build_functions(tx: Transaction, rows: Sequence[Row]) -> tuple[WantedFunction, ...]:
    found = [WantedFunction(row["workflow"], row["version"], row["step"]) for row in rows]
    external = {flow: _find_external_steps(tx, *flow) for flow in {each[:2] for each in found}}
    return tuple(each._replace(external=each.step in external[each[:2]]) for each in found)


def _find_external_steps(tx: Transaction, name: str | None, version: str | None) -> frozenset[str]:
    rows = tx.read("workflow_definition", name=name, version=version) if name is not None else []
    return frozenset().union(*(_read_external_steps(row["definition"]) for row in rows))


@lru_cache(maxsize=DEFINITIONS_KEPT)
def _read_external_steps(definition: str) -> frozenset[str]:
    steps = all_steps(read_steps(definition))
    return frozenset(step.id for step in steps if step.work is not None and step.work.external)
