"""PostgreSQL sessions: connections that stay in pipeline mode from their start to their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from holdfast.store.postgresql.connection import (
    Connection,
    ConnectionLost,
    describe_error,
    is_plan_outdated,
)
from holdfast.store.postgresql.pipeline import Pipeline, PipelineAnswer, check_result
from holdfast.store.postgresql.statement import number_parameters

_NOTHING: Mapping[str, object] = {}


class PostgresqlSession:
    """Statements are sent in their order, when the answer to one of them is asked for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pipeline = Pipeline(connection)

    @property
    def lost(self) -> bool:
        return self._connection.closed

    @property
    def at_rest(self) -> bool:
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    def execute(self, text: str, parameters: Mapping[str, object] = _NOTHING) -> PipelineAnswer:
        statement = number_parameters(text)
        return self._pipeline.send(statement, *statement.bind(parameters))

    def end_reading(self) -> None:
        """End the transaction of statements without a BEGIN, so that the next one sees anew."""
        if (error := self._pipeline.drain()) is not None:
            check_result(error)

    def commit(self) -> None:
        self._end("COMMIT")

    def recover_from(self, error: psycopg.Error) -> None:
        """Roll back after an error; afterwards the session is at rest, or lost."""
        self.roll_back()
        if is_plan_outdated(error):
            self._pipeline.forget_prepared()

    def roll_back(self) -> None:
        """End the open transaction, if there is one; afterwards the session is at rest, or lost."""
        try:
            # Statements that are still to be answered fail because of the same error.
            self._pipeline.drain()
            if not self.at_rest:
                self._end("ROLLBACK")
        except psycopg.Error:
            self.close()

    def _end(self, text: str) -> None:
        self.execute(text)
        self.end_reading()

    @contextmanager
    def notice_loss(self) -> Iterator[None]:
        """Roll back after an error; raise `ConnectionLost` if the connection is lost."""
        try:
            yield
        except psycopg.Error as error:
            self.recover_from(error)
            if self.lost:
                raise ConnectionLost(describe_error(error)) from error
            raise
        except Exception:
            self.roll_back()
            raise
        except BaseException:
            # The statement that was interrupted is cancelled, so that nothing waits for its end.
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=2.0)
            self.roll_back()
            raise

    def close(self) -> None:
        self._connection.close()
