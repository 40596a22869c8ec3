"""What of a store's events was sent, and what acknowledged: two positions, no mark on any row."""

from __future__ import annotations

from holdfast.bus.channel import Channel
from holdfast.bus.groups import FORGOTTEN
from holdfast.bus.position import Position, read_position
from holdfast.engine.engine import Engine

SENT, ACKNOWLEDGED = 0, 1


class Outbox:
    """The positions of one relay, as they were when it last looked or moved them itself."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._named = {"channel": Channel.EVENTS.value, "consumers": name}
        self._standing = engine.database.connect()
        self._known: dict[int, tuple[Position, int]] = {}

    @property
    def sent(self) -> Position:
        return self._known[SENT][0]

    @property
    def acknowledged(self) -> int:
        return self._known[ACKNOWLEDGED][0].passed

    def look(self) -> None:
        """Read them from the store, where another relay may have moved them."""
        with self._standing.begin() as connection:
            tx = self._engine.database.join(connection)
            rows = [(SENT,), (ACKNOWLEDGED,)]
            tx.run("begin_relay", rows=rows, forgotten=FORGOTTEN, **self._named)
            found = tx.read("positions_of", **self._named)
        self._known = {
            row["place"]: (read_position(row["passed"], row["holes"]), row["version"])
            for row in found
        }

    def mark_sent(self, position: Position) -> bool:
        return self._move(SENT, position)

    def mark_acknowledged(self, number: int) -> bool:
        return self._move(ACKNOWLEDGED, Position(passed=number))

    def _move(self, place: int, position: Position) -> bool:
        """Whether nobody else has moved it since."""
        version = self._known[place][1]
        with self._standing.begin() as connection:
            moved = self._engine.database.join(connection).write(
                "move_positions",
                rows=[(place, version)],
                passed=position.passed,
                holes=position.write_holes(),
                **self._named,
            )
        if moved:
            self._known[place] = position, version + 1
        return bool(moved)

    def close(self) -> None:
        self._standing.close()
