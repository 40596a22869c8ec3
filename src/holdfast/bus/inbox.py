"""What makes each message's effect happen once: its claim, and the effect, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.bus.channel import slot_of
from holdfast.bus.envelope import Envelope, read_envelope, write_envelope
from holdfast.bus.execution_bus import Subscription
from holdfast.bus.handler import UNREADABLE_HANDLER, Handler, Park
from holdfast.bus.unreadable import UNREADABLE
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.retry import MICROSECONDS, RetryPolicy
from holdfast.model.text import clean_name
from holdfast.store.database import Row, Transaction

logger = logging.getLogger(__name__)

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


class HandlerFailed(Exception):
    def __init__(self, place: int, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.place = place
        self.final = isinstance(error, Park)

    @property
    def shown(self) -> str:
        return str(self)[:_SHOWN].encode(errors="replace").decode().replace("\x00", "?")


class TransactionEnded(Exception):
    """A handler ended the transaction that its message is part of, or broke it and went on."""


class Inbox:
    """The handlers of one group in one thread. `take` returns when each message is done or kept.

    `keep` is called between transactions, so that a long batch costs nobody their partitions.
    """

    def __init__(
        self,
        engine: Engine,
        subscription: Subscription,
        handlers: Iterable[Handler],
        retry: RetryPolicy,
        *,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._channel = subscription.channel.value
        self._group = subscription.group
        self._retry = retry
        self._keep = keep
        self._standing = engine.database.connect()
        self._handlers: dict[str, Handler] = {}
        for each in (*handlers, UNREADABLE_HANDLER):
            name = f"{self._group}/{clean_name('handler', each.name)}"
            if name in self._handlers:
                raise InvalidInput("handlers", f"two are called {each.name!r}")
            self._handlers[name] = each

    def take(self, envelopes: Sequence[Envelope]) -> None:
        jobs = [
            Job(envelope=envelope, handler=handler, name=name)
            for envelope in envelopes
            for name, handler in self._handlers.items()
            if (handler is UNREADABLE_HANDLER) == (envelope.type == UNREADABLE)
            and handler.wants(envelope)
        ]
        self._take_all(jobs)

    def _take(self, jobs: list[Job]) -> list[Job]:
        """Do all of them at once, or those before one that fails, and give back what is left."""
        try:
            self._do(jobs)
        except HandlerFailed as failure:
            self._take_all(jobs[: failure.place])
            self._keep_failed(jobs[failure.place], failure)
            return jobs[failure.place + 1 :]
        return []

    def _take_all(self, jobs: list[Job]) -> None:
        while jobs:
            alone = next((place for place, job in enumerate(jobs) if job.handler.steers), len(jobs))
            part = max(1, alone)
            jobs = self._take(jobs[:part]) + jobs[part:]
            self._keep()

    def _do(self, jobs: Sequence[Job]) -> None:
        after: list[object] = []
        with self._standing.begin() as connection:
            tx = self._engine.database.join(connection)
            held = self._held(tx, jobs)
            behind = [job for job in jobs if job.order in held]
            if behind:
                self._hold(tx, [_kept(job) for job in behind])
            claimed = self._claim(tx, [job for job in jobs if job.order not in held])
            for place, job in enumerate(jobs):
                # Taken out: the same message twice in a batch is one.
                if job.claim in claimed:
                    claimed.remove(job.claim)
                    after.append(self._handle(job, connection, place=place))
        self._follow(jobs[0], after)

    def try_again(self, slots: Iterable[int], *, count: int = 100) -> int:
        """Do what is due of what had failed, or had waited for that; how many were tried."""
        rows = self._engine.database.view(
            lambda tx: tx.read(
                "due_deliveries",
                channel=self._channel,
                handlers=list(self._handlers),
                slots=[str(slot) for slot in slots],
                count=count,
            )
        )
        for row in rows:
            self._try(row)
            self._keep()
        return len(rows)

    def _try(self, row: Row) -> None:
        name = row["handler"]
        job = Job(envelope=read_envelope(row["envelope"]), handler=self._handlers[name], name=name)
        try:
            with self._standing.begin() as connection:
                tx = self._engine.database.join(connection)
                claimed = self._claim(tx, [job])
                after = self._handle(job, connection, tries=row["tries"]) if claimed else None
                tx.run("remove_delivery", handler=name, message_id=job.envelope.message_id)
            self._follow(job, [after])
        except HandlerFailed as failure:
            self._note_failure(job, row["tries"], failure)

    def _note_failure(self, job: Job, tries: int, failure: HandlerFailed) -> None:
        most = 1 if failure.final else self._retry.max_attempts
        with self._standing.begin() as connection:
            noted = self._engine.database.join(connection).write(
                "note_failure",
                handler=job.name,
                message_id=job.envelope.message_id,
                tries=tries,
                most=most,
                wait=self._wait(tries + 1),
                error=failure.shown,
            )
        if noted and noted[0]["parked_at"] is not None:
            _tell_parked(job, failure)

    def _keep_failed(self, job: Job, failure: HandlerFailed) -> None:
        most = 1 if failure.final else self._retry.max_attempts
        logger.warning("%s failed on %s: %s", job.name, job.envelope.message_id, failure)
        with self._standing.begin() as connection:
            tx = self._engine.database.join(connection)
            row = _kept(job, failed=1, wait=self._wait(1), error=failure.shown)
            self._hold(tx, [row], most=most)
        if most == 1:
            _tell_parked(job, failure)

    def _held(self, tx: Transaction, jobs: Sequence[Job]) -> set[tuple[str, str]]:
        rows = tx.read(
            "held_orders",
            handlers=sorted({job.name for job in jobs}),
            matters=sorted({job.envelope.about for job in jobs}),
        )
        return {(row["handler"], row["about"]) for row in rows}

    def _hold(self, tx: Transaction, rows: Sequence[tuple[Any, ...]], *, most: int = 1) -> None:
        tx.run("hold_messages", rows=rows, channel=self._channel, most=most)

    def _claim(self, tx: Transaction, jobs: Sequence[Job]) -> set[tuple[str, str]]:
        if not jobs:
            return set()
        rows = [
            (job.envelope.message_id, job.name, job.envelope.run_id, job.envelope.trace_id)
            for job in jobs
        ]
        claimed = tx.write("claim_messages", rows=rows)
        return {(row["message_id"], row["handler"]) for row in claimed}

    def _handle(self, job: Job, connection: object, *, place: int = 0, tries: int = 0) -> object:
        last = tries + 1 >= self._retry.max_attempts
        handle = (job.handler.at_last if last else None) or job.handler.handle
        try:
            after = handle(job.envelope, connection)
            if not self._standing.sound:
                _refuse_end(job)
        except Exception as error:
            raise HandlerFailed(place, error) from error
        return after

    def _follow(self, job: Job, after: Iterable[object]) -> None:
        """What comes after a commit: it stands, whatever becomes of that."""
        if job.handler.steers:
            self._engine.notifier.notify()
        for each in after:
            if callable(each):
                try:
                    each()
                except Exception:
                    logger.exception("what %s left for after the commit failed", job.name)

    def _wait(self, failures: int) -> int:
        return round(self._retry.delay(failures, self._engine.randomness.random()) * MICROSECONDS)

    def close(self) -> None:
        self._standing.close()


def _refuse_end(job: Job) -> None:
    message = f"{job.name} ended the transaction that its message is part of, or broke it"
    raise TransactionEnded(message)


def _kept(job: Job, *, failed: int = 0, wait: int = 0, error: str | None = None) -> tuple[Any, ...]:
    envelope = job.envelope
    slot, text = slot_of(envelope.about), write_envelope(envelope)
    return (job.name, envelope.message_id, envelope.about, slot, text, failed, wait, error)


def _tell_parked(job: Job, failure: HandlerFailed) -> None:
    logger.error(
        "%s is parked for %s, and what follows it about %s waits: %s; replay it or drop it",
        *(job.envelope.message_id, job.name, job.envelope.about, failure),
    )
