"""Waits: a function is left for everything that waits in it, and runs again from its top."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from holdfast.model.effect import WakeCondition

# A task group that has ended is known to the groups around it only some passes of the loop later.
LOOP_PASSES = 16

Note = tuple[str, object]


class Suspended(BaseException):
    """Leaves the function until its wait is over.

    It is a `BaseException`, so that no `except Exception` of the function catches it.
    """

    def __init__(self, wait: WakeCondition, *notes: Note) -> None:
        super().__init__(wait)
        self.wait = wait
        self.notes = notes


class SuspendedForAnswer(Suspended):
    """Leaves the function until a person has answered its question."""

    def __init__(self, question: object, *notes: Note) -> None:
        super().__init__(WakeCondition(), *notes)
        self.question = question


class FunctionWaits:
    """The durable operations of one function that are under way, and those that have to wait.

    In a coroutine function, an operation that has to wait stays where it is while other operations
    are under way, because those may have to wait as well. When none is under way, the function is
    left for all waits at once, and runs again when the first of them is over. A function that
    catches `Suspended` counts as left all the same: whatever it begins afterwards is refused, and
    is begun again when the function runs again.
    """

    def __init__(self) -> None:
        self._operations = 0
        self._none_under_way = asyncio.Event()
        self._suspensions: list[Suspended] = []
        self._function_was_left = False
        self._effect_suspensions: dict[str, Suspended] = {}

    def suspension(self, effects: Sequence[str]) -> Suspended | None:
        """The wait for which the innermost effect around the caller was left, or else the function.

        An effect that was not left goes on, also when the function around it was left: it is under
        way, and would be done again if it were not remembered.
        """
        if not effects:
            return join_suspensions(self._suspensions) if self._function_was_left else None
        inside = self._effect_suspensions.get(effects[-1])
        return None if inside is None else join_suspensions([inside])

    def leave_function(self, suspended: Suspended) -> Suspended:
        """The exception that leaves a plain function: all waits that its threads have met."""
        # A new exception, because a raised one keeps its traceback alive.
        self._suspensions.append(join_suspensions([suspended]))
        self._function_was_left = True
        return join_suspensions(self._suspensions)

    def leave_effects(self, effects: Collection[str], suspended: Suspended) -> None:
        """Note that a wait leaves the effects in which it was met."""
        self._effect_suspensions |= dict.fromkeys(effects, join_suspensions([suspended]))

    @contextmanager
    def inside_effect(self, effect: str) -> Iterator[None]:
        """Run an effect. If a wait inside has left it, it is left even when it caught that wait."""
        try:
            yield
        except Exception:
            if effect not in self._effect_suspensions:
                raise
        if effect in self._effect_suspensions:
            raise join_suspensions([self._effect_suspensions[effect]])

    @contextmanager
    def operation_under_way(self) -> Iterator[None]:
        self._operations += 1
        self._none_under_way.clear()
        try:
            yield
        finally:
            self._operations -= 1
            if not self._operations:
                self._none_under_way.set()

    async def wait_until_quiet(self) -> None:
        """Wait until no operation is under way."""
        while self._operations:
            await self._none_under_way.wait()

    async def leave_when_quiet(self, suspended: Suspended) -> Suspended:
        """The exception that leaves a coroutine function, once no other operation is under way."""
        self._suspensions.append(suspended)
        try:
            passes = 0
            while passes < LOOP_PASSES:
                await self._none_under_way.wait()
                await asyncio.sleep(0)
                passes = passes + 1 if self._none_under_way.is_set() else 0
        except asyncio.CancelledError:
            self._suspensions.remove(suspended)
            raise
        self._function_was_left = True
        return join_suspensions(self._suspensions)


def join_suspensions(waiting: Sequence[Suspended]) -> Suspended:
    """One wait for the first of several waits; a question comes before every other wait."""
    waits = [each for each in waiting if not isinstance(each, SuspendedForAnswer)]
    notes = dict(note for each in waits for note in each.notes)
    for asking in waiting:
        if isinstance(asking, SuspendedForAnswer):
            return SuspendedForAnswer(asking.question, *notes.items(), *asking.notes)
    times = [each.wait.until for each in waits if each.wait.until is not None]
    targets = [each.wait.target for each in waits if each.wait.target is not None]
    wait = WakeCondition(
        until=min(times, default=None),
        target=next(iter(targets), None),
        signals=tuple(signal for each in waits for signal in each.wait.signals),
        children=any(each.wait.children for each in waits),
    )
    return Suspended(wait, *notes.items())
