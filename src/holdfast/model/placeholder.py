"""Placeholders: what stands in advice, help and examples for a value that only the user knows.

A placeholder that is passed as it stands is refused: nobody meant it.
"""

from __future__ import annotations

from holdfast.errors import InvalidInput

_WORDS = ("answer", "message", "name", "note", "payload", "reason", "text", "title", "value")
_BARE = ("…", "...")
_PLACEHOLDERS = frozenset(
    [
        *_BARE,
        *(f"<{each}>" for each in (*_BARE, *_WORDS)),
        *(f"[{each}]" for each in (*_BARE, *map(str.upper, _WORDS))),
    ]
)


def make_placeholder(word: str) -> str:
    return f"<{word}>"


def is_placeholder(value: object) -> bool:
    return isinstance(value, str) and value in _PLACEHOLDERS


def refuse_placeholder(field: str, value: object) -> None:
    if is_placeholder(value):
        reason = f"{value!r} only stands for the {field}; write the {field} itself"
        raise InvalidInput(field, reason)
