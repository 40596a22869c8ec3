"""Missing functions: tasks on hold `version` wait for them; they are read page by page."""

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
    """The function of a step in a workflow version, or of a task without a run.

    An `external` step has no program: its file leaves it to its worker, so no function is missing.
    """

    workflow: str | None
    version: str | None
    step: str | None
    external: bool = False


class HoldLifter(Protocol):
    """The worker that lifts a hold to take the task itself."""

    @property
    def named(self) -> str: ...
    @property
    def agents(self) -> Sequence[str]: ...
    @property
    def tags(self) -> Sequence[str]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedFunctions:
    """The functions that the tasks after one id and up to another wait for, each once.

    The next page begins after `following`, which is empty after the last page.
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
