"""The inbox of a group: the claim of a message and its effect in one transaction, so both once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from holdfast.bus.envelope import UNREADABLE, Envelope, read_envelope
from holdfast.bus.execution_bus import Subscription
from holdfast.bus.handler import (
    UNREADABLE_HANDLER,
    Delivery,
    Handler,
    HandlerFailed,
    TransactionEnded,
    count_in_transaction,
    group_deliveries,
)
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.retry import MICROSECONDS, RetryPolicy
from holdfast.model.text import clean_name
from holdfast.store.database import Row, Transaction

logger = logging.getLogger(__name__)


class Inbox:
    """The handlers of one group in one thread; after `handle_once` each message is done or kept.

    `renew_leases` is called between transactions, so that no partition is lost in a long batch.
    """

    def __init__(
        self,
        engine: Engine,
        subscription: Subscription,
        handlers: Iterable[Handler],
        retry: RetryPolicy,
        *,
        renew_leases: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._channel = subscription.channel.value
        self._group = subscription.group
        self._retry = retry
        self._renew_leases = renew_leases
        self._kept_connection = engine.database.connect(lends=True)
        self._handlers: dict[str, Handler] = {}
        for each in (UNREADABLE_HANDLER, *handlers):
            name = f"{self._group}/{clean_name('handler', each.name)}"
            if name in self._handlers:
                raise InvalidInput("handlers", f"two are called {each.name!r}")
            self._handlers[name] = each

    def handle_once(self, envelopes: Sequence[Envelope]) -> None:
        # A message that comes twice in a batch is handled once, and parts no group of deliveries.
        once: dict[str, Envelope] = {}
        for envelope in envelopes:
            once.setdefault(envelope.message_id, envelope)
        self._handle_all(
            [
                Delivery(envelope=envelope, handler=handler, name=name)
                for name, handler in self._handlers.items()
                for envelope in once.values()
                if (handler is UNREADABLE_HANDLER) == (envelope.type == UNREADABLE)
                and handler.wants(envelope)
            ]
        )

    def _handle_all(self, deliveries: list[Delivery]) -> None:
        while deliveries:
            part = count_in_transaction(deliveries)
            deliveries = self._handle_some(deliveries[:part]) + deliveries[part:]
            self._renew_leases()

    def _handle_some(self, deliveries: list[Delivery]) -> list[Delivery]:
        """Handle deliveries in one transaction; after a failure, those before it, and keep it.

        The result is the deliveries that are left to handle.
        """
        try:
            self._handle_in_transaction(deliveries)
        except HandlerFailed as failure:
            if failure.place is None:
                half = len(deliveries) // 2
                self._handle_all(deliveries[:half])
                return deliveries[half:]
            self._handle_all(deliveries[: failure.place])
            self._keep_failed(deliveries[failure.place], failure)
            return deliveries[failure.place + 1 :]
        return []

    def _handle_in_transaction(self, deliveries: Sequence[Delivery]) -> None:
        with self._kept_connection.begin() as connection:
            tx = self._engine.database.join(connection)
            waiting = self._orders_waiting(tx, deliveries)
            behind = (
                [delivery for delivery in deliveries if delivery.order_key in waiting]
                if waiting
                else []
            )
            if behind:
                self._keep_messages(tx, [delivery.make_row() for delivery in behind])
            claimed = self._claim_messages(
                tx, [delivery for delivery in deliveries if delivery.order_key not in waiting]
            )
            claimed_deliveries = [
                (place, delivery)
                for place, delivery in enumerate(deliveries)
                if delivery.claim_key in claimed
            ]
            after = [
                self._call_handler(each, connection)
                for each in group_deliveries(claimed_deliveries)
            ]
        self._call_after_commit(deliveries[0], after)

    def retry_due(self, slots: Iterable[int], *, count: int = 100) -> int:
        """Handle kept deliveries that are due: failed ones, and those behind them; their number."""
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
            self._retry_delivery(row)
            self._renew_leases()
        return len(rows)

    def _retry_delivery(self, row: Row) -> None:
        name = row["handler"]
        delivery = Delivery(
            envelope=read_envelope(row["envelope"]), handler=self._handlers[name], name=name
        )
        try:
            with self._kept_connection.begin() as connection:
                tx = self._engine.database.join(connection)
                claimed, tries = self._claim_messages(tx, [delivery]), row["tries"]
                after = self._call_handler([(0, delivery)], connection, tries) if claimed else None
                tx.run("remove_delivery", handler=name, message_id=delivery.envelope.message_id)
            self._call_after_commit(delivery, [after])
        except HandlerFailed as failure:
            self._note_failure(delivery, row["tries"], failure)

    def _note_failure(self, delivery: Delivery, tries: int, failure: HandlerFailed) -> None:
        most = 1 if failure.final else self._retry.max_attempts
        with self._kept_connection.begin() as connection:
            noted = self._engine.database.join(connection).write(
                "note_failure",
                handler=delivery.name,
                message_id=delivery.envelope.message_id,
                tries=tries,
                most=most,
                wait=self._retry_delay(tries + 1),
                error=failure.shown_text,
            )
        if noted and noted[0]["parked_at"] is not None:
            _log_parked(delivery, failure)

    def _keep_failed(self, delivery: Delivery, failure: HandlerFailed) -> None:
        most = 1 if failure.final else self._retry.max_attempts
        logger.warning("%s failed on %s: %s", delivery.name, delivery.envelope.message_id, failure)
        with self._kept_connection.begin() as connection:
            tx = self._engine.database.join(connection)
            row = delivery.make_row(failed=1, wait=self._retry_delay(1), error=failure.shown_text)
            self._keep_messages(tx, [row], most=most)
        if most == 1:
            _log_parked(delivery, failure)

    def _orders_waiting(
        self, tx: Transaction, deliveries: Sequence[Delivery]
    ) -> set[tuple[str, str]]:
        rows = tx.read(
            "held_orders",
            handlers=sorted({delivery.name for delivery in deliveries}),
            matters=sorted({delivery.envelope.about for delivery in deliveries}),
        )
        return {(row["handler"], row["about"]) for row in rows}

    def _keep_messages(
        self, tx: Transaction, rows: Sequence[tuple[Any, ...]], *, most: int = 1
    ) -> None:
        tx.run("hold_messages", rows=rows, channel=self._channel, most=most)

    def _claim_messages(
        self, tx: Transaction, deliveries: Sequence[Delivery]
    ) -> set[tuple[str, str]]:
        if not deliveries:
            return set()
        rows = [
            (
                delivery.envelope.message_id,
                delivery.name,
                delivery.envelope.run_id,
                delivery.envelope.trace_id,
            )
            for delivery in deliveries
        ]
        claimed = tx.write("claim_messages", rows=rows)
        return {(row["message_id"], row["handler"]) for row in claimed}

    def _call_handler(
        self, deliveries: Sequence[tuple[int, Delivery]], connection: object, tries: int = 0
    ) -> object:
        place, delivery = deliveries[0]
        last = tries + 1 >= self._retry.max_attempts
        try:
            after = delivery.handler.do(
                [each.envelope for _, each in deliveries], connection, last=last
            )
            if not self._kept_connection.can_commit:
                _refuse_ended_transaction(delivery)
        except Exception as error:
            raise HandlerFailed(place if len(deliveries) == 1 else None, error) from error
        return after

    def _call_after_commit(self, delivery: Delivery, after: Iterable[object]) -> None:
        """Send a hint, and call what the handlers returned; an error does not undo the commit."""
        if delivery.handler.steers:
            self._engine.notifier.notify()
        for each in after:
            if callable(each):
                try:
                    each()
                except Exception:
                    logger.exception("what %s left for after the commit failed", delivery.name)

    def _retry_delay(self, failures: int) -> int:
        return round(self._retry.delay(failures, self._engine.randomness.random()) * MICROSECONDS)


def _refuse_ended_transaction(delivery: Delivery) -> None:
    message = f"{delivery.name} ended the transaction that its message is part of, or broke it"
    raise TransactionEnded(message)


def _log_parked(delivery: Delivery, failure: HandlerFailed) -> None:
    logger.error(
        "%s is parked for %s, and what follows it about %s waits: %s; replay it or drop it",
        *(delivery.envelope.message_id, delivery.name, delivery.envelope.about, failure),
    )
