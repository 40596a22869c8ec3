"""What is done with messages, and what stands for those that nobody could do anything with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.bus.envelope import Envelope
from holdfast.bus.unreadable import UNREADABLE

Handle = Callable[[Envelope, Any], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """A function that gets a message and the connection of the transaction that it is part of.

    What it does there, and nothing else, is done once. Without `types` it gets every message. One
    that `steers` runs and tasks has each message in a transaction alone, so that rows are locked in
    the one order, and workers are told of it. What it returns, if it can be called, is called after
    the commit, unless the process ends in between. `at_last` stands in for `handle` at the last
    try, after which what fails is parked.
    """

    name: str
    handle: Handle
    types: frozenset[str] | None = None
    steers: bool = False
    at_last: Handle | None = None

    def wants(self, envelope: Envelope) -> bool:
        return self.types is None or envelope.type in self.types


class Park(Exception):
    """Raised by a handler that no retry would help: the message is parked at once."""


def refuse_unreadable(envelope: Envelope, _: object) -> None:
    raise Park(envelope.payload["reason"])


UNREADABLE_HANDLER = Handler(
    name="unreadable", handle=refuse_unreadable, types=frozenset({UNREADABLE})
)
