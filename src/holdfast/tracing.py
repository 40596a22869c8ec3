"""Tracing: the port for spans, and the OpenTelemetry tracer where OTEL_* variables ask for one."""

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
    """The ids of a span, as W3C writes them; a span without a `span_id` is given one."""

    trace_id: str
    span_id: str | None = None
    parent_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Span:
    name: str
    identity: SpanIdentity
    attributes: Mapping[str, str | int] = field(default_factory=dict)


class ActiveSpan(Protocol):
    """A span that has begun and not ended."""

    def fail(self, reason: str) -> None: ...


class Tracer(Protocol):
    def current(self) -> SpanIdentity | None:
        """The span that surrounds the caller, if there is one."""

    def record(self, span: Span, start: int, end: int) -> None:
        """Report a span that is over; its `start` and `end` are microseconds."""

    def within(self, span: Span) -> AbstractContextManager[ActiveSpan]:
        """Open a span that lasts until the end of the block."""


def read_traceparent(text: str) -> SpanIdentity | None:
    """The identity for a span below the one that a `traceparent` names."""
    found = _HEADER.fullmatch(text)
    return None if found is None else SpanIdentity(trace_id=found[1], parent_id=found[2])


def write_traceparent() -> str | None:
    """The `traceparent` of the span that surrounds the caller, if there is one."""
    known = find_tracer()
    identity = None if known is None else known.current()
    return None if identity is None else f"00-{identity.trace_id}-{identity.span_id}-01"


def is_tracing_wanted(environment: Mapping[str, str]) -> bool:
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    exporter = environment.get("OTEL_TRACES_EXPORTER", "otlp").lower()
    named = any(environment.get(each) for each in _ENDPOINTS)
    return not disabled and exporter == "otlp" and (named or "OTEL_TRACES_EXPORTER" in environment)


@lru_cache(maxsize=1)
def find_tracer() -> Tracer | None:
    """The tracer of this process, or None where no OTEL_* variable asks for traces."""
    if not is_tracing_wanted(os.environ):
        return None
    if find_spec("opentelemetry") is None:
        log.warning(
            "OTEL_* asks for traces, and what sends them is not installed: type "
            "pip install '.[otel]' in a clone of Holdfast"
        )
        return None
    # Imported here, because the import takes longer than most commands take.
    from holdfast.spans import make_tracer  # noqa: PLC0415

    return make_tracer()
