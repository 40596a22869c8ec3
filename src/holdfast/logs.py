"""Logs: log lines as JSON, each with the run, task and attempt that it is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Protocol

from holdfast.tracing import find_tracer

FAILURES = "holdfast.worker.failures"
LogFields = Mapping[str, str | int | None]


class Subject(Protocol):
    @property
    def about(self) -> LogFields:
        """The fields of a log line about the subject."""


_subject: ContextVar[Subject | None] = ContextVar("holdfast_log_subject", default=None)


def set_log_subject(subject: Subject) -> None:
    """Make a subject the one of all later log lines in this context."""
    _subject.set(subject)


def find_log_subject() -> Subject | None:
    """The subject of the log lines in this context."""
    return _subject.get()


class JsonLogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        told: dict[str, Any] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_find_fields(record),
            "trace_id": _trace_id(),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps({name: value for name, value in told.items() if value is not None})


def _find_fields(record: logging.LogRecord) -> LogFields:
    """The fields of the first argument with a subject, or else of the subject of the context."""
    named = record.args if isinstance(record.args, tuple) else ()
    for each in named:
        about = getattr(each, "about", None)
        if isinstance(about, Mapping):
            return about
    subject = _subject.get()
    return {} if subject is None else subject.about


def _trace_id() -> str | None:
    known = find_tracer()
    identity = None if known is None else known.current()
    return None if identity is None else identity.trace_id
