"""What makes each message's effect happen once: its claim, and the effect, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from holdfast.bus.envelope import UNREADABLE, Envelope, read_envelope
from holdfast.bus.execution_bus import Subscription
from holdfast.bus.handler import (
    UNREADABLE_HANDLER,
    Handler,
    HandlerFailed,
    Job,
    TransactionEnded,
    count_together,
    gather,
)
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.retry import MICROSECONDS, RetryPolicy
from holdfast.model.text import clean_name
from holdfast.store.database import Row, Transaction

logger = logging.getLogger(__name__)


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
        for each in (UNREADABLE_HANDLER, *handlers):
            name = f"{self._group}/{clean_name('handler', each.name)}"
            if name in self._handlers:
                raise InvalidInput("handlers", f"two are called {each.name!r}")
            self._handlers[name] = each

    def take(self, envelopes: Sequence[Envelope]) -> None:
        # What comes twice at once is one, and breaks no set up.
        once: dict[str, Envelope] = {}
        for envelope in envelopes:
            once.setdefault(envelope.message_id, envelope)
        self._take_all(
            [
                Job(envelope=envelope, handler=handler, name=name)
                for name, handler in self._handlers.items()
                for envelope in once.values()
                if (handler is UNREADABLE_HANDLER) == (envelope.type == UNREADABLE)
                and handler.wants(envelope)
            ]
        )

    def _take_all(self, jobs: list[Job]) -> None:
        while jobs:
            part = count_together(jobs)
            jobs = self._take(jobs[:part]) + jobs[part:]
            self._keep()

    def _take(self, jobs: list[Job]) -> list[Job]:
        """Do all of them at once, or those before one that fails, and give back what is left."""
        try:
            self._do(jobs)
        except HandlerFailed as failure:
            if failure.place is None:
                half = len(jobs) // 2
                self._take_all(jobs[:half])
                return jobs[half:]
            self._take_all(jobs[: failure.place])
            self._keep_failed(jobs[failure.place], failure)
            return jobs[failure.place + 1 :]
        return []

    def _do(self, jobs: Sequence[Job]) -> None:
        with self._standing.begin() as connection:
            tx = self._engine.database.join(connection)
            held = self._held(tx, jobs)
            behind = [job for job in jobs if job.order in held] if held else []
            if behind:
                self._hold(tx, [job.keep() for job in behind])
            claimed = self._claim(tx, [job for job in jobs if job.order not in held])
            mine = [(place, job) for place, job in enumerate(jobs) if job.claim in claimed]
            after = [self._handle(each, connection) for each in gather(mine)]
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
                claimed, tries = self._claim(tx, [job]), row["tries"]
                after = self._handle([(0, job)], connection, tries) if claimed else None
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
            row = job.keep(failed=1, wait=self._wait(1), error=failure.shown)
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

    def _handle(
        self, jobs: Sequence[tuple[int, Job]], connection: object, tries: int = 0
    ) -> object:
        place, job = jobs[0]
        last = tries + 1 >= self._retry.max_attempts
        try:
            after = job.handler.do([each.envelope for _, each in jobs], connection, last=last)
            if not self._standing.sound:
                _refuse_end(job)
        except Exception as error:
            raise HandlerFailed(place if len(jobs) == 1 else None, error) from error
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


def _tell_parked(job: Job, failure: HandlerFailed) -> None:
    logger.error(
        "%s is parked for %s, and what follows it about %s waits: %s; replay it or drop it",
        *(job.envelope.message_id, job.name, job.envelope.about, failure),
    )
