"""The JSON Schema of an envelope, for whoever writes or reads one in another language."""

from __future__ import annotations

from typing import Any

from holdfast.bus.envelope import REQUIRED
from holdfast.ids import ALPHABET
from holdfast.model.text import MAX_NAME
from holdfast.model.trace import SPAN_ID, TRACE_ID

_KEY_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
_NAME = {**_KEY_SCHEMA, "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*$"}
_PLACE = f"[0-7][{ALPHABET}]{{19}}"


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
            "run_id": {"type": "string", "pattern": f"^r_{_PLACE}$"},
            "task_id": {"type": "string", "pattern": f"^t_{_PLACE}$"},
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
