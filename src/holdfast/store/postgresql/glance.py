"""The tables that a PostgreSQL database has where a store would be."""

from __future__ import annotations

from collections.abc import Collection

import psycopg

from holdfast.errors import StoreError
from holdfast.store.postgresql.connection import Address, ConnectionLost, describe
from holdfast.store.postgresql.database import unreachable

# Also what another schema of the search path has, as the store itself is found.
_TABLES = """
SELECT relname FROM pg_class
 WHERE relkind IN ('r', 'p')
   AND (relnamespace = to_regnamespace(current_schema()::text)
        OR oid = to_regclass('holdfast_migration'))
"""


def read_tables(url: str) -> Collection[str]:
    try:
        with Address(url).connect() as connection:
            return {row["relname"] for row in connection.execute(_TABLES)}
    except ConnectionLost as error:
        raise unreachable(error) from None
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL: {describe(error)}") from None
