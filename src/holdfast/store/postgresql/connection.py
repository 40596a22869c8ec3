"""PostgreSQL connections: the address of a server, settings, and the kinds of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg.types.numeric import Int8Dumper

from holdfast.errors import InvalidInput
from holdfast.store.database import Contended

Connection = psycopg.Connection[DictRow]

# Parameters for what the URL leaves open.
_DEFAULTS: dict[str, Any] = {
    "fallback_application_name": "holdfast",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# Plans are kept, so a plan that was made while the tables were empty must use indexes too.
_INDEX_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    # Statements are over before parallel workers, or compiled code, could help.
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
_WRITER_SETTINGS = {
    **_INDEX_SETTINGS,
    "plan_cache_mode": "force_generic_plan",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "random_page_cost": "0.5",
    # A process that is stopped inside a transaction must not hold its locks for ever.
    "idle_in_transaction_session_timeout": "10s",
}
_BUSY = "55P03"
# Raised by the function holdfast_contend, where a statement finds that another process was first.
CONTENDED = "HF001"
_RETRYABLE = frozenset({"40001", "40P01", CONTENDED})


# What servers and poolers say when they take no more connections. The server gives no code for it
# where a connection fails, and other languages have other words.
_FULL = (
    "too many clients",
    "too many connections",
    "remaining connection slots are reserved",
    "no more connections allowed",
)
_FULL_ADVICE = (
    "the server takes no more connections; raise its max_connections, or have each process of "
    "Holdfast open fewer: the setting `connections`, 8 unless it is set"
)
_READ_PID = "SELECT pg_backend_pid() AS pid"
_TRANSACTION_POOLING = (
    "leads to a pooler in transaction mode (pool_mode = transaction of PgBouncer), in which the "
    "settings and prepared statements of a session are lost, and LISTEN hears nothing; lead it to "
    "the server itself, or to the pooler in session mode (pool_mode = session)"
)
# How often two connections are compared; one comparison may find a busy pooler just changing.
_COMPARISONS = 5


class ConnectionLost(Exception):
    """The server cannot be reached or went away, and nothing of the transaction remains."""


class ServerAddress:
    """The address of a server; its password is kept out of every message."""

    def __init__(self, url: str) -> None:
        try:
            self._parameters = {**_DEFAULTS, **conninfo_to_dict(url)}
        except psycopg.ProgrammingError:
            # The parser's own message quotes the URL, and with it the password.
            reason = "not a PostgreSQL URL; write postgresql://user:password@host:5432/database"
            raise InvalidInput("url", reason) from None

    def connect(self) -> Connection:
        try:
            return self._connect()
        except psycopg.OperationalError as error:
            told = self.redact(error)
            full = any(words in told for words in _FULL)
            raise ConnectionLost(f"{told}: {_FULL_ADVICE}" if full else told) from None

    def connect_writer(self, lock_timeout: float) -> Connection:
        connection = self.connect()
        try:
            self._refuse_transaction_pooling(connection)
        except psycopg.OperationalError as error:
            connection.close()
            raise ConnectionLost(self.redact(error)) from None
        except BaseException:
            connection.close()
            raise
        return self.set_up_writer(connection, lock_timeout)

    def _refuse_transaction_pooling(self, connection: Connection) -> None:
        """Refuse the URL if the transactions of one connection are carried out by other sessions.

        A pooler tells each of its clients a number that is no server process.
        """
        if _read_pid(connection) == connection.info.backend_pid:
            return
        with self.connect() as other:
            for _ in range(_COMPARISONS):
                mine = _read_pid(connection)
                with other.transaction():
                    # One process serves both, or now another process serves the first.
                    if _read_pid(other) == mine or _read_pid(connection) != mine:
                        raise InvalidInput("url", _TRANSACTION_POOLING)

    def set_up_writer(self, connection: Connection, lock_timeout: float) -> Connection:
        # An operation whose key or counter is held by an application's transaction must not keep
        # all other operations of the process waiting, renewals above all.
        settings = {**_WRITER_SETTINGS, "lock_timeout": f"{round(lock_timeout * 1000)}ms"}
        return self._set_up(connection, settings)

    def connect_view(self) -> Connection:
        # Without the writer's other settings: a list needs a plan for each filter, and the doctor
        # joins many tables.
        return self._set_up(self.connect(), _INDEX_SETTINGS)

    def _set_up(self, connection: Connection, settings: Mapping[str, str]) -> Connection:
        try:
            with connection.pipeline():
                for setting in settings.items():
                    connection.execute("SELECT set_config(%s, %s, false)", setting)
        except psycopg.OperationalError as error:
            connection.close()
            raise ConnectionLost(self.redact(error)) from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> Connection:
        connection = psycopg.connect(
            **self._parameters, autocommit=True, row_factory=dict_row, prepare_threshold=0
        )
        connection.prepared_max = None
        # By default the size of a number decides its type, and one statement has three plans.
        connection.adapters.register_dumper(int, Int8Dumper)
        return connection

    @property
    def password(self) -> str | None:
        """The password that the URL itself holds."""
        password = self._parameters.get("password")
        return str(password) if password else None

    @property
    def names(self) -> set[str]:
        """The user, database and host of the URL, which are no secrets."""
        return {str(self._parameters.get(each)) for each in ("user", "dbname", "host")}

    def redact(self, error: psycopg.Error) -> str:
        text = " ".join(str(error).split())
        return text.replace(self.password, "***") if self.password else text


def _read_pid(connection: Connection) -> int:
    """The number of the server process that carries out a statement of this connection."""
    # Unprepared, because the next statement may be carried out by another session.
    return int(next(connection.execute(_READ_PID, prepare=False))["pid"])


def is_retryable(error: psycopg.Error | Contended) -> bool:
    """Whether the transaction was rolled back for a reason that another try may not meet."""
    return isinstance(error, Contended) or error.sqlstate in _RETRYABLE or is_plan_outdated(error)


def is_busy(error: psycopg.Error | Contended) -> bool:
    """Whether another transaction has held a lock for longer than the lock timeout."""
    return isinstance(error, psycopg.Error) and error.sqlstate == _BUSY


def is_plan_outdated(error: psycopg.Error) -> bool:
    """Whether a statement was prepared before a table was changed, and has to be prepared anew."""
    # Recognized by the name of the server's function: the message may be in any language.
    return error.diag.source_function == "RevalidateCachedQuery"


def describe_error(error: psycopg.Error | Contended) -> str:
    if isinstance(error, Contended):
        return str(error)
    # Without the DETAIL of the error, which may quote whole rows with the content of users.
    text = " ".join((error.diag.message_primary or str(error)).split())
    return f"{text} ({error.sqlstate})" if error.sqlstate else text
