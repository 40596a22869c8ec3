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

    What it does there, and nothing else, is done once. Without `types` it gets every message.
    """

    name: str
    handle: Handle
    types: frozenset[str] | None = None

    def wants(self, envelope: Envelope) -> bool:
        return self.types is None or envelope.type in self.types


class Unreadable(Exception):
    """A message that is none: no handler got it, and no retry would help."""


def refuse_unreadable(envelope: Envelope, _: object) -> None:
    raise Unreadable(envelope.payload["reason"])


UNREADABLE_HANDLER = Handler(
    name="unreadable", handle=refuse_unreadable, types=frozenset({UNREADABLE})
)
