"""How much a query goes through: steps of SQLite, rows of PostgreSQL."""

from __future__ import annotations

from typing import Any

import apsw
from psycopg.sql import SQL

from holdfast.clock import SystemClock
from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.store.postgresql.connection import ServerAddress
from holdfast.store.postgresql.statement import number_parameters
from holdfast.store.sql_text import queries
from holdfast.store.sqlite.connection import connect


def steps_of(path: str, text: str, asked: dict[str, Any]) -> int:
    """How many instructions SQLite's machine carries out for a query."""
    file: apsw.Connection = connect(sqlite_path(path), SystemClock())
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return False

    try:
        file.set_progress_handler(step, 1)
        file.execute(text, {queries.TIME_PARAMETER: 0, **asked}).fetchall()
    finally:
        file.close()
    return count


def rows_of(plan: dict[str, Any]) -> int:
    """How many rows pass through a plan of PostgreSQL, or are dropped in it."""
    dropped: int = sum(count for name, count in plan.items() if name.startswith("Rows Removed"))
    inner = sum(rows_of(each) for each in plan.get("Plans", []))
    return inner + int((plan["Actual Rows"] + dropped) * plan["Actual Loops"])


def cost_of(url: str, query: str, **asked: Any) -> int:
    if not is_postgresql(url):
        return steps_of(url, queries.load("sqlite")[query].text, asked)
    statement = number_parameters(queries.load("postgresql")[query].text)
    given = SQL(", ").join(asked[name] for name in statement.names)
    with ServerAddress(url).connect_view() as server:
        server.execute("ANALYZE holdfast_run, holdfast_task, holdfast_slot, holdfast_event")
        # What is asked often has such a plan in the end, and keeps it.
        server.execute("SET plan_cache_mode = force_generic_plan")
        server.execute(b"PREPARE asked AS " + statement.text, prepare=False)
        execute = SQL("EXECUTE asked ({})" if statement.names else "EXECUTE asked").format(given)
        explained = SQL("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {}").format(execute)
        (found,) = server.execute(explained, prepare=False).fetchall()
    return rows_of(found["QUERY PLAN"][0]["Plan"])
