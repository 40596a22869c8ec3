"""What the store holds of a channel, read in order, and no commit skipped that comes late."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.bus.channel import Channel
from holdfast.bus.envelope import Envelope, read_envelope
from holdfast.bus.events import as_envelope
from holdfast.bus.position import Horizon, Position
from holdfast.store.database import Database, Row, Transaction

# A reader that has passed by more of them waits for the transactions that owe them.
MOST_HOLES = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """The messages that follow a position, and the position after them."""

    envelopes: tuple[Envelope, ...]
    position: Position


def read_page(database: Database, channel: Channel, position: Position, count: int) -> Page:
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
        envelopes = tuple(map(as_envelope, rows))
    else:
        envelopes = tuple(read_envelope(row["envelope"]) for row in rows if row["envelope"])
    return Page(
        envelopes=envelopes,
        position=position.move([row["seq"] for row in rows], Horizon(**horizon)),
    )
