"""Every named query is understood by the database it is written for."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg.pq import ExecStatus

from holdfast.clock import SystemClock
from holdfast.store import migrations
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.transitions import WANTED_PARAMETER
from holdfast.store.sqlite.connection import connect, create_file


def test_sqlite_understands_every_query(tmp_path: Path) -> None:
    create_file(tmp_path / "empty.db")
    connection = connect(tmp_path / "empty.db", SystemClock())
    for migration in migrations.load("sqlite"):
        connection.execute(migration.text)
    for query in queries.load("sqlite").values():
        bound = dict.fromkeys({*query.parameters, queries.TIME_PARAMETER})
        connection.execute(f"EXPLAIN {query.text}", bound).fetchall()
    connection.close()


def test_postgresql_understands_every_query_without_being_told_a_type(postgres_url: str) -> None:
    misunderstood: dict[str, str] = {}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for migration in migrations.load("postgresql"):
            connection.execute(migration.text.encode(), prepare=False)
        for query in queries.load("postgresql").values():
            # The driver tells an insert how many rows are wanted.
            wanted = {WANTED_PARAMETER} if query.answers_count else set()
            names = sorted(query.parameters | wanted)
            numbers = {name: f"${n}" for n, name in enumerate(names, start=1)}
            # As psycopg does, which writes a number where a name is.
            text = query.text % numbers
            answer = connection.pgconn.prepare(b"", text.encode())
            if answer.status != ExecStatus.COMMAND_OK:
                misunderstood[query.name] = answer.error_message.decode()
    assert misunderstood == {}
