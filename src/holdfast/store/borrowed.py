"""What is inside a connection that an application lends: the driver's own."""

from __future__ import annotations

from typing import Any

from holdfast.errors import InvalidInput


def driver_connection(connection: object) -> object:
    """SQLAlchemy's Session gives a Connection, and that the driver's own; it is not imported."""
    if not any(base.__module__.startswith("sqlalchemy.") for base in type(connection).__mro__):
        return connection
    given: Any = connection
    # Of the pool's, which has no transaction but the driver's.
    if hasattr(given, "driver_connection"):
        return _opened(given.driver_connection)
    if not hasattr(given, "connection"):
        kind = type(connection).__name__
        reason = f"is SQLAlchemy's {kind}; give the Connection or Session that has the transaction"
        raise InvalidInput("connection", reason)
    if callable(given.connection):
        given = given.connection()
    _begin(given)
    return given.connection.driver_connection


def _opened(connection: object | None) -> object:
    if connection is None:
        raise InvalidInput("connection", "is closed; open another, and begin anew what was in it")
    return connection


def _begin(connection: Any) -> None:  # noqa: ANN401 - SQLAlchemy is not imported
    """Have SQLAlchemy know of the transaction, or it would not commit it."""
    if not connection.in_transaction():
        connection.exec_driver_sql("SELECT 1")
