"""A connection that is in pipeline mode for the whole of its life."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow

from holdfast.store.postgresql.connection import Connection, ConnectionLost, describe

Cursor = psycopg.Cursor[DictRow]


class Session:
    """Statements leave when someone asks for an answer, in the order they were given."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._life = ExitStack()
        self._pipeline = self._life.enter_context(connection.pipeline())

    @property
    def lost(self) -> bool:
        return self._connection.closed

    @property
    def at_rest(self) -> bool:
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    def execute(
        self, text: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> Cursor:
        return self._connection.execute(text.encode(), parameters)

    def commit(self) -> None:
        self.execute("COMMIT")
        self._pipeline.sync()

    def roll_back(self) -> None:
        """Leave whatever transaction is open; afterwards the session is at rest, or lost."""
        # What was still under way fails because of the error that brought us here.
        with suppress(psycopg.Error):
            self._pipeline.sync()
        if self.lost or self.at_rest:
            return
        try:
            self._connection.execute("ROLLBACK", prepare=False)
            self._pipeline.sync()
            # After a rollback psycopg drops every prepared statement, but sends that only behind
            # its next statement: were it one to prepare, it would be dropped along with the rest.
            self._connection.execute("SELECT", prepare=False)
            self._pipeline.sync()
        except psycopg.Error:
            self.close()

    @contextmanager
    def loss_noticed(self) -> Iterator[None]:
        """Roll back after an error; when the server went away, say so instead."""
        try:
            yield
        except psycopg.Error as error:
            self.roll_back()
            if self.lost:
                raise ConnectionLost(describe(error)) from error
            raise
        except BaseException:
            self.roll_back()
            raise

    def close(self) -> None:
        # In this order, so that nobody waits for a server that may not answer any more.
        self._connection.close()
        with suppress(psycopg.Error):
            self._life.close()
