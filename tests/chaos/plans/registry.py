"""The registry of groups that are killed half-way, each with the kinds of operation it holds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.engine.core.operation import Operation
from tests.chaos.explorer import Plan


@dataclass(frozen=True, kw_only=True)
class Planned:
    plan: Plan
    kinds: frozenset[type]


PLANS: dict[str, Planned] = {}


def group_of(*kinds: type) -> Callable[[Plan], Plan]:
    """Register a plan: it prepares a world and gives the group to be asked in it."""

    def register(plan: Plan) -> Plan:
        PLANS[plan.__name__] = Planned(plan=plan, kinds=frozenset(kinds))
        return plan

    return register


def every_kind() -> frozenset[type]:
    """All that can be asked of the writer, down to the kinds that have no further kinds."""
    return frozenset(_leaves([Operation]))


def _leaves(kinds: Iterable[type]) -> Iterable[type]:
    for kind in kinds:
        # A class with slots is made twice, and the first one lingers among the subclasses.
        made: list[type] = type.__subclasses__(kind)
        below = [each for each in made if vars(sys.modules[each.__module__])[each.__name__] is each]
        yield from _leaves(below) if below else (kind,)
