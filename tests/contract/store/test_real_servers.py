"""The servers the other tests trust: they are real, recent enough, and empty when a test starts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from tests.chaos.stores import await_sessions
from tests.contract.raw_store import dump, raw
from tests.contract.task_states import create, finish
from tests.engines import opened
from tests.stores import KeptStores

END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


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


@pytest.fixture
def stores(postgres_server: str, postgres_template: str) -> Iterator[KeptStores]:
    with closing(KeptStores(postgres_server, postgres_template)) as stores:
        yield stores


def lend_again(stores: KeptStores, left: str) -> str:
    """The store that a test is lent when those of two before it have been given back."""
    with raw(left) as run:
        await_sessions(run)
    with stores.lend():
        pass
    with stores.lend() as url:
        return url


def test_a_store_that_was_used_is_lent_again_as_a_new_one(stores: KeptStores) -> None:
    with stores.lend() as url:
        new = dump(url)
        with opened(url) as engine:
            finish(engine, create(engine, "first", key="once"))
        with raw(url) as run:
            run("INSERT INTO holdfast_meta (name, value) VALUES ('more', 'of it')")
            run("DELETE FROM holdfast_migration WHERE number > 3")
    assert lend_again(stores, url) == url
    again = dump(url)
    assert again.pop("holdfast_meta") != new.pop("holdfast_meta"), "the secret is the old one"
    assert again == new
    with opened(url) as engine:
        create(engine, "first", key="once")
    assert [row["seq"] for row in dump(url)["holdfast_event"]] == [1]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE holdfast_task ADD COLUMN later text",
        "ALTER TABLE holdfast_task ALTER COLUMN title SET DEFAULT 'untitled'",
        "ALTER TABLE holdfast_task DISABLE TRIGGER holdfast_task_guard",
        "ANALYZE holdfast_migration",
        "CREATE SCHEMA theirs",
        "CREATE TABLE theirs (a integer)",
        "CREATE TYPE theirs AS ENUM ('a')",
        "DROP INDEX holdfast_task_key",
        "DROP TRIGGER holdfast_task_guard ON holdfast_task",
        "INSERT INTO holdfast_meta SELECT n, repeat('long', 500) FROM generate_series(1, 90) AS n",
        END_OTHERS,
    ],
)
def test_a_store_in_which_more_than_rows_was_changed_is_lent_to_nobody(
    stores: KeptStores, statement: str
) -> None:
    with stores.lend() as url, raw(url) as run:
        run(statement)
    assert lend_again(stores, url) != url


def test_a_store_that_has_settings_of_its_own_is_lent_to_nobody(stores: KeptStores) -> None:
    with stores.lend() as url, raw(url) as run:
        name = urlsplit(url).path.removeprefix("/")
        run(f"ALTER DATABASE {name} SET deadlock_timeout = '20ms'")
    assert lend_again(stores, url) != url


def test_a_store_that_somebody_has_not_left_is_lent_to_nobody(stores: KeptStores) -> None:
    with stores.lend() as url:
        pass
    with raw(url):
        with stores.lend():
            pass
        with stores.lend() as another:
            assert another != url
