"""The servers the other tests trust: they are real, recent enough, and empty when a test starts."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
import redis


def test_postgresql_is_a_real_and_supported_server(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT version()").fetchone()
        assert row is not None
        assert str(row[0]).startswith("PostgreSQL ")
        assert connection.info.server_version >= 14_00_00, row[0]


def test_a_postgresql_test_starts_from_an_empty_database(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert row.fetchone() == (0,)


def test_a_sqlite_test_starts_without_a_file(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    assert path.is_absolute()
    assert not path.exists()


def test_redis_is_a_real_server_with_streams_and_scripts(redis_url: str) -> None:
    stream = f"test:{uuid.uuid4()}"
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        version = client.info("server")["redis_version"]
        assert tuple(int(part) for part in version.split(".")[:2]) >= (6, 2), version
        client.xadd(stream, {"answer": "42"})
        assert client.eval("return redis.call('XLEN', KEYS[1])", 1, stream) == 1
        client.delete(stream)
