"""Under which name each effect, sleep and wait of a function is remembered: one for each."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from holdfast.errors import InvalidInput
from holdfast.model.text import MAX_NAME, clean_key, digest

# The first words of what is remembered without a name of the user's.
_OWN = frozenset({"artifact", "ask", "effect", "map", "question", "sleep", "spawn", "wait"})
# So much of a name that was shortened is still to be read.
READABLE = 100
_NUMBERED = re.compile(r" #[0-9]+\Z")


class SharedName(InvalidInput):
    """Branches do what nothing tells apart; tried again, one would get what the other has left."""

    def __init__(self, field: str, name: str, advice: str) -> None:
        reason = f"{name!r} is done by two branches of this function, which would get each other's"
        super().__init__(field, f"{reason}; {advice}")


class Places:
    """The places of one attempt, in the order in which its function comes by them.

    Branches beside each other come to theirs in no order that is the same when the function runs
    again: what more than one of them does is told apart by names alone, and else refused. Of
    branches one after the other nobody can tell here that they always are.
    """

    refusal: SharedName | None = None

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._branches: dict[str, object] = {}

    def take(self, what: str, name: object = None) -> str:
        """The next place of what may have a name: `sleep`, then `sleep #2`, or `sleep (late)`."""
        # With an end of its own, so that it is no number and nothing noted of another.
        own = what if name is None else f"{what} ({clean_key('name', name)})"
        return self._take("name", own, "give each a name of its own: name=…")

    def take_effect(self, name: object) -> str:
        return self._take("effect", _of_user(name), "give the effect of each its own name")

    def take_spawn(self, title: str) -> str:
        advice = "give the child of each its own title: ctx.spawn(task.using(title=…), …)"
        return self._take("title", f"spawn {title}", advice)

    def _take(self, field: str, own: str, advice: str) -> str:
        branch = _branch()
        if self._branches.setdefault(own, branch) is not branch:
            self.refusal = SharedName(field, own, advice)
            raise self.refusal
        self._counts[own] += 1
        return clean_key(field, _place(own, self._counts[own]))

    def effect_here(self, name: object) -> str:
        """The place of the effect of a name that is under way here; else of the next of it."""
        own = _of_user(name)
        here = [each.place for each in self._around() if each.own == own]
        return here[-1] if here else _place(own, self._counts[own] + 1)

    def effects_around(self) -> list[str]:
        """The places of the effects that are under way around what asks, the innermost last."""
        return [each.place for each in self._around()]

    def _around(self) -> list[_UnderWay]:
        return [each for each in _UNDER_WAY.get() if each.places is self]

    @contextmanager
    def under_way(self, name: object, place: str) -> Iterator[None]:
        before = _UNDER_WAY.get()
        _UNDER_WAY.set((*before, _UnderWay(self, _of_user(name), place)))
        try:
            yield
        finally:
            # No reset: a coroutine that nobody awaits any more is closed in another context.
            _UNDER_WAY.set(before)


class _UnderWay(NamedTuple):
    places: Places
    own: str
    place: str


# By context, because coroutines of one function may each have an effect of one name under way.
_UNDER_WAY: ContextVar[tuple[_UnderWay, ...]] = ContextVar("effects_under_way", default=())


def _branch() -> object:
    """What a function runs in here: a task of the loop, or a thread of a plain function."""
    try:
        return asyncio.current_task() or threading.current_thread()
    except RuntimeError:
        return threading.current_thread()


def _place(own: str, count: int) -> str:
    """A name with its number; where that is too long, of the name its beginning and a digest."""
    place = _numbered(own, count)
    if len(place) <= MAX_NAME:
        return place
    # Whether it can be written at all is said of its beginning, and else by whoever is given it.
    return _numbered(f"{own[:READABLE]} {digest(ascii(own))}", count)


def _numbered(name: str, count: int) -> str:
    # A name that ends like a number is given one at once: no other can then end up as the same.
    return name if count == 1 and not _NUMBERED.search(name) else f"{name} #{count}"


def _of_user(name: object) -> str:
    text = clean_key("effect", name)
    return f"effect {text}" if text.split(" ", 1)[0] in _OWN else text
