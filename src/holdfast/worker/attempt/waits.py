"""How a function is left for what it waits for: all that waits in it beside each other, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from holdfast.model.effect import WakeCondition

# So many turns of the loop pass before what one group has ended is known around several others.
TURNS = 16

Note = tuple[str, object]


class Suspended(BaseException):
    """Leaves the function until its wait is over; no `except Exception` may keep it in."""

    def __init__(self, wait: WakeCondition, *notes: Note) -> None:
        super().__init__(wait)
        self.wait = wait
        self.notes = notes


class Asking(Suspended):
    """Leaves the function until somebody has answered its question."""

    def __init__(self, question: object, *notes: Note) -> None:
        super().__init__(WakeCondition(), *notes)
        self.question = question


class Waits:
    """The durable operations of one function, and those of them that have to wait.

    Such a one of a coroutine stays where it is while others are under way beside it, which may
    have to wait as well. When none is, the function is left for all of them, whichever is over
    first. Left it is, whatever it makes of that: what it would begin from then on follows from a
    wait that was none, or comes from a branch that is left with the rest and will come again.
    """

    def __init__(self) -> None:
        self._busy = 0
        self._quiet = asyncio.Event()
        self._waiting: list[Suspended] = []
        self._left = False
        self._inside: dict[str, Suspended] = {}

    def left(self, effects: Sequence[str]) -> Suspended | None:
        """What the innermost of the effects around what asks was left by, or else the function.

        Of an effect that was not, nothing is broken off by what is left around it: it is under
        way, and done again if it is not remembered.
        """
        if not effects:
            return join(self._waiting) if self._left else None
        inside = self._inside.get(effects[-1])
        return None if inside is None else join([inside])

    def leave(self, suspended: Suspended) -> Suspended:
        """What to leave a plain function by: all that its threads have come to wait for."""
        # As one that nobody has raised: that one holds on to where it came from.
        self._waiting.append(join([suspended]))
        self._left = True
        return join(self._waiting)

    def leave_effects(self, effects: Collection[str], suspended: Suspended) -> None:
        """Note what leaves the effects that it waits in."""
        self._inside |= dict.fromkeys(effects, join([suspended]))

    @contextmanager
    def around(self, effect: str) -> Iterator[None]:
        """An effect: one that was left by a wait inside it is left, whatever it makes of that."""
        try:
            yield
        except Exception:
            if effect not in self._inside:
                raise
        if effect in self._inside:
            raise join([self._inside[effect]])

    @contextmanager
    def under_way(self) -> Iterator[None]:
        self._busy += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                self._quiet.set()

    async def quiet(self) -> None:
        """Wait until nothing is under way."""
        while self._busy:
            await self._quiet.wait()

    async def join(self, suspended: Suspended) -> Suspended:
        """What to leave the function by, as soon as nothing else of it is under way."""
        self._waiting.append(suspended)
        try:
            turns = 0
            while turns < TURNS:
                await self._quiet.wait()
                await asyncio.sleep(0)
                turns = turns + 1 if self._quiet.is_set() else 0
        except asyncio.CancelledError:
            self._waiting.remove(suspended)
            raise
        self._left = True
        return join(self._waiting)


def join(waiting: Sequence[Suspended]) -> Suspended:
    """One wait for the first of several; a question is asked before anything is waited for."""
    waits = [each for each in waiting if not isinstance(each, Asking)]
    notes = dict(note for each in waits for note in each.notes)
    for asking in waiting:
        if isinstance(asking, Asking):
            return Asking(asking.question, *notes.items(), *asking.notes)
    times = [each.wait.until for each in waits if each.wait.until is not None]
    targets = [each.wait.target for each in waits if each.wait.target is not None]
    wait = WakeCondition(
        until=min(times, default=None),
        target=next(iter(targets), None),
        signals=tuple(signal for each in waits for signal in each.wait.signals),
        children=any(each.wait.children for each in waits),
    )
    return Suspended(wait, *notes.items())
