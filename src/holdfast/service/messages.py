"""Messages for front ends: whole, but for the tokens in them, which let their bearer act."""

from __future__ import annotations

from typing import Any

from holdfast.bus.envelope import Envelope
from holdfast.model.token import TOKENS
from holdfast.service.views import View

HIDDEN = "***"


def view_message(envelope: Envelope) -> View:
    return {**envelope.as_json(), "payload": _without_tokens(envelope.payload)}


def _without_tokens(value: Any) -> Any:  # noqa: ANN401 - whatever the message says
    if isinstance(value, dict):
        return {
            name: HIDDEN if name.lower() == "token" else _without_tokens(each)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_without_tokens(each) for each in value]
    return TOKENS.sub(HIDDEN, value) if isinstance(value, str) else value
