"""One message for one handler, and which of them share a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.bus.channel import slot_of
from holdfast.bus.envelope import Envelope, write_envelope
from holdfast.bus.handler import Handler, Park

_SHOWN = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One message for one handler, and before all that comes later to it about the same."""

    envelope: Envelope
    handler: Handler
    name: str

    @property
    def claim(self) -> tuple[str, str]:
        return self.envelope.message_id, self.name

    @property
    def order(self) -> tuple[str, str]:
        return self.name, self.envelope.about

    def keep(self, *, failed: int = 0, wait: int = 0, error: str | None = None) -> tuple[Any, ...]:
        """The row of it that waits in the store."""
        envelope = self.envelope
        slot, text = slot_of(envelope.about), write_envelope(envelope)
        return (self.name, envelope.message_id, envelope.about, slot, text, failed, wait, error)


class HandlerFailed(Exception):
    """What a handler failed with, on the one message at a place, or on one of several."""

    def __init__(self, place: int | None, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.place = place
        self.final = isinstance(error, Park)

    @property
    def shown(self) -> str:
        return str(self)[:_SHOWN].encode(errors="replace").decode().replace("\x00", "?")


class TransactionEnded(Exception):
    """A handler ended the transaction that its messages are part of, or broke it and went on."""


def count_together(jobs: Sequence[Job]) -> int:
    """How many of the first jobs are done in one transaction."""
    first = jobs[0].handler
    if not first.steers:
        steering = (place for place, job in enumerate(jobs) if job.handler.steers)
        return next(steering, len(jobs))
    if first.handle_all is None:
        return 1
    met: set[str] = set()
    for job in jobs[: first.most]:
        key = first.apart(job.envelope) if job.handler is first else None
        if key is None or key in met:
            break
        met.add(key)
    return max(1, len(met))


def gather(jobs: Sequence[tuple[int, Job]]) -> list[list[tuple[int, Job]]]:
    """Put together, with their places, those that their handler is given at once."""
    gathered: dict[object, list[tuple[int, Job]]] = {}
    for place, job in jobs:
        key = place if job.handler.handle_all is None else job.name
        gathered.setdefault(key, []).append((place, job))
    return list(gathered.values())
