"""What a handler does to its connection stays with its consumer, and reaches nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel
from holdfast.bus.handler import Handler
from tests.contract.bus.worlds import COMMANDS, World, message

# What outlives a transaction: names and roles of the session, its tables, other files.
SPOILS = {
    "postgresql": ("SET search_path TO elsewhere", "CREATE TEMP TABLE left_behind (x int)"),
    "sqlite": ("PRAGMA query_only = 1", "CREATE TEMP TABLE left_behind (x int)"),
}
LOOKS = {
    "postgresql": "SELECT current_setting('search_path') AS setting,"
    " to_regclass('pg_temp.left_behind')::text AS found",
    "sqlite": "SELECT (SELECT query_only FROM pragma_query_only),"
    " (SELECT name FROM temp.sqlite_schema)",
}


def _look(connection: Any, dialect: str) -> list[Any]:  # noqa: ANN401 - either's
    row = connection.execute(LOOKS[dialect]).fetchone()
    return list(row) if dialect == "sqlite" else list(row.values())


def _consume(world: World, name: str, handler: Handler) -> None:
    world.bus.publish_command(Channel.COMMANDS, message(name))
    consumer = Consumer(world.engine, world.bus, COMMANDS, [handler], ConsumerOptions(name="one"))
    consumer.drain()
    consumer.close()


@pytest.mark.parametrize("spoil", [0, 1])
def test_what_a_handler_set_on_its_connection_reaches_no_other_transaction(
    sql: World, spoil: int
) -> None:
    database = sql.engine.database
    dialect = database.dialect
    with database.connect().begin() as connection:
        before = _look(connection, dialect)
    seen: list[list[Any]] = []

    def set_up(_: Envelope, connection: Any) -> None:  # noqa: ANN401 - either's
        # At the end of its transaction, so that its own consumer can still note what it did.
        connection.execute(SPOILS[dialect][spoil])
        seen.append(_look(connection, dialect))

    _consume(sql, "m1", Handler(name="set_up", handle=set_up))
    assert seen
    assert seen != [before]
    others = [database.connect() for _ in range(5)]
    for other in others:
        with other.begin() as connection:
            assert _look(connection, dialect) == before
    sql.engine.database.dry_run(lambda tx: tx.run("enlist"))


def test_a_consumer_keeps_its_connection_from_turn_to_turn(sql: World) -> None:
    used: list[Any] = []
    handler = Handler(name="note", handle=lambda _, connection: used.append(connection))
    consumer = Consumer(sql.engine, sql.bus, COMMANDS, [handler], ConsumerOptions(name="one"))
    for name in ("m1", "m2", "m3"):
        sql.bus.publish_command(Channel.COMMANDS, message(name))
        consumer.drain()
        # Others that write between its turns take no connection away from it.
        with sql.engine.database.connect().begin() as connection:
            assert connection is not used[0]
    consumer.close()
    assert len(used) == 3
    assert used[0] is used[1] is used[2]
