"""What stands in for a message that cannot be read, so that somebody sees it."""

from __future__ import annotations

from holdfast.bus.envelope import Envelope, read_envelope
from holdfast.errors import InvalidInput
from holdfast.model.text import digest
from holdfast.model.trace import derive_trace_id

UNREADABLE = "bus.unreadable"
_SHOWN = 10_000


def envelope_from(text: str | None, place: str) -> Envelope:
    """The message at a place of a stream; one that is none says why in its payload."""
    try:
        return read_envelope(text)
    except InvalidInput as error:
        message_id = f"unreadable:{digest(place)}"
        shown = (text or "")[:_SHOWN].encode(errors="replace").decode().replace("\x00", "?")
        return Envelope(
            message_id=message_id,
            trace_id=derive_trace_id(message_id),
            type=UNREADABLE,
            created_at=0,
            payload={"place": place, "reason": str(error), "text": shown},
        )
