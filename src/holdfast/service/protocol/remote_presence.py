"""Workers that ask from elsewhere, kept among those that live while they go on asking."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.service.protocol.protocol import Offer
from holdfast.store.database import Row

MOST = 10_000


@dataclass(kw_only=True)
class Visit:
    """One process of a worker; who is silent until `ends` is gone."""

    offer: Offer
    places: int
    due: float
    ends: float
    started_at: int | None = None
    told: str | None = None


class Visitors:
    """Speaks for each as often as leases are renewed; it waits for the store where one leaves."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._visits: dict[str, Visit] = {}

    def see(self, offer: Offer, places: int) -> str | None:
        """Note that a worker has asked; the answer is what it is told: `drain`, `evict`."""
        visit = self._find(offer.worker)
        if visit is not None and visit.offer.origin != offer.origin:
            if visit.told is None:
                # The name is another's, until that is silent or told to go.
                return None
            visit = None
        return self._hear_from(visit or self._begin(offer, places))

    def keep(
        self, worker: str, process: str | None = None, *, token: str | None = None
    ) -> str | None:
        """Note that a worker that asks for nothing now is there; the answer is as of `see`."""
        visit = self._find(worker)
        if visit is None or visit.offer.token != token:
            return None
        # One that was started again under a name must not keep alive who had it before.
        if process is not None and visit.offer.process != process:
            return None
        return self._hear_from(visit)

    def leave(self, worker: str, process: str | None, *, token: str | None = None) -> bool:
        """Forget a worker that has left, by whichever server it was seen; whether it was known.

        A worker that another token has brought, or none, stays.
        """
        origin = Offer(worker=worker, process=process, token=token).origin
        visit = self._visits.get(worker)
        if visit is not None and visit.offer.origin == origin:
            # First: what it had still on its way must not bring it back.
            self._visits.pop(worker, None)
        workers = self._engine.workers
        known = [each for each in workers.list() if (each.name, each.process) == (worker, origin)]
        return any(workers.forget(each.name, each.started_at).ok for each in known)

    def _find(self, worker: str) -> Visit | None:
        visit = self._visits.get(worker)
        return None if visit is None or self._now >= visit.ends else visit

    def _begin(self, offer: Offer, places: int) -> Visit:
        before = self._visits.pop(offer.worker, None)
        if before is not None and before.told is not None:
            self._forget(before)
        visit = Visit(offer=offer, places=places, due=self._now, ends=self._now)
        self._visits[offer.worker] = visit
        while len(self._visits) > MOST:
            del self._visits[next(iter(self._visits))]
        return visit

    def _hear_from(self, visit: Visit) -> str | None:
        now, settings = self._now, self._engine.settings
        # Who does not tell one start from the next is told to go for a lease, and then is another.
        if visit.told is None or visit.offer.process is not None:
            visit.ends = now + settings.lease
        if now >= visit.due:
            visit.due = now + settings.renewal
            with suppress(HoldfastError):
                self._say(visit)
        return visit.told

    def _say(self, visit: Visit) -> None:
        workers, offer = self._engine.workers, visit.offer
        if visit.started_at is not None:
            asked = workers.announce.submit(offer.worker, visit.started_at)
        else:
            asked = workers.register.submit(
                offer.worker,
                agents=offer.served,
                tags=offer.tags,
                concurrency=visit.places,
                process=offer.origin,
            )
        asked.add_done_callback(lambda done: _hear(visit, done))

    def _forget(self, visit: Visit) -> None:
        if visit.started_at is not None:
            with suppress(HoldfastError):
                self._engine.workers.forget.submit(visit.offer.worker, visit.started_at)

    @property
    def _now(self) -> float:
        return self._engine.clock.monotonic()


def _hear(visit: Visit, asked: Future[Row | None]) -> None:
    if asked.exception() is not None:
        return
    found = asked.result()
    if visit.started_at is None:
        visit.started_at = None if found is None else int(found["started_at"])
    elif found is None:
        # It was silent for so long that it was forgotten.
        visit.started_at, visit.told, visit.due = None, None, 0.0
    else:
        visit.told = found["told"]
