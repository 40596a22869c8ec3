"""What PostgreSQL is sent and sends back, beside what a cursor would have done with it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import psycopg
import pytest

from holdfast.store.postgresql.connection import ServerAddress
from holdfast.store.postgresql.session import PostgresqlSession
from holdfast.store.postgresql.statement import number_parameters

ACTIVE = """
SELECT count(*) FROM pg_stat_activity
WHERE state = 'active' AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()
"""


@pytest.fixture
def session(postgres_url: str) -> Iterator[PostgresqlSession]:
    opened = PostgresqlSession(ServerAddress(postgres_url).connect())
    yield opened
    opened.close()


def value(session: PostgresqlSession, text: str, **parameters: object) -> object:
    _, [(found,)] = session.execute(text, parameters).rows()
    return found


def test_a_statement_names_each_parameter_once_and_keeps_its_signs() -> None:
    statement = number_parameters("SELECT %(b)s, %(a)s, %(b)s WHERE x LIKE '50%%'")
    assert statement.text == b"SELECT $1, $2, $1 WHERE x LIKE '50%'"
    assert statement.names == ("b", "a")


def test_values_come_back_as_they_were_sent(session: PostgresqlSession) -> None:
    for sent in ("", "ü\\'\"", None):
        assert value(session, "SELECT CAST(%(x)s AS text)", x=sent) == sent
    for number in (0, -1, 2**62):
        assert value(session, "SELECT %(x)s", x=number) == number
    for truth in (True, False):
        assert value(session, "SELECT %(x)s", x=truth) is truth


def test_values_that_no_text_can_hold_are_refused_before_they_are_sent(
    session: PostgresqlSession,
) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        session.execute("SELECT CAST(%(x)s AS text)", {"x": "cut\0off"})
    with pytest.raises(TypeError, match="float"):
        session.execute("SELECT %(x)s", {"x": 0.5})
    assert value(session, "SELECT 1") == 1


def test_more_statements_may_be_under_way_than_the_wire_holds(session: PostgresqlSession) -> None:
    long = "x" * 100_000
    answers = [session.execute("SELECT CAST(%(x)s AS text)", {"x": long}) for _ in range(300)]
    assert all(answer.rows()[1] == [(long,)] for answer in answers[::-1])


def test_a_statement_left_unprepared_behind_an_error_is_prepared_when_it_is_asked_again(
    session: PostgresqlSession,
) -> None:
    session.execute("BEGIN")
    session.execute("SELECT 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero), session.notice_loss():
        session.execute("SELECT 'new'").rows()
    assert session.at_rest
    assert value(session, "SELECT 'new'") == "new"


def test_an_interrupted_session_does_not_wait_for_its_statement(
    session: PostgresqlSession, postgres_url: str
) -> None:
    def interrupt() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as watch:
            while watch.execute(ACTIVE.encode()).fetchone() == (0,):
                pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt), session.notice_loss():
        session.execute("SELECT pg_sleep(600)").rows()
    thread.join()
    assert session.at_rest
    assert value(session, "SELECT 1") == 1
