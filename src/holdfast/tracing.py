"""Spans for OpenTelemetry where the standard OTEL_* variables ask for them; else nothing at all."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from typing import Protocol

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_HEADER = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")

log = logging.getLogger("holdfast.tracing")


@dataclass(frozen=True, kw_only=True)
class SpanIdentity:
    """Where a span belongs, in the digits of W3C; one without a `span_id` is given one."""

    trace_id: str
    span_id: str | None = None
    parent_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Span:
    name: str
    place: SpanIdentity
    attributes: Mapping[str, str | int] = field(default_factory=dict)


class ActiveSpan(Protocol):
    """A span under way."""

    def fail(self, reason: str) -> None: ...


class Tracer(Protocol):
    def current(self) -> SpanIdentity | None:
        """The span that whoever asks is in."""

    def record(self, span: Span, start: int, end: int) -> None:
        """Tell of what is over: from one moment to another, in microseconds."""

    def within(self, span: Span) -> AbstractContextManager[ActiveSpan]:
        """Be in a span until the end of the block."""


def read_traceparent(text: str) -> SpanIdentity | None:
    """The place that a `traceparent` names, for a span below it."""
    found = _HEADER.fullmatch(text)
    return None if found is None else SpanIdentity(trace_id=found[1], parent_id=found[2])


def write_traceparent() -> str | None:
    """The `traceparent` of the span that this is in, where there is one."""
    known = find_tracer()
    place = None if known is None else known.current()
    return None if place is None else f"00-{place.trace_id}-{place.span_id}-01"


def is_tracing_wanted(environment: Mapping[str, str]) -> bool:
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    exporter = environment.get("OTEL_TRACES_EXPORTER", "otlp").lower()
    named = any(environment.get(each) for each in _ENDPOINTS)
    return not disabled and exporter == "otlp" and (named or "OTEL_TRACES_EXPORTER" in environment)


@lru_cache(maxsize=1)
def find_tracer() -> Tracer | None:
    """The tracer of this process, or None while nobody wants to hear of anything."""
    if not is_tracing_wanted(os.environ):
        return None
    if find_spec("opentelemetry") is None:
        log.warning(
            "OTEL_* asks for traces, and what sends them is not installed: type "
            "pip install '.[otel]' in a clone of Holdfast"
        )
        return None
    # It takes longer to import than most commands take.
    from holdfast.spans import make_tracer  # noqa: PLC0415

    return make_tracer()
