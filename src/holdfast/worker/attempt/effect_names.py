"""Effect names: each effect, sleep and wait of a function is remembered under one name."""

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

# The first words of the names that Holdfast makes; a user's name that begins so gets a prefix.
_RESERVED_WORDS = frozenset(
    {"artifact", "ask", "effect", "map", "question", "sleep", "spawn", "wait"}
)
# A shortened name keeps so many characters of its beginning.
READABLE_LENGTH = 100
_NUMBERED = re.compile(r" #[0-9]+\Z")


class SharedName(InvalidInput):
    """Two branches of a function use one name: each could get what the other has remembered."""

    def __init__(self, field: str, name: str, advice: str) -> None:
        reason = f"{name!r} is done by two branches of this function, which would get each other's"
        super().__init__(field, f"{reason}; {advice}")


class EffectNames:
    """The names of one attempt, in the order in which its function takes them.

    Concurrent branches take names in an order that may differ when the function runs again. So two
    branches may not share a name: the second one is refused. That also refuses branches that run
    one after the other, because nothing here can tell whether they always do.
    """

    refusal: SharedName | None = None

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._branches: dict[str, object] = {}

    def take_name(self, what: str, name: object = None) -> str:
        """The next name of an operation: `sleep`, `sleep #2`, or with a user's, `sleep (late)`."""
        # The parentheses keep a user's name from looking like a number or like another note.
        given = what if name is None else f"{what} ({clean_key('name', name)})"
        return self._take_unique("name", given, "give each a name of its own: name=…")

    def take_effect_name(self, name: object) -> str:
        return self._take_unique(
            "effect", _effect_name(name), "give the effect of each its own name"
        )

    def take_spawn_name(self, title: str) -> str:
        advice = "give the child of each its own title: ctx.spawn(task.using(title=…), …)"
        return self._take_unique("title", f"spawn {title}", advice)

    def take_call_name(self, title: str) -> str:
        advice = "give the child of each its own title: ctx.call(task.using(title=…), …)"
        return self._take_unique("title", f"call {title}", advice)

    def _take_unique(self, field: str, given: str, advice: str) -> str:
        branch = _current_branch()
        if self._branches.setdefault(given, branch) is not branch:
            self.refusal = SharedName(field, given, advice)
            raise self.refusal
        self._counts[given] += 1
        return clean_key(field, _numbered_name(given, self._counts[given]))

    def find_effect_name(self, name: object) -> str:
        """The name of the effect under way here that has a user's name, or else of the next one."""
        given = _effect_name(name)
        here = [each.name for each in self._find_effects_under_way() if each.given == given]
        return here[-1] if here else _numbered_name(given, self._counts[given] + 1)

    def list_effects_under_way(self) -> list[str]:
        """The names of the effects that are under way around the caller, the innermost last."""
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
            # No `reset(token)`: an abandoned coroutine is closed in another context.
            _EFFECTS_UNDER_WAY.set(before)


class _EffectUnderWay(NamedTuple):
    names: EffectNames
    given: str
    name: str


# A context variable, because several coroutines of a function may run effects of one name.
_EFFECTS_UNDER_WAY: ContextVar[tuple[_EffectUnderWay, ...]] = ContextVar(
    "effects_under_way", default=()
)


def _current_branch() -> object:
    """The branch that runs here: an asyncio task, or the thread of a plain function."""
    try:
        return asyncio.current_task() or threading.current_thread()
    except RuntimeError:
        return threading.current_thread()


def _numbered_name(given: str, count: int) -> str:
    """A name with its number; of a name that is too long, its beginning and a digest."""
    name = _append_number(given, count)
    if len(name) <= MAX_NAME:
        return name
    # The caller refuses a name whose beginning cannot be written as UTF-8.
    return _append_number(f"{given[:READABLE_LENGTH]} {digest(ascii(given))}", count)


def _append_number(name: str, count: int) -> str:
    # A name that already ends like a number always gets one, so that no two names become equal.
    return name if count == 1 and not _NUMBERED.search(name) else f"{name} #{count}"


def _effect_name(name: object) -> str:
    text = clean_key("effect", name)
    return f"effect {text}" if text.split(" ", 1)[0] in _RESERVED_WORDS else text
