"""Batches: the operations of a group, carried out kind by kind, each with its own reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, TypeVar

from holdfast.engine.core.operation import Operation
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.errors import HoldfastError

O = TypeVar("O")  # noqa: E741 - an operation
OperationHandler = Callable[[UnitOfWork, list[Any]], Sequence[object]]
# The handler of each kind of operation, in the order in which the kinds are carried out.
Phase = Mapping[type, OperationHandler]


def one_by_one(handle: Callable[[UnitOfWork, Any], object]) -> OperationHandler:
    """Make a handler of a function for one operation; a refusal is the reply of that operation."""

    def answer(work: UnitOfWork, operation: object) -> object:
        try:
            return handle(work, operation)
        except HoldfastError as error:
            return error

    return lambda work, operations: [answer(work, operation) for operation in operations]


class OperationBatch:
    """The operations of one group; `replies` has a reply for each, in the same order."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.replies: list[object] = [None] * len(operations)
        self._places: dict[type, list[int]] = {}
        for place, operation in enumerate(operations):
            self._places.setdefault(type(operation), []).append(place)
        self._operations = operations
        # With all base classes: most lookups are for kinds that the group does not hold.
        self._kinds = set(chain.from_iterable(kind.__mro__ for kind in self._places))

    def has_any_of(self, *kinds: type) -> bool:
        return not self._kinds.isdisjoint(kinds)

    def has_only(self, kinds: AbstractSet[type]) -> bool:
        """Whether each operation is of exactly one of these kinds, and of no subclass of them."""
        return self._places.keys() <= kinds

    def operations_of(self, kind: type[O]) -> list[O]:
        return self._operations_at(self._places_of(kind)) if kind in self._kinds else []

    def carry_out(self, work: UnitOfWork, phase: Phase) -> None:
        if self._kinds.isdisjoint(phase):
            return
        for kind, handle in phase.items():
            if kind in self._kinds:
                places = self._places_of(kind)
                replies = handle(work, self._operations_at(places))
                for place, reply in zip(places, replies, strict=True):
                    self.replies[place] = reply

    def _places_of(self, kind: type) -> list[int]:
        """The places of the operations of a kind and of its subclasses, in order."""
        found = [places for each, places in self._places.items() if issubclass(each, kind)]
        return found[0] if len(found) == 1 else sorted(chain.from_iterable(found))

    def _operations_at(self, places: Sequence[int]) -> list[Any]:
        return [self._operations[place] for place in places]
