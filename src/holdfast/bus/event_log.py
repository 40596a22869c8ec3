"""The log of a channel in the store: pages of messages, and no late commit is skipped.

The ids of events are derived from their own keys, and are not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from holdfast.bus.envelope import Envelope, read_envelope
from holdfast.bus.execution_bus import Channel
from holdfast.bus.position import Horizon, Position
from holdfast.model.event import read_event_data
from holdfast.model.trace import derive_span_id, derive_trace_id
from holdfast.store.database import Database, Row, Transaction

# A reader with more holes reads nothing new until the open transactions have ended.
MOST_HOLES = 1_000

_trace_of = lru_cache(maxsize=10_000)(derive_trace_id)


def event_id(entity: str, version: int) -> str:
    return f"{entity}.{version}"


def make_envelope(row: Row) -> Envelope:
    """The event of one row, in the trace of its run, or of its task if there is no run."""
    entity, run_id, version = row["entity"], row["run_id"], row["version"]
    root = run_id or entity
    message_id = event_id(entity, version)
    return Envelope(
        message_id=message_id,
        trace_id=row["trace_id"] or _trace_of(root),
        span_id=derive_span_id(message_id),
        causation_id=_find_cause(row),
        correlation_id=row["correlation_id"] or root,
        run_id=run_id,
        task_id=None if entity == run_id else entity,
        step=row["step"],
        agent=row["agent"],
        type=row["type"],
        created_at=row["at"],
        payload={
            "version": version,
            "from": row["from_status"],
            "to": row["to_status"],
            "attempt": row["attempt"],
            "generation": row["generation"],
            "actor": row["actor"],
            "data": read_event_data(row["data"]),
        },
    )


def _find_cause(row: Row) -> str | None:
    """The event before this one; of a new task its run's start; of a run what asked for it."""
    entity, run_id, version = row["entity"], row["run_id"], row["version"]
    if version > 1:
        return event_id(entity, version - 1)
    if run_id is not None and run_id != entity:
        return event_id(run_id, 1)
    cause: str | None = row["causation_id"]
    return cause


@dataclass(frozen=True, kw_only=True, slots=True)
class MessagePage:
    """The messages that follow a position, and the position after them."""

    envelopes: tuple[Envelope, ...]
    position: Position


def read_page(database: Database, channel: Channel, position: Position, count: int) -> MessagePage:
    wanted = count if len(position.holes) < MOST_HOLES else 0

    def look(tx: Transaction) -> tuple[Row, list[Row]]:
        horizon = tx.read("horizon")[0]
        parameters = {"passed": position.passed, "count": wanted}
        if channel is Channel.EVENTS:
            return horizon, tx.read("events_from", rows=position.ranges, **parameters)
        return horizon, tx.read(
            "messages_from", rows=position.ranges, channel=channel.value, **parameters
        )

    horizon, rows = database.view(look)
    if channel is Channel.EVENTS:
        envelopes = tuple(map(make_envelope, rows))
    else:
        envelopes = tuple(read_envelope(row["envelope"]) for row in rows if row["envelope"])
    return MessagePage(
        envelopes=envelopes,
        position=position.move([row["seq"] for row in rows], Horizon(**horizon)),
    )
