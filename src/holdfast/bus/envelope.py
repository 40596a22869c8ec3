"""Envelopes: the form of every message on a bus, its checks, and its JSON Schema.

A message that cannot be read is replaced by an envelope that says so, for a person to see.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.ids import ALPHABET
from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.moment import describe_moment
from holdfast.model.text import (
    MAX_DEPTH,
    MAX_NAME,
    clean_key,
    clean_name,
    clean_text,
    digest,
    encode_json,
    parse_run_id,
    parse_task_id,
)
from holdfast.model.trace import (
    SPAN_ID,
    TRACE_ID,
    Trace,
    clean_span_id,
    clean_trace_id,
    derive_message_id,
    derive_span_id,
    derive_trace_id,
)
from holdfast.settings import MEBIBYTE

MAX_PAYLOAD = MEBIBYTE
REQUIRED = ("message_id", "trace_id", "type", "created_at")
UNREADABLE = "bus.unreadable"
_SHOWN_CHARACTERS = 10_000

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Envelope(ReadableRecord):
    """One message; two deliveries with one `message_id` are one. `created_at` is microseconds."""

    message_id: str
    trace_id: str
    type: str
    created_at: int
    span_id: str | None = None
    causation_id: str | None = None
    correlation_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    step: str | None = None
    agent: str | None = None
    payload: Any = None

    @property
    def about(self) -> str:
        """The matter whose messages keep their order: a run, a task, a correlation, or itself."""
        return self.run_id or self.task_id or self.correlation_id or self.message_id

    @property
    def trace(self) -> Trace:
        """The trace of a run or task that is started because of this message."""
        return Trace(
            trace_id=self.trace_id,
            causation_id=self.message_id,
            correlation_id=self.correlation_id or self.message_id,
        )

    def follow(
        self, kind: str, payload: object, *, created_at: int, message_id: str | None = None
    ) -> Envelope:
        """A message caused by this one: in the same trace, and with the same id each time."""
        known = message_id or derive_message_id(self.message_id, kind)
        return replace(
            self,
            message_id=known,
            span_id=derive_span_id(known),
            type=kind,
            created_at=created_at,
            causation_id=self.message_id,
            correlation_id=self.correlation_id or self.message_id,
            payload=payload,
        )

    def as_json(self) -> dict[str, Any]:
        """The message as JSON: without empty fields, and its time as a text."""
        said = zip(_NAMES, _values(self), strict=True)
        told = {name: value for name, value in said if value is not None}
        told["created_at"] = describe_moment(self.created_at)
        told["payload"] = self.payload
        return told


_NAMES = tuple(each.name for each in fields(Envelope))
_values = attrgetter(*_NAMES)


def encode_envelope(envelope: Envelope) -> str:
    """The text of an envelope whose fields were checked by the store already."""
    return _encode(envelope.as_json())


def write_envelope(envelope: Envelope) -> str:
    """The text of an envelope, every field of it checked."""
    if not isinstance(envelope, Envelope):
        kind = type(envelope).__name__
        raise InvalidInput("envelope", f"must be an Envelope, not {kind}; read_envelope makes one")
    if type(envelope.created_at) is not int:
        kind = type(envelope.created_at).__name__
        raise InvalidInput("created_at", f"must be a number of microseconds, not {kind}")
    return encode_json(
        "envelope", read_envelope(envelope.as_json()).as_json(), limit=2 * MAX_PAYLOAD
    )


def read_envelope(given: object) -> Envelope:
    """Make an envelope of JSON, as a text or read already; unknown fields are dropped."""
    told = _read_object(given)
    if missing := [name for name in REQUIRED if told.get(name) is None]:
        more = f", and so is {' and '.join(missing[1:])}" if missing[1:] else ""
        raise InvalidInput(missing[0], f"is missing{more}; a message without it is not taken")
    payload = told.get("payload")
    if not _is_harmless(given):
        encode_json("payload", payload, limit=MAX_PAYLOAD)
    cleaned: dict[str, Any] = {
        name: value if type(value) is str and plain(value) else clean(name, value)
        for name, (plain, clean) in _CLEANERS.items()
        if (value := told.get(name)) is not None
    }
    return Envelope(**cleaned, payload=payload)


def _is_harmless(given: object) -> bool:
    """Whether a text can be seen to have nothing that a store would refuse."""
    if not isinstance(given, str) or len(given) > MAX_PAYLOAD // 4 or "\\u" in given:
        return False
    return given.isprintable() and given.count("[") + given.count("{") < MAX_DEPTH


def _read_object(given: object) -> Mapping[str, Any]:
    if isinstance(given, str | bytes):
        try:
            text = given if isinstance(given, str) else given.decode(json.detect_encoding(given))
            given = _decode(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput("envelope", f"is not JSON: {error}") from None
    if type(given) is not dict and not isinstance(given, Mapping):
        raise InvalidInput("envelope", f"must be an object, not {type(given).__name__}")
    return given


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number


def _read_moment(field: str, value: object) -> int:
    text = value if isinstance(value, str) else str(value)
    clean_text(field, text, limit=MAX_NAME)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            # UTC, because it is written in UTC: some moments have no year there.
            return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(field, f"{text!r} is no time with its zone, as 2026-01-31T12:00:00Z is")


def _read_run_id(field: str, value: object) -> str:
    return parse_run_id(clean_text(field, value), field=field)


def _read_task_id(field: str, value: object) -> str:
    return parse_task_id(clean_text(field, value), field=field)


def _read_step(field: str, value: object) -> str:
    return clean_text(field, value, limit=MAX_NAME)


_decode = json.JSONDecoder(parse_constant=_finite, parse_float=_finite).decode

# A value of such a form needs no other check, and nearly every value has it.
_KEY = re.compile(f"[!-~](?:[ -~]{{0,{MAX_NAME - 2}}}[!-~])?").fullmatch
_WORD = re.compile(f"[a-z0-9_][a-z0-9_.-]{{0,{MAX_NAME - 1}}}").fullmatch
_TRACE = re.compile("[1-9a-f][0-9a-f]{31}").fullmatch
_SPAN = re.compile("[1-9a-f][0-9a-f]{15}").fullmatch
_RUN, _TASK = (re.compile(f"{kind}_[0-7][{ALPHABET}]{{19}}").fullmatch for kind in "rt")
_IsPlain = Callable[[str], object]
_Clean = Callable[[str, object], Any]

_CLEANERS: dict[str, tuple[_IsPlain, _Clean]] = {
    "message_id": (_KEY, clean_key),
    "trace_id": (_TRACE, clean_trace_id),
    "span_id": (_SPAN, clean_span_id),
    "causation_id": (_KEY, clean_key),
    "correlation_id": (_KEY, clean_key),
    "run_id": (_RUN, _read_run_id),
    "task_id": (_TASK, _read_task_id),
    "step": (_WORD, _read_step),
    "agent": (_WORD, clean_name),
    "type": (_WORD, clean_name),
    "created_at": (lambda _: False, _read_moment),
}

_KEY_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
_NAME = {**_KEY_SCHEMA, "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*$"}
_ID_BODY = f"[0-7][{ALPHABET}]{{19}}"


def make_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Envelope",
        "description": "One message on a bus of Holdfast. Fields that are not listed are let go.",
        "type": "object",
        "required": list(REQUIRED),
        "properties": {
            "message_id": {**_KEY_SCHEMA, "description": "What makes two deliveries one message"},
            "trace_id": _hexadecimal(TRACE_ID, "The W3C trace it belongs to"),
            "span_id": _hexadecimal(SPAN_ID, "Its own W3C span"),
            "causation_id": {**_KEY_SCHEMA, "description": "The message that caused this one"},
            "correlation_id": {
                **_KEY_SCHEMA,
                "description": "What all messages of one matter share",
            },
            "run_id": {"type": "string", "pattern": f"^r_{_ID_BODY}$"},
            "task_id": {"type": "string", "pattern": f"^t_{_ID_BODY}$"},
            "step": {"type": "string", "maxLength": MAX_NAME},
            "agent": _NAME,
            "type": {**_NAME, "description": "What it says, as task.done or run.start"},
            "created_at": {"type": "string", "format": "date-time"},
            "payload": {"description": "Any JSON of at most a mebibyte"},
        },
    }


def _hexadecimal(shape: str, description: str) -> dict[str, Any]:
    zero = shape.replace("[0-9a-f]", "0")
    return {
        "type": "string",
        "pattern": f"^{shape}$",
        "not": {"pattern": f"^{zero}$"},
        "description": description,
    }


def read_entry(text: str | None, entry_id: str) -> Envelope:
    """The message in an entry of a stream; if it cannot be read, one that says why."""
    try:
        return read_envelope(text)
    except InvalidInput as error:
        message_id = f"unreadable:{digest(entry_id)}"
        shown = (
            (text or "")[:_SHOWN_CHARACTERS].encode(errors="replace").decode().replace("\x00", "?")
        )
        return Envelope(
            message_id=message_id,
            trace_id=derive_trace_id(message_id),
            type=UNREADABLE,
            created_at=0,
            payload={"place": entry_id, "reason": str(error), "text": shown},
        )
