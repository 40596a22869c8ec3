"""Handlers of messages, the deliveries of messages to handlers, and those of one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.bus.envelope import UNREADABLE, Envelope, write_envelope
from holdfast.bus.execution_bus import slot_of
from holdfast.errors import InvalidInput

Handle = Callable[[Envelope, Any], object]
HandleAll = Callable[[Sequence[Envelope], Any], object]
_SHOWN_CHARACTERS = 2_000


def _own_key(envelope: Envelope) -> str | None:
    return envelope.message_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """A function that gets a message and the connection of the transaction that handles it.

    What the function does in that transaction takes effect once. Without `types` it gets every
    message. If it returns a function, that is called after the commit, unless the process ends
    before.

    `handle_all`, in place of `handle`, gets the messages of one transaction in their order, and can
    handle them with few statements. If it fails, it gets fewer messages, until the message on which
    it fails is found. With both, `handle` gets messages that come alone.

    A handler that `steers` runs and tasks has each message in a transaction of its own, so that
    rows are locked in the one order; workers get a hint after it. With `handle_all` it has several
    messages in one, at most `most` of them: no two for which `apart` gives the same key, and a
    message for which it gives None alone.

    `at_last` replaces `handle` at the last try of a message; if that fails, the message is parked.
    """

    name: str
    handle: Handle | None = None
    handle_all: HandleAll | None = None
    types: frozenset[str] | None = None
    steers: bool = False
    at_last: Handle | None = None
    apart: Callable[[Envelope], str | None] = _own_key
    most: int = 1_000

    def __post_init__(self) -> None:
        if self.handle is None and self.handle_all is None:
            raise InvalidInput("handler", f"{self.name!r} has neither `handle` nor `handle_all`")

    def wants(self, envelope: Envelope) -> bool:
        return self.types is None or envelope.type in self.types

    def do(
        self, envelopes: Sequence[Envelope], connection: object, *, last: bool = False
    ) -> object:
        """Handle messages; there is one only, unless the handler has `handle_all`."""
        if last and self.at_last is not None and len(envelopes) == 1:
            return self.at_last(envelopes[0], connection)
        if self.handle is not None and len(envelopes) == 1:
            return self.handle(envelopes[0], connection)
        if self.handle_all is not None:
            return self.handle_all(envelopes, connection)
        raise AssertionError


class Park(Exception):
    """Raised by a handler when no retry would help: the message is parked at once."""


def refuse_unreadable(envelope: Envelope, _: object) -> None:
    raise Park(envelope.payload["reason"])


UNREADABLE_HANDLER = Handler(
    name="unreadable", handle=refuse_unreadable, types=frozenset({UNREADABLE})
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One message for one handler; deliveries of one matter to a handler keep their order."""

    envelope: Envelope
    handler: Handler
    name: str

    @property
    def claim_key(self) -> tuple[str, str]:
        return self.envelope.message_id, self.name

    @property
    def order_key(self) -> tuple[str, str]:
        return self.name, self.envelope.about

    def make_row(
        self, *, failed: int = 0, wait: int = 0, error: str | None = None
    ) -> tuple[Any, ...]:
        """The row of this delivery in the store, where it waits."""
        envelope = self.envelope
        slot, text = slot_of(envelope.about), write_envelope(envelope)
        return (self.name, envelope.message_id, envelope.about, slot, text, failed, wait, error)


class HandlerFailed(Exception):
    """The error of a handler: on the message at `place`, or on one of several if that is None."""

    def __init__(self, place: int | None, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.place = place
        self.final = isinstance(error, Park)

    @property
    def shown_text(self) -> str:
        return str(self)[:_SHOWN_CHARACTERS].encode(errors="replace").decode().replace("\x00", "?")


class TransactionEnded(Exception):
    """A handler ended the transaction of its messages, or went on after an error in it."""


def count_in_transaction(deliveries: Sequence[Delivery]) -> int:
    """The number of deliveries, from the first on, that one transaction handles."""
    first = deliveries[0].handler
    if not first.steers:
        steering = (place for place, delivery in enumerate(deliveries) if delivery.handler.steers)
        return next(steering, len(deliveries))
    if first.handle_all is None:
        return 1
    met: set[str] = set()
    for delivery in deliveries[: first.most]:
        key = first.apart(delivery.envelope) if delivery.handler is first else None
        if key is None or key in met:
            break
        met.add(key)
    return max(1, len(met))


def group_deliveries(
    deliveries: Sequence[tuple[int, Delivery]],
) -> list[list[tuple[int, Delivery]]]:
    """Group deliveries, with their places, that a handler gets in one call."""
    gathered: dict[object, list[tuple[int, Delivery]]] = {}
    for place, delivery in deliveries:
        key = place if delivery.handler.handle_all is None else delivery.name
        gathered.setdefault(key, []).append((place, delivery))
    return list(gathered.values())
