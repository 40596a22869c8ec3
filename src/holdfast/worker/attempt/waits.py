"""How a function is left for what it waits for: all that waits in it beside each other, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from holdfast.model.effect import WakeCondition

# So many turns of the loop pass before what one group has ended is known around several others.
LOOP_PASSES = 16

Note = tuple[str, object]


class Suspended(BaseException):
    """Leaves the function until its wait is over; no `except Exception` may keep it in."""

    def __init__(self, wait: WakeCondition, *notes: Note) -> None:
        super().__init__(wait)
        self.wait = wait
        self.notes = notes


class SuspendedForAnswer(Suspended):
    """Leaves the function until somebody has answered its question."""

    def __init__(self, question: object, *notes: Note) -> None:
        super().__init__(WakeCondition(), *notes)
        self.question = question


class FunctionWaits:
    """The durable operations of one function, and those of them that have to wait.

    Such a one of a coroutine stays where it is while others are under way beside it, which may
    have to wait as well. When none is, the function is left for all of them, whichever is over
    first. Left it is, whatever it makes of that: what it would begin from then on follows from a
    wait that was none, or comes from a branch that is left with the rest and will come again.
    """

    def __init__(self) -> None:
        self._operations = 0
        self._none_under_way = asyncio.Event()
        self._suspensions: list[Suspended] = []
        self._function_was_left = False
        self._effect_suspensions: dict[str, Suspended] = {}

    def suspension(self, effects: Sequence[str]) -> Suspended | None:
        """What the innermost of the effects around what asks was left by, or else the function.

        Of an effect that was not, nothing is broken off by what is left around it: it is under
        way, and done again if it is not remembered.
        """
        if not effects:
            return join_suspensions(self._suspensions) if self._function_was_left else None
        inside = self._effect_suspensions.get(effects[-1])
        return None if inside is None else join_suspensions([inside])

    def leave_function(self, suspended: Suspended) -> Suspended:
        """What to leave a plain function by: all that its threads have come to wait for."""
        # As one that nobody has raised: that one holds on to where it came from.
        self._suspensions.append(join_suspensions([suspended]))
        self._function_was_left = True
        return join_suspensions(self._suspensions)

    def leave_effects(self, effects: Collection[str], suspended: Suspended) -> None:
        """Note what leaves the effects that it waits in."""
        self._effect_suspensions |= dict.fromkeys(effects, join_suspensions([suspended]))

    @contextmanager
    def inside_effect(self, effect: str) -> Iterator[None]:
        """An effect: one that was left by a wait inside it is left, whatever it makes of that."""
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
        """Wait until nothing is under way."""
        while self._operations:
            await self._none_under_way.wait()

    async def leave_when_quiet(self, suspended: Suspended) -> Suspended:
        """What to leave the function by, as soon as nothing else of it is under way."""
        self._suspensions.append(suspended)
        try:
            turns = 0
            while turns < LOOP_PASSES:
                await self._none_under_way.wait()
                await asyncio.sleep(0)
                turns = turns + 1 if self._none_under_way.is_set() else 0
        except asyncio.CancelledError:
            self._suspensions.remove(suspended)
            raise
        self._function_was_left = True
        return join_suspensions(self._suspensions)


def join_suspensions(waiting: Sequence[Suspended]) -> Suspended:
    """One wait for the first of several; a question is asked before anything is waited for."""
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
