"""What a bus does, by hand: bare Redis in batches, and bare SQL with a claim beside each effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import psycopg

from holdfast.store.database import sqlite_path

BATCH = 200


def by_hand_in_redis(client: Any, count: int) -> None:  # noqa: ANN401 - the client's own types
    for _ in range(0, count, BATCH):
        pipeline = client.pipeline(transaction=False)
        for _ in range(BATCH):
            pipeline.xadd("by-hand", {"envelope": "x" * 500})
        pipeline.execute()
    client.xgroup_create("by-hand", "group", "0")
    while entries := _read(client):
        client.xack("by-hand", "group", *entries)
    client.delete("by-hand")


def _read(client: Any) -> list[bytes]:  # noqa: ANN401 - the client's own types
    answer = client.execute_command(
        "XREADGROUP", "GROUP", "group", "me", "COUNT", BATCH, "STREAMS", "by-hand", ">"
    )
    streams = answer.values() if isinstance(answer, dict) else [each[1] for each in answer or ()]
    return [entry[0] for stream in streams for entry in stream]


@contextmanager
def bare(url: str) -> Iterator[Any]:
    """A connection without Holdfast, as durable as the store."""
    if not url.startswith("sqlite"):
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as server:
            yield server
        return
    connection = apsw.Connection(str(sqlite_path(url)))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    yield connection
    connection.close()


def by_hand_in_sql(url: str, count: int) -> None:
    mark = "?" if url.startswith("sqlite") else "%s"
    claim = f"INSERT INTO done VALUES ({mark}) ON CONFLICT DO NOTHING"  # noqa: S608 - a mark
    effect = f"INSERT INTO effect VALUES ({mark})"  # noqa: S608 - a mark
    with bare(url) as connection:
        connection.execute("CREATE TABLE done (message text PRIMARY KEY)")
        for begun in range(0, count, BATCH):
            connection.execute("BEGIN")
            for number in range(begun, begun + BATCH):
                connection.execute(claim, (str(number),))
                connection.execute(effect, (str(number),))
            connection.execute("COMMIT")
