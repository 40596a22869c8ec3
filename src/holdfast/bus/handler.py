"""What is done with messages, and what stands for those that nobody could do anything with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.bus.envelope import Envelope
from holdfast.bus.unreadable import UNREADABLE
from holdfast.errors import InvalidInput

Handle = Callable[[Envelope, Any], object]
HandleAll = Callable[[Sequence[Envelope], Any], object]


def _by_itself(envelope: Envelope) -> str | None:
    return envelope.message_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """A function that gets a message and the connection of the transaction that it is part of.

    What it does there, and nothing else, is done once. Without `types` it gets every message. What
    it returns, if it can be called, is called after the commit, unless the process ends in between.

    With `handle_all` in place of `handle` it gets, in their order, the messages that are done in
    one transaction, and does them with as few statements as it can. If it fails, it is given fewer,
    until the one that it fails on is found. With both, `handle` gets what comes alone.

    One that `steers` runs and tasks has each message in a transaction alone, so that rows are
    locked in the one order, and workers are told of it. With `handle_all` it has several there, at
    most `most` of them: no two for which `apart` gives the same, and alone whatever it gives
    nothing for.

    `at_last` stands in for `handle` at the last try of a message, after which what fails is parked.
    """

    name: str
    handle: Handle | None = None
    handle_all: HandleAll | None = None
    types: frozenset[str] | None = None
    steers: bool = False
    at_last: Handle | None = None
    apart: Callable[[Envelope], str | None] = _by_itself
    most: int = 1_000

    def __post_init__(self) -> None:
        if self.handle is None and self.handle_all is None:
            raise InvalidInput("handler", f"{self.name!r} has neither `handle` nor `handle_all`")

    def wants(self, envelope: Envelope) -> bool:
        return self.types is None or envelope.type in self.types

    def do(
        self, envelopes: Sequence[Envelope], connection: object, *, last: bool = False
    ) -> object:
        """Handle several, which is one where each is handled by itself."""
        if last and self.at_last is not None and len(envelopes) == 1:
            return self.at_last(envelopes[0], connection)
        if self.handle is not None and len(envelopes) == 1:
            return self.handle(envelopes[0], connection)
        if self.handle_all is not None:
            return self.handle_all(envelopes, connection)
        raise AssertionError


class Park(Exception):
    """Raised by a handler that no retry would help: the message is parked at once."""


def refuse_unreadable(envelope: Envelope, _: object) -> None:
    raise Park(envelope.payload["reason"])


UNREADABLE_HANDLER = Handler(
    name="unreadable", handle=refuse_unreadable, types=frozenset({UNREADABLE})
)
