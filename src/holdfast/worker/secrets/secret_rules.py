"""Secret rules: what people read is redacted, what code reads again is refused and never altered.

Every way that leads out of a step asks `admit`: its pipes, its commands, calls of its address, and
what a Python function says, gives or raises.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.worker.secrets.redaction import Redaction

# Gives a value, or bytes, with every known secret replaced by its mark.
Clean = Callable[[Any], Any]

_MARK = re.compile(r"\[secret ([A-Za-z_][A-Za-z0-9_]*)\]")


class Kind(StrEnum):
    LOG = "log"
    ERROR = "error"
    PROGRESS = "progress"
    OUTPUT = "output"
    QUESTION = "question"
    USAGE = "usage"
    TEXT = "text"
    EFFECT = "effect"
    CHILD = "child"
    FILE = "file"
    NAME = "name"


READ_BY_CODE = frozenset({Kind.EFFECT, Kind.CHILD, Kind.FILE, Kind.NAME})
_ADVICE = {
    Kind.EFFECT: "remember what it stands for, or where it is found",
    Kind.CHILD: "let the child ask for it in its own env",
    Kind.FILE: "keep it as text, which is redacted, or without the secret",
    Kind.NAME: "take another",
}


def admit(kind: Kind, value: Any, clean: Clean, field: str | None = None) -> Any:  # noqa: ANN401 - JSON is any value, and a file is bytes
    """The value as it may be written down; raises `InvalidInput` where it must not be at all."""
    cleaned = clean(value)
    if kind not in READ_BY_CODE or cleaned is value:
        return cleaned
    names = _added(_text(value), _text(cleaned))
    if not names:
        return value
    reason = f"holds the secret {' and '.join(names)}, and is read again by code, so it is kept"
    raise InvalidInput(field or kind, f"{reason} whole or not at all; {_ADVICE[kind]}")


def _added(before: str, after: str) -> list[str]:
    """The secrets that are marked in a text, and were not before."""
    if before == after:
        return []
    found = Counter(_MARK.findall(after)) - Counter(_MARK.findall(before))
    return sorted(found) or ["of this worker"]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return json.dumps(value, ensure_ascii=False, default=repr)


def cleaner(present: Callable[[], Redaction]) -> Clean:
    """What keeps out all that is known by the time it is asked, of JSON and of bytes."""

    def clean(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
        redaction = present()
        return redaction.clean(value) if isinstance(value, bytes) else redaction.value(value)

    return clean
