"""The pipeline of one connection: statements are sent together, and answered in their order."""

from __future__ import annotations

import select
from collections import deque
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import PipelineAborted, error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from holdfast.store.postgresql.connection import Connection
from holdfast.store.postgresql.statement import Statement, Types, Values

Names = tuple[str, ...]
_GOOD = {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.PIPELINE_SYNC}


class PipelineAnswer:
    """The answer to a statement, which is received when its rows are asked for."""

    __slots__ = ("_pipeline", "place", "prepares", "result")

    def __init__(self, pipeline: Pipeline, place: int, prepares: Preparation | None = None) -> None:
        self._pipeline = pipeline
        # How many answers of this session come before it.
        self.place = place
        self.prepares = prepares
        self.result: PGresult | None = None

    def rows(self) -> tuple[Names, list[tuple[Any, ...]]]:
        return self._pipeline.read(self)


Preparation = tuple[Statement, Types]


class Pipeline:
    """Sends and receives by libpq's functions: a cursor costs more than most statements."""

    def __init__(self, connection: Connection) -> None:
        self._server: PGconn = connection.pgconn
        self._server.enter_pipeline_mode()
        self._transformer = Transformer(connection)
        self._prepared: dict[Preparation, bytes] = {}
        self._names: dict[tuple[bytes, ...], Names] = {}
        self._prepared_count = 0
        # The answers that are still to come, in their order.
        self._awaited_answers: deque[PipelineAnswer] = deque()
        # How many answers were asked for since the session began, and how many of them the server
        # has been told to send.
        self._asked = 0
        self._requested = 0
        self._socket = self._server.socket
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def send(self, statement: Statement, types: Types, values: Values) -> PipelineAnswer:
        wanted = (statement, types)
        name = self._prepared.get(wanted)
        if name is None:
            self._prepared_count += 1
            name = self._prepared[wanted] = b"holdfast_%d" % self._prepared_count
            self._server.send_prepare(name, statement.text, types)
            self._await_answer(wanted)
        self._server.send_query_prepared(name, values)
        return self._await_answer()

    def read(self, answer: PipelineAnswer) -> tuple[Names, list[tuple[Any, ...]]]:
        if answer.place >= self._requested:
            self._server.send_flush_request()
            self._flush()
        while answer.result is None:
            check_result(self._receive())
        result = answer.result
        self._transformer.set_pgresult(result)
        rows = self._transformer.load_rows(0, result.ntuples, tuple)
        return self._column_names(result), rows

    def drain(self) -> PGresult | None:
        """Receive all answers that are still to come, and return the first error among them."""
        self._server.pipeline_sync()
        self._await_answer()
        self._flush()
        first: PGresult | None = None
        while self._awaited_answers:
            result = self._receive()
            if first is None and result.status not in _GOOD:
                first = result
        return first

    def forget_prepared(self) -> None:
        """Forget the prepared statements, so that each is prepared again."""
        self._prepared.clear()

    def _await_answer(self, prepares: Preparation | None = None) -> PipelineAnswer:
        answer = PipelineAnswer(self, self._asked, prepares)
        self._asked += 1
        self._awaited_answers.append(answer)
        return answer

    def _receive(self) -> PGresult:
        """Receive the result of the next statement."""
        result = self._next()
        if result is None:
            raise psycopg.OperationalError("the server sent nothing where an answer was due")
        answer = self._awaited_answers.popleft()
        answer.result = result
        if result.status != ExecStatus.PIPELINE_SYNC:
            # Each result but a synchronization is followed by an end of its own.
            self._next()
        if answer.prepares is not None and result.status not in _GOOD:
            self._prepared.pop(answer.prepares, None)
        return result

    def _next(self) -> PGresult | None:
        server = self._server
        while server.is_busy():
            self._poll.poll()
            server.consume_input()
        return server.get_result()

    def _flush(self) -> None:
        self._requested = self._asked
        if not self._server.flush():
            return
        self._poll.modify(self._socket, select.POLLIN | select.POLLOUT)
        try:
            # `flush` receives answers too: the server may wait for that before it reads more.
            while self._server.flush():
                self._poll.poll()
        finally:
            self._poll.modify(self._socket, select.POLLIN)

    def _column_names(self, result: PGresult) -> Names:
        names = tuple([result.fname(each) or b"" for each in range(result.nfields)])
        known = self._names.get(names)
        if known is None:
            known = self._names[names] = tuple([name.decode() for name in names])
        return known


def check_result(result: PGresult) -> None:
    if result.status == ExecStatus.PIPELINE_ABORTED:
        raise PipelineAborted("the transaction went on after an error")
    if result.status not in _GOOD:
        raise error_from_result(result)
