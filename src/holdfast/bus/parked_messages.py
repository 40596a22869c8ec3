"""Parked messages: those on which a handler failed too often, to be seen, replayed or dropped."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.bus.envelope import Envelope, read_envelope
from holdfast.engine.engine import EngineOwner, engine_of
from holdfast.engine.read.report_refusals import refuse
from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import RetryPolicy
from holdfast.store.database import Row

# The tries of a message before it is parked, and the waits between them, unless told otherwise.
TRIES_BEFORE_PARKED = RetryPolicy(max_attempts=5, backoff=1.0, backoff_max=60.0)
PAGE = 100


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Kept(ReadableRecord):
    """A message that waits: for another try at `due_at`, for a person, or behind another."""

    arrival: int
    handler: str
    message_id: str
    channel: str
    about: str
    envelope: Envelope
    tries: int
    due_at: int | None
    parked_at: int | None
    error: str | None

    @property
    def state(self) -> str:
        """The state of a waiting message: parked, behind another, retrying, or replayed."""
        if self.parked_at is not None:
            return "parked"
        if self.error is None:
            return "behind"
        return "retrying" if self.tries else "replayed"


class Parked:
    def __init__(self, store: EngineOwner) -> None:
        self._engine = engine_of(store)

    def list(self, *, parked: bool = True, after: int = 0, limit: int = PAGE) -> list[Kept]:
        """The messages that are parked, or were replayed and not tried yet, in the order they came.

        With `parked=False`, all messages that wait.
        """
        rows = self._engine.database.view(
            lambda tx: tx.read("list_deliveries", parked=parked, passed=after, count=limit)
        )
        return [_read_kept(row) for row in rows]

    def count(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The numbers of waiting and of parked messages, by channel and handler."""
        rows = self._engine.database.view(lambda tx: tx.read("count_deliveries"))
        return {(row["channel"], row["handler"]): (row["waiting"], row["parked"]) for row in rows}

    def replay(self, handler: str, message_id: str) -> TransitionResult:
        """Have a message tried again, as often as at first; the messages behind it follow."""
        with self._engine.database.begin() as connection:
            tx = self._engine.database.join(connection)
            found = tx.write("replay_parked", handler=handler, message_id=message_id)
        return _make_result(found)

    def drop(self, handler: str, message_id: str) -> TransitionResult:
        """Drop a message for good, even if it comes again; the messages behind it follow."""
        with self._engine.database.begin() as connection:
            tx = self._engine.database.join(connection)
            found = tx.write("drop_parked", handler=handler, message_id=message_id)
            for row in found:
                envelope = read_envelope(row["envelope"])
                tx.run(
                    "note_dropped",
                    handler=handler,
                    message_id=message_id,
                    run_id=envelope.run_id,
                    trace_id=envelope.trace_id,
                )
        return _make_result(found)


def _make_result(found: list[Row]) -> TransitionResult:
    return TransitionResult(ok=True) if found else refuse(Refusal.NOT_FOUND, None)


def _read_kept(row: Row) -> Kept:
    return Kept(**{**row, "envelope": read_envelope(row["envelope"])})
