"""The registry of everything the simulation may ask, each with the arguments it draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from holdfast.clock import MICROSECONDS
from tests.simulation.model_comparison import Ask, Bench

Builder = Callable[..., Ask]
picks = st.integers(0, 63)
seconds = st.sampled_from([1, 5, 10, 40])


Condition = Callable[[Bench], object]


@dataclass(frozen=True, kw_only=True)
class Kind:
    build: Builder
    arguments: dict[str, st.SearchStrategy[Any]]
    when: Condition

    def asked_of(self, bench: Bench, arguments: dict[str, Any]) -> Ask:
        ask: Ask = self.build(bench, **arguments)
        return ask


_KINDS: list[Kind] = []


def kind(
    when: Condition = lambda _: True, /, **arguments: st.SearchStrategy[Any]
) -> Callable[[Builder], Builder]:
    """Register something to ask; `when` keeps it out while it could only be refused."""

    def register(build: Builder) -> Builder:
        _KINDS.append(Kind(build=build, arguments=arguments, when=when))
        return build

    return register


def asked_by(*modules: ModuleType) -> dict[str, Kind]:
    """What some modules have registered, by name."""
    names = {module.__name__ for module in modules}
    return {each.build.__name__: each for each in _KINDS if each.build.__module__ in names}


def has_tasks(bench: Bench) -> object:
    return bench.tasks


def has_runs(bench: Bench) -> object:
    return bench.runs


def has_attempts(bench: Bench) -> object:
    return bench.attempts


def later(bench: Bench, after: int | None) -> int | None:
    return None if after is None else bench.clock.now() + after * MICROSECONDS
