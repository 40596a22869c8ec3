"""The relay, which publishes the events of a store on Redis: in order, and again what Redis lost.

Two positions say how far the events were sent and acknowledged; no row of an event is changed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from holdfast.bus.consumer_groups import FORGOTTEN_CHANNEL, list_external_groups
from holdfast.bus.envelope import encode_envelope
from holdfast.bus.event_log import MessagePage, read_page
from holdfast.bus.execution_bus import Channel
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.periodic_loop import LeaderLease, PeriodicLoop
from holdfast.bus.position import Position, read_position
from holdfast.engine.engine import Engine, EngineOwner, engine_of
from holdfast.engine.input.validation import number
from holdfast.model.text import clean_name

logger = logging.getLogger(__name__)

SENT, ACKNOWLEDGED = 0, 1
# The pause between two notes of the position: events after the last note may be published twice.
_NOTE_SECONDS = 0.1


class Outbox:
    """The positions of one relay, as it last read or moved them."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._position_key = {"channel": Channel.EVENTS.value, "consumers": name}
        self._kept_connection = engine.database.connect()
        self._known: dict[int, tuple[Position, int]] = {}

    @property
    def sent(self) -> Position:
        return self._known[SENT][0]

    @property
    def acknowledged(self) -> int:
        return self._known[ACKNOWLEDGED][0].passed

    def read_positions(self) -> None:
        """Read the positions from the store, where another relay may have moved them."""
        with self._kept_connection.begin() as connection:
            tx = self._engine.database.join(connection)
            rows = [(SENT,), (ACKNOWLEDGED,)]
            tx.run("begin_relay", rows=rows, forgotten=FORGOTTEN_CHANNEL, **self._position_key)
            found = tx.read("positions_of", **self._position_key)
        self._known = {
            row["place"]: (read_position(row["passed"], row["holes"]), row["version"])
            for row in found
        }

    def mark_sent(self, position: Position) -> bool:
        return self._move(SENT, position)

    def mark_acknowledged(self, number: int) -> bool:
        return self._move(ACKNOWLEDGED, Position(passed=number))

    def _move(self, place: int, position: Position) -> bool:
        """Move a position; False if another relay has moved it since it was read."""
        version = self._known[place][1]
        with self._kept_connection.begin() as connection:
            moved = self._engine.database.join(connection).write(
                "move_positions",
                rows=[(place, version)],
                passed=position.passed,
                holes=position.write_holes(),
                **self._position_key,
            )
        if moved:
            self._known[place] = position, version + 1
        return bool(moved)


@dataclass(frozen=True, kw_only=True, slots=True)
class RelayOptions:
    """The options of a relay.

    - `name`: the name of the place to publish to; all relays to one place have the same name
    - `batch`: the most events that are published at once
    - `ttl`: the seconds of silence after which another relay goes on
    - `upkeep`: the seconds between two removals of events that all groups have acknowledged
    """

    name: str = "redis"
    batch: int = 500
    ttl: float = 3.0
    upkeep: float = 1.0

    def __post_init__(self) -> None:
        number("batch", self.batch, least=1)


class Relay(PeriodicLoop):
    """The relay of a store; each process starts one, and the one that holds the lease publishes."""

    rest_after_step = 0.005
    # Another process sends no hint for events that make no task ready.
    alert_seconds = 1.0

    def __init__(
        self, store: EngineOwner, bus: RedisBus, options: RelayOptions | None = None
    ) -> None:
        engine = engine_of(store)
        self._options = options or RelayOptions()
        name = clean_name("name", self._options.name)
        self._bus = bus
        self._outbox = Outbox(engine, f"relay/{name}")
        self._leader_lease = LeaderLease(
            engine, f"bus/relay/{name}", ttl=self._options.ttl, on_begin=self._read_outbox
        )
        super().__init__(engine, "relay", self._leader_lease)
        # Commits of this process are watched too: not every event has a hint.
        self._closing.callback(engine.on_commit(self._hinted.set))
        self._closing.callback(self._note_sent)
        self._upkeep_at: float | None = None
        # The position that is published and not noted yet, and the time of the last note.
        self._ahead: Position | None = None
        self._noted_at: float | None = None

    def step(self, wait: float = 0.0) -> int:  # noqa: ARG002 - it does not wait by itself
        """Publish the next events, if this relay is the leader; the result is their number."""
        if not self._leader_lease.is_leader():
            return 0
        position = self._ahead or self._outbox.sent
        page = read_page(self._engine.database, Channel.EVENTS, position, self._options.batch)
        upkeep = self._is_upkeep_due()
        if page.position != position or upkeep:
            if not self._send(position, page):
                return self._begin_again()
            self._ahead = page.position
        if (upkeep or self._is_note_due()) and not self._note_sent():
            return 0
        if upkeep:
            self._remove_acknowledged()
        return len(page.envelopes)

    def drain(self) -> int:
        """Publish all events there are, and note the position."""
        done = super().drain()
        self._note_sent()
        return done

    def _read_outbox(self) -> None:
        self._ahead = None
        self._outbox.read_positions()

    def _is_note_due(self) -> bool:
        now = self._engine.clock.monotonic()
        return self._noted_at is None or now - self._noted_at >= _NOTE_SECONDS

    def _note_sent(self) -> bool:
        """Note the published position; False if another relay has gone on meanwhile."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead == self._outbox.sent:
            return True
        self._noted_at = self._engine.clock.monotonic()
        noted = self._outbox.mark_sent(ahead)
        if not noted:
            self._leader_lease.step_down()
        return noted

    def _send(self, position: Position, page: MessagePage) -> bool:
        texts = [(each, encode_envelope(each)) for each in page.envelopes]
        passed = (position.passed, page.position.passed, position.floor)
        return self._bus.relay(self._engine.store, texts, passed)

    def _begin_again(self) -> int:
        """Begin again after the events that all groups had acknowledged, since Redis lost some."""
        self._ahead = None
        since = self._outbox.acknowledged
        if self._outbox.sent.passed > since:
            logger.warning("Redis lacks events that were published; again after %s", since)
        if not self._outbox.mark_sent(Position(passed=since)):
            self._leader_lease.step_down()
            return 0
        self._bus.begin_relay(self._engine.store, since)
        return 1

    def _is_upkeep_due(self) -> bool:
        now = self._engine.clock.monotonic()
        due = self._upkeep_at is None or now - self._upkeep_at >= self._options.upkeep
        if due:
            self._upkeep_at = now
        return due

    def _remove_acknowledged(self) -> None:
        """Remove the events that all groups have acknowledged, and note how far that is."""
        groups = list_external_groups(self._engine, self._bus, Channel.EVENTS)
        self._bus.trim(Channel.EVENTS, groups=groups)
        least = self._bus.least_kept(self._engine.store)
        sent = self._outbox.sent
        acknowledged = sent.floor if least is None else least
        nothing = MessagePage(envelopes=(), position=sent)
        # The empty send checks afterwards that Redis has lost nothing: else it would look as if all
        # events were acknowledged.
        if acknowledged > self._outbox.acknowledged and self._send(sent, nothing):
            self._outbox.mark_acknowledged(acknowledged)
