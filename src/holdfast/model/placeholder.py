"""Placeholders: what stands in advice, help and examples for a value that only the user knows.

A placeholder that is passed as it stands is refused: nobody meant it. Everywhere these are the
words of advice, such as `<answer>`. Where a person types, they are the marks of help too, which
may be data elsewhere: an application passes on whatever its own users have written.
"""

from __future__ import annotations

from holdfast.errors import InvalidInput

_WORDS = ("answer", "message", "name", "note", "payload", "reason", "text", "title", "value")
_BARE = ("…", "...")
_ADVISED = frozenset(f"<{each}>" for each in _WORDS)
_TYPED = _ADVISED.union(
    _BARE,
    (f"<{each}>" for each in _BARE),
    (f"[{each}]" for each in (*_BARE, *map(str.upper, _WORDS))),
)


def make_placeholder(word: str) -> str:
    return f"<{word}>"


def is_placeholder(value: object, *, typed: bool = False) -> bool:
    return isinstance(value, str) and value in (_TYPED if typed else _ADVISED)


def refuse_placeholder(field: str, value: object, *, typed: bool = False) -> None:
    if is_placeholder(value, typed=typed):
        reason = f"{value!r} only stands for the {field}; write the {field} itself"
        raise InvalidInput(field, reason)
