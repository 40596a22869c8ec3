"""Publishes the events of a store on Redis: in order, none skipped, and again what Redis lost.

What of a store's events was sent, and what acknowledged: two positions, no mark on any row.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from holdfast.bus.consumer_groups import FORGOTTEN, groups_elsewhere
from holdfast.bus.envelope import encode_envelope
from holdfast.bus.event_log import Page, read_page
from holdfast.bus.execution_bus import Channel
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.periodic_loop import Rounds, Turn
from holdfast.bus.position import Position, read_position
from holdfast.engine.engine import Engine
from holdfast.engine.input.validation import number
from holdfast.model.text import clean_name

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


logger = logging.getLogger(__name__)

# How often it notes how far it came: what is not noted when it dies is published twice.
_MARKS = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class RelayOptions:
    """How a relay goes about it.

    - `name`: of the place it publishes to; all relays to one place have the same
    - `batch`: how many events are published at once at most
    - `ttl`: after how many seconds of silence another relay goes on
    - `upkeep`: how often what all groups have acknowledged is removed, in seconds
    """

    name: str = "redis"
    batch: int = 500
    ttl: float = 3.0
    upkeep: float = 1.0

    def __post_init__(self) -> None:
        number("batch", self.batch, least=1)


class Relay(Rounds):
    """Start one with each process: the one that holds the lease publishes, the others wait."""

    rest = 0.005
    # Another process that writes events but makes nothing ready sends no hint.
    alert = 1.0

    def __init__(self, engine: Engine, bus: RedisBus, options: RelayOptions | None = None) -> None:
        self._options = options or RelayOptions()
        name = clean_name("name", self._options.name)
        self._bus = bus
        self._outbox = Outbox(engine, f"relay/{name}")
        self._place = Turn(engine, f"bus/relay/{name}", ttl=self._options.ttl, begun=self._take_up)
        super().__init__(engine, "relay", self._place)
        self._life.callback(self._outbox.close)
        # A hint tells of new work, and not of every event.
        self._life.callback(engine.on_commit(self._heard.set))
        self._life.callback(self._mark)
        self._kept: float | None = None
        # What is published beyond what is noted, and when something was noted last.
        self._ahead: Position | None = None
        self._marked: float | None = None

    def step(self, wait: float = 0.0) -> int:  # noqa: ARG002 - it does not wait by itself
        """Publish the next events, if it is this relay's turn; how many."""
        if not self._place.hold():
            return 0
        position = self._ahead or self._outbox.sent
        page = read_page(self._engine.database, Channel.EVENTS, position, self._options.batch)
        upkeep = self._due()
        if page.position != position or upkeep:
            if not self._send(position, page):
                return self._begin_again()
            self._ahead = page.position
        if (upkeep or self._is_late()) and not self._mark():
            return 0
        if upkeep:
            self._keep_up()
        return len(page.envelopes)

    def drain(self) -> int:
        """Publish all there is, and note it."""
        done = super().drain()
        self._mark()
        return done

    def _take_up(self) -> None:
        self._ahead = None
        self._outbox.look()

    def _is_late(self) -> bool:
        now = self._engine.clock.monotonic()
        return self._marked is None or now - self._marked >= _MARKS

    def _mark(self) -> bool:
        """Note how far it came, unless another relay has gone on meanwhile."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead == self._outbox.sent:
            return True
        self._marked = self._engine.clock.monotonic()
        noted = self._outbox.mark_sent(ahead)
        if not noted:
            self._place.step_down()
        return noted

    def _send(self, position: Position, page: Page) -> bool:
        texts = [(each, encode_envelope(each)) for each in page.envelopes]
        passed = (position.passed, page.position.passed, position.floor)
        return self._bus.relay(self._engine.store, texts, passed)

    def _begin_again(self) -> int:
        """Take up from what every group had acknowledged; consumers do nothing twice."""
        self._ahead = None
        since = self._outbox.acknowledged
        if self._outbox.sent.passed > since:
            logger.warning("Redis lacks events that were published; again after %s", since)
        if not self._outbox.mark_sent(Position(passed=since)):
            self._place.step_down()
            return 0
        self._bus.begin_relay(self._engine.store, since)
        return 1

    def _due(self) -> bool:
        now = self._engine.clock.monotonic()
        due = self._kept is None or now - self._kept >= self._options.upkeep
        if due:
            self._kept = now
        return due

    def _keep_up(self) -> None:
        """Remove what all have acknowledged, and remember how far that is."""
        groups = groups_elsewhere(self._engine, self._bus, Channel.EVENTS)
        self._bus.trim(Channel.EVENTS, groups=groups)
        least = self._bus.least_kept(self._engine.store)
        sent = self._outbox.sent
        acknowledged = sent.floor if least is None else least
        nothing = Page(envelopes=(), position=sent)
        # Asked afterwards: of an empty Redis nothing is acknowledged when all of it was lost.
        if acknowledged > self._outbox.acknowledged and self._send(sent, nothing):
            self._outbox.mark_acknowledged(acknowledged)
