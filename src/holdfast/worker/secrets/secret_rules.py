"""Secret rules: texts for people are redacted; values that code reads again are refused instead.

Everything that leaves a step passes `redact_or_refuse`: the output of commands, the calls of its
address, and what a Python function logs, returns or raises.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.worker.secrets.redaction import Redaction, RedactionStream

# Replaces every known secret in a value or in bytes by `[secret NAME]`.
Clean = Callable[[Any], Any]

_MARK = re.compile(r"\[secret ([A-Za-z_][A-Za-z0-9_]*)\]")


class WrittenKind(StrEnum):
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


READ_BY_CODE = frozenset(
    {WrittenKind.EFFECT, WrittenKind.CHILD, WrittenKind.FILE, WrittenKind.NAME}
)
_ADVICE = {
    WrittenKind.EFFECT: "remember what it stands for, or where it is found",
    WrittenKind.CHILD: "let the child ask for it in its own env",
    WrittenKind.FILE: "keep it as text, which is redacted, or without the secret",
    WrittenKind.NAME: "take another",
}


def redact_or_refuse(kind: WrittenKind, value: Any, clean: Clean, field: str | None = None) -> Any:  # noqa: ANN401 - JSON is any value, and a file is bytes
    """The value as it may be written down; raises `InvalidInput` if it must not be redacted."""
    cleaned = clean(value)
    if kind not in READ_BY_CODE or cleaned is value:
        return cleaned
    names = _find_added_secrets(_as_text(value), _as_text(cleaned))
    if not names:
        return value
    reason = f"holds the secret {' and '.join(names)}, and is read again by code, so it is kept"
    raise InvalidInput(field or kind, f"{reason} whole or not at all; {_ADVICE[kind]}")


def _find_added_secrets(before: str, after: str) -> list[str]:
    """The names of the secrets that were replaced in a text."""
    if before == after:
        return []
    found = Counter(_MARK.findall(after)) - Counter(_MARK.findall(before))
    return sorted(found) or ["of this worker"]


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return json.dumps(value, ensure_ascii=False, default=repr)


class Cleaner:
    """Replaces all secrets that some redactions know at the time of the call, in JSON or bytes."""

    def __init__(self, *redactions: Callable[[], Redaction]) -> None:
        self.redactions = redactions

    def __call__(self, value: Any) -> Any:  # noqa: ANN401 - JSON is any value
        for current_redaction in self.redactions:
            redaction = current_redaction()
            value = redaction.clean(value) if isinstance(value, bytes) else redaction.value(value)
        return value

    def with_redaction(self, redaction: Redaction) -> Cleaner:
        """A cleaner that replaces the secrets of one more redaction."""
        return Cleaner(*self.redactions, lambda: redaction)


class CleanStream:
    """Bytes that come in pieces, cleaned by a cleaner that may get more redactions meanwhile."""

    def __init__(self, current_cleaner: Callable[[], Cleaner]) -> None:
        self._current_cleaner = current_cleaner
        self._streams: list[RedactionStream] = []

    def feed(self, data: bytes) -> bytes:
        redactions = self._current_cleaner().redactions
        self._streams += map(RedactionStream, redactions[len(self._streams) :])
        for stream in self._streams:
            data = stream.feed(data)
        return data

    def flush(self) -> bytes:
        """The rest that was held back, at the end of the stream."""
        data = b""
        for stream in self._streams:
            data = stream.feed(data) + stream.flush()
        return data
