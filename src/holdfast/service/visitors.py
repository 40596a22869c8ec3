"""Workers that ask from elsewhere, kept among those that live while they go on asking."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.service.protocol import Offer
from holdfast.store.database import Row

MOST = 10_000


@dataclass(kw_only=True)
class Visit:
    due: float
    started_at: int | None = None
    told: str | None = None


class Visitors:
    """Speaks for each as often as leases are renewed; it never waits for the store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._visits: dict[str, Visit] = {}

    def see(self, offer: Offer, places: int) -> str | None:
        """Note that a worker has asked; the answer is what it is told: `drain`, `evict`."""
        now = self._engine.clock.monotonic()
        visit = self._visits.get(offer.worker)
        if visit is None:
            visit = self._visits[offer.worker] = Visit(due=now)
            while len(self._visits) > MOST:
                del self._visits[next(iter(self._visits))]
        if now >= visit.due:
            visit.due = now + self._engine.settings.renewal
            with suppress(HoldfastError):
                self._say(visit, offer, places)
        return visit.told

    def _say(self, visit: Visit, offer: Offer, places: int) -> None:
        workers = self._engine.workers
        if visit.started_at is not None:
            asked = workers.announce.submit(offer.worker, visit.started_at)
        else:
            agents = offer.agents or ["default"]
            asked = workers.register.submit(
                offer.worker, agents=agents, tags=offer.tags, concurrency=places
            )
        asked.add_done_callback(lambda done: _hear(visit, done))


def _hear(visit: Visit, asked: Future[Row | None]) -> None:
    if asked.exception() is not None:
        return
    found = asked.result()
    if visit.started_at is None:
        visit.started_at = None if found is None else int(found["started_at"])
    elif found is None:
        # It was silent for so long that it was forgotten.
        visit.started_at, visit.due = None, 0.0
    else:
        visit.told = found["told"]
