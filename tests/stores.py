"""Stores on PostgreSQL that tests have one after another: one is emptied sooner than made."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import psycopg

from holdfast.clock import SystemClock
from holdfast.engine.engine import Engine
from holdfast.engine.explain.doctor import Diagnosis, examine_transaction
from holdfast.store.postgresql.connection import ConnectionLost, ServerAddress
from holdfast.store.postgresql.session import PostgresqlSession
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.store.sql_text import queries
from tests import servers

# Who is in a database beside whoever asks; the session that a kept store has there counts for none.
OTHERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
  AND pid <> pg_backend_pid() AND application_name <> 'holdfast-keeper'
"""

# In the order of their making: whatever refers to another comes after it.
_TABLES = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND relnamespace = CAST('public' AS regnamespace) ORDER BY oid
"""
# Changed by any statement on the schema, by ANALYZE and by a deadlock, but not by rows.
_SHAPE = """
SELECT sum(hashtextextended(concat_ws(' ', oid, relname, relnamespace, relchecks, relhastriggers,
  reltuples, reloptions, relacl), 0)) FROM pg_class WHERE oid >= 16384
UNION ALL SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM pg_attribute WHERE attrelid >= 16384
UNION ALL SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM pg_constraint WHERE oid >= 16384
UNION ALL SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM pg_index WHERE indexrelid >= 16384
UNION ALL SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM pg_proc WHERE oid >= 16384
UNION ALL SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM pg_trigger WHERE oid >= 16384
UNION ALL SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM pg_type WHERE oid >= 16384
UNION ALL SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM pg_namespace
UNION ALL SELECT count(*) FROM pg_db_role_setting JOIN pg_database ON setdatabase = pg_database.oid
  WHERE datname = current_database()
UNION ALL SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()
"""
# What was deleted stays in the file; up to so many pages it is planned for as one without any.
_PAGES = 10
_LONG = f"""
SELECT 1 FROM pg_class WHERE relkind = 'r' AND oid >= 16384
  AND pg_relation_size(oid) > {_PAGES} * CAST(current_setting('block_size') AS bigint)
"""  # noqa: S608 - a constant
_FROM_ONE = "SELECT setval(CAST(seqrelid AS regclass), seqstart, false) FROM pg_sequence"
_NEW_SECRET = "UPDATE holdfast_meta SET value = %(secret)s WHERE name = 'secret'"


class _KeptStore:
    """A database, and a session there that has prepared what is asked after every test."""

    def __init__(self, server: str, template: str) -> None:
        self._cleanup = ExitStack()
        self.url = self._cleanup.enter_context(servers.database(server, template))
        named = f"{self.url}{'&' if '?' in self.url else '?'}application_name=holdfast-keeper"
        self._session = PostgresqlSession(ServerAddress(named).connect_view())
        self._cleanup.callback(self._session.close)
        self._tables = [str(name) for (name,) in self._ask(_TABLES)]
        self._made = {table: rows for table in self._tables if (rows := self._json(table))}
        self._shape = self._ask(_SHAPE)

    def renew(self) -> bool:
        """Make a new store of it; False where its user left more behind than rows."""
        try:
            with self._transaction():
                asked = [self._session.execute(each) for each in (OTHERS, _LONG, _SHAPE)]
                others, long, shape = [each.rows()[1] for each in asked]
                if others or long or shape != self._shape:
                    return False
                self._empty()
        except (psycopg.Error, ConnectionLost):
            return False
        return True

    def examine(self) -> Diagnosis:
        # None of the checks asks for the time.
        known = queries.load("postgresql")
        with self._transaction():
            return examine_transaction(PostgresqlTransaction(self._session, known, SystemClock()))

    def close(self) -> None:
        self._cleanup.close()

    def _empty(self) -> None:
        for table in reversed(self._tables):
            self._session.execute(f"DELETE FROM {table}")  # noqa: S608 - of this store
        for table, rows in self._made.items():
            self._session.execute(
                f"INSERT INTO {table} SELECT * FROM json_populate_recordset("  # noqa: S608
                f"CAST(NULL AS {table}), %(rows)s)",
                {"rows": rows},
            )
        self._session.execute(_FROM_ONE)
        self._session.execute(_NEW_SECRET, {"secret": new_secret()})

    def _json(self, table: str) -> str | None:
        found = self._ask(f"SELECT CAST(json_agg(made) AS text) FROM {table} AS made")  # noqa: S608
        return None if found[0][0] is None else str(found[0][0])

    def _ask(self, text: str) -> Sequence[tuple[object, ...]]:
        with self._transaction():
            return self._session.execute(text).rows()[1]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._session.notice_loss():
            self._session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            yield
            self._session.commit()


class KeptStores:
    """Lends stores that nobody has used, or of which nothing tells that somebody has."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._free: deque[_KeptStore] = deque()

    @contextmanager
    def lend(self) -> Iterator[str]:
        store = self._take()
        _LENT[store.url] = store
        try:
            yield store.url
        finally:
            del _LENT[store.url]
            self._free.append(store)

    def close(self) -> None:
        for store in self._free:
            store.close()

    def _take(self) -> _KeptStore:
        # Not the last one: who used it may be leaving still.
        while len(self._free) > 1:
            store = self._free.popleft()
            if store.renew():
                return store
            store.close()
        made = _KeptStore(self._server, self._template)
        assert made.renew()
        return made


_LENT: dict[str, _KeptStore] = {}


def examined(engine: Engine) -> Diagnosis:
    """What the doctor finds in an engine's store, asked where he need not prepare himself anew."""
    return _examined_aside(engine.settings.url) or engine.doctor()


def examined_alone(url: str) -> Diagnosis:
    """The same of a store that nobody has open."""
    if found := _examined_aside(url):
        return found
    with closing(Engine(url)) as engine:
        return engine.doctor()


def _examined_aside(url: str) -> Diagnosis | None:
    """None of a store that is not lent, or where the test has ended every session."""
    store = _LENT.get(url)
    try:
        return None if store is None else store.examine()
    except ConnectionLost:
        return None


def new_secret() -> str:
    return uuid.uuid4().hex * 2
