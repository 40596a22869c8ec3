"""Traces: W3C trace and span ids, given from outside or derived from the ids of tasks and runs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from holdfast.errors import InvalidInput
from holdfast.model.text import clean_key, clean_text

TRACE_ID = "[0-9a-f]{32}"
SPAN_ID = "[0-9a-f]{16}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """The trace, and the messages behind it, that a run or a lone task continues."""

    trace_id: str
    causation_id: str | None = None
    correlation_id: str | None = None


def derive_trace_id(root: str) -> str:
    """The trace id of a run or a lone task that was started without a trace."""
    return _digest("trace", root)[:32]


def derive_span_id(message_id: str) -> str:
    return _digest("span", message_id)[:16]


def derive_start_span(root: str) -> str:
    """The span in which a run or a lone task was started."""
    return derive_span_id(f"start {root}")


def derive_message_id(cause: str, kind: str) -> str:
    """The id of a message that follows from a cause; the same cause always gives the same id."""
    return f"{kind}:{_digest('message', f'{cause} {kind}')[:32]}"


def clean_trace_id(field: str, value: object) -> str:
    return _clean(field, value, TRACE_ID, "32")


def clean_span_id(field: str, value: object) -> str:
    return _clean(field, value, SPAN_ID, "16")


def clean_trace(field: str, trace: object) -> Trace:
    if not isinstance(trace, Trace):
        raise InvalidInput(field, f"must be a Trace, not {type(trace).__name__}")
    clean_trace_id(f"{field}.trace_id", trace.trace_id)
    for name in ("causation_id", "correlation_id"):
        if (given := getattr(trace, name)) is not None:
            clean_key(f"{field}.{name}", given)
    return trace


def _clean(field: str, value: object, shape: str, digits: str) -> str:
    text = clean_text(field, value)
    if not re.fullmatch(shape, text) or not text.strip("0"):
        reason = f"{text[:40]!r} is not {digits} hexadecimal digits in lower case, not all zero"
        raise InvalidInput(field, reason)
    return text


def _digest(kind: str, text: str) -> str:
    return hashlib.sha256(f"holdfast {kind} {text}".encode()).hexdigest()
