"""Remote presence: remote workers count as live workers while they call the server."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.model.moment import count_microseconds
from holdfast.service.protocol.protocol import ClaimTerms
from holdfast.store.database import Row

MAX_PROCESSES = 10_000


@dataclass(kw_only=True)
class WorkerProcess:
    """One process of a remote worker; it counts as gone when it has not called by `gone_at`."""

    terms: ClaimTerms
    concurrency: int
    announce_at: float
    gone_at: float
    started_at: int | None = None
    told: str | None = None


class RemotePresence:
    """Announces remote workers to the store, as often as leases are renewed.

    Only `forget_worker` waits for the store.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._processes: dict[str, WorkerProcess] = {}

    def note_claim(self, terms: ClaimTerms, concurrency: int) -> str | None:
        """Note that a worker claims; returns its instruction, `drain` or `evict`, if any."""
        process = self._find_process(terms.worker)
        if process is not None and process.terms.origin != terms.origin:
            if process.told is None:
                # Another process has this name, until it is silent or told to leave.
                return None
            process = None
        return self._keep_alive(process or self._add_process(terms, concurrency))

    def note_renewal(
        self, worker: str, process: str | None = None, *, token: str | None = None
    ) -> str | None:
        """Note that a worker renews its leases; returns the same as `note_claim`."""
        seen = self._find_process(worker)
        if seen is None or seen.terms.token != token:
            return None
        # A worker that was started again must not keep the process before it alive.
        if process is not None and seen.terms.process != process:
            return None
        return self._keep_alive(seen)

    def forget_worker(self, worker: str, process: str | None, *, token: str | None = None) -> bool:
        """Forget a worker that has left, whichever server saw it; returns whether it was known.

        A worker that came with another token, or without one, stays.
        """
        origin = ClaimTerms(worker=worker, process=process, token=token).origin
        seen = self._processes.get(worker)
        if seen is not None and seen.terms.origin == origin:
            # It is removed here first: a reply that is under way must not bring it back.
            self._processes.pop(worker, None)
        workers = self._engine.workers
        known = [each for each in workers.list() if (each.name, each.process) == (worker, origin)]
        return any(
            workers.forget(each.name, count_microseconds(each.started_at)).ok for each in known
        )

    def _find_process(self, worker: str) -> WorkerProcess | None:
        process = self._processes.get(worker)
        return None if process is None or self._now >= process.gone_at else process

    def _add_process(self, terms: ClaimTerms, concurrency: int) -> WorkerProcess:
        before = self._processes.pop(terms.worker, None)
        if before is not None and before.told is not None:
            self._forget_in_store(before)
        process = WorkerProcess(
            terms=terms, concurrency=concurrency, announce_at=self._now, gone_at=self._now
        )
        self._processes[terms.worker] = process
        while len(self._processes) > MAX_PROCESSES:
            del self._processes[next(iter(self._processes))]
        return process

    def _keep_alive(self, process: WorkerProcess) -> str | None:
        now, settings = self._now, self._engine.settings
        # A worker without a process id keeps its instruction for one lease; after that a call with
        # its name counts as a new process.
        if process.told is None or process.terms.process is not None:
            process.gone_at = now + settings.lease
        if now >= process.announce_at:
            process.announce_at = now + settings.renewal
            with suppress(HoldfastError):
                self._announce(process)
        return process.told

    def _announce(self, process: WorkerProcess) -> None:
        workers, terms = self._engine.workers, process.terms
        if process.started_at is not None:
            reply = workers.announce.submit(terms.worker, process.started_at)
        else:
            reply = workers.register.submit(
                terms.worker,
                agents=terms.served_agents,
                tags=terms.tags,
                equipped=terms.equipped_agents,
                concurrency=process.concurrency,
                process=terms.origin,
            )
        reply.add_done_callback(lambda done: _on_announced(process, done))

    def _forget_in_store(self, process: WorkerProcess) -> None:
        if process.started_at is not None:
            with suppress(HoldfastError):
                self._engine.workers.forget.submit(process.terms.worker, process.started_at)

    @property
    def _now(self) -> float:
        return self._engine.clock.monotonic()


def _on_announced(process: WorkerProcess, reply: Future[Row | None]) -> None:
    if reply.exception() is not None:
        return
    found = reply.result()
    if process.started_at is None:
        process.started_at = None if found is None else int(found["started_at"])
    elif found is None:
        # The store has forgotten the worker, because it was silent for too long.
        process.started_at, process.told, process.announce_at = None, None, 0.0
    else:
        process.told = found["told"]
