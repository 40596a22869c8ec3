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
_RESERVED_WORDS = frozenset(
    {"artifact", "ask", "effect", "map", "question", "sleep", "spawn", "wait"}
)
# So much of a name that was shortened is still to be read.
READABLE_LENGTH = 100
_NUMBERED = re.compile(r" #[0-9]+\Z")


class SharedName(InvalidInput):
    """Branches do what nothing tells apart; tried again, one would get what the other has left."""

    def __init__(self, field: str, name: str, advice: str) -> None:
        reason = f"{name!r} is done by two branches of this function, which would get each other's"
        super().__init__(field, f"{reason}; {advice}")


class EffectNames:
    """The places of one attempt, in the order in which its function comes by them.

    Branches beside each other come to theirs in no order that is the same when the function runs
    again: what more than one of them does is told apart by names alone, and else refused. Of
    branches one after the other nobody can tell here that they always are.
    """

    refusal: SharedName | None = None

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._branches: dict[str, object] = {}

    def take_name(self, what: str, name: object = None) -> str:
        """The next place of what may have a name: `sleep`, then `sleep #2`, or `sleep (late)`."""
        # With an end of its own, so that it is no number and nothing noted of another.
        given = what if name is None else f"{what} ({clean_key('name', name)})"
        return self._take_unique("name", given, "give each a name of its own: name=…")

    def take_effect_name(self, name: object) -> str:
        return self._take_unique(
            "effect", _effect_name(name), "give the effect of each its own name"
        )

    def take_spawn_name(self, title: str) -> str:
        advice = "give the child of each its own title: ctx.spawn(task.using(title=…), …)"
        return self._take_unique("title", f"spawn {title}", advice)

    def _take_unique(self, field: str, given: str, advice: str) -> str:
        branch = _current_branch()
        if self._branches.setdefault(given, branch) is not branch:
            self.refusal = SharedName(field, given, advice)
            raise self.refusal
        self._counts[given] += 1
        return clean_key(field, _numbered_name(given, self._counts[given]))

    def find_effect_name(self, name: object) -> str:
        """The place of the effect of a name that is under way here; else of the next of it."""
        given = _effect_name(name)
        here = [each.name for each in self._find_effects_under_way() if each.given == given]
        return here[-1] if here else _numbered_name(given, self._counts[given] + 1)

    def list_effects_under_way(self) -> list[str]:
        """The places of the effects that are under way around what asks, the innermost last."""
        return [each.name for each in self._find_effects_under_way()]

    def _find_effects_under_way(self) -> list[_EffectUnderWay]:
        return [each for each in _EFFECTS_UNDER_WAY.get() if each.names is self]

    @contextmanager
    def effect_under_way(self, given: object, name: str) -> Iterator[None]:
        before = _EFFECTS_UNDER_WAY.get()
        _EFFECTS_UNDER_WAY.set((*before, _EffectUnderWay(self, _effect_name(given), name)))
        try:
            yield
        finally:
            # No reset: a coroutine that nobody awaits any more is closed in another context.
            _EFFECTS_UNDER_WAY.set(before)


class _EffectUnderWay(NamedTuple):
    names: EffectNames
    given: str
    name: str


# By context, because coroutines of one function may each have an effect of one name under way.
_EFFECTS_UNDER_WAY: ContextVar[tuple[_EffectUnderWay, ...]] = ContextVar(
    "effects_under_way", default=()
)


def _current_branch() -> object:
    """What a function runs in here: a task of the loop, or a thread of a plain function."""
    try:
        return asyncio.current_task() or threading.current_thread()
    except RuntimeError:
        return threading.current_thread()


def _numbered_name(given: str, count: int) -> str:
    """A name with its number; where that is too long, of the name its beginning and a digest."""
    name = _append_number(given, count)
    if len(name) <= MAX_NAME:
        return name
    # Whether it can be written at all is said of its beginning, and else by whoever is given it.
    return _append_number(f"{given[:READABLE_LENGTH]} {digest(ascii(given))}", count)


def _append_number(name: str, count: int) -> str:
    # A name that ends like a number is given one at once: no other can then end up as the same.
    return name if count == 1 and not _NUMBERED.search(name) else f"{name} #{count}"


def _effect_name(name: object) -> str:
    text = clean_key("effect", name)
    return f"effect {text}" if text.split(" ", 1)[0] in _RESERVED_WORDS else text
