"""A process has a bounded number of connections, who waits has its turn, a full server is told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine
from holdfast.errors import StoreUnreachable, WrongThread
from holdfast.settings import Settings
from tests import servers

MANY = 12
# The writer's and a view's, and two that others take.
PLACES = 4
PATIENCE = 20.0


def test_more_transactions_than_connections_are_written_one_after_the_other(
    store_url: str,
) -> None:
    with Holdfast(store_url, connections=4) as hf:

        @hf.task
        def job() -> None: ...

        under_way, most = list[int](), 0

        def write() -> None:
            nonlocal most
            with hf.transaction() as connection:
                under_way.append(1)
                most = max(most, len(under_way))
                job.enqueue(connection=connection)
                # Who has a transaction open may look at the store, though nobody else can write.
                assert hf.tasks.list() is not None
                under_way.pop()

        threads = [threading.Thread(target=write) for _ in range(MANY)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE)
        assert most == 1
        assert len(list(hf.tasks.list())) == MANY


def test_a_thread_with_a_transaction_open_is_refused_a_second_one_where_none_is_free(
    store_url: str,
) -> None:
    with Holdfast(store_url, connections=4) as hf:
        with (
            hf.transaction(),
            pytest.raises(WrongThread, match="use its connection for both"),
            hf.transaction(),
        ):
            pass
        with hf.transaction():
            pass


def test_threads_that_each_hold_a_transaction_do_not_wait_for_each_other(postgres_url: str) -> None:
    with Holdfast(postgres_url, connections=8) as hf:
        all_hold, refused = threading.Barrier(3), list[WrongThread]()

        def hold_one_and_ask_for_another() -> None:
            with hf.transaction():
                all_hold.wait(PATIENCE)
                try:
                    with hf.transaction():
                        pass
                except WrongThread as error:
                    refused.append(error)
                # Nobody gives one back before all are answered.
                all_hold.wait(PATIENCE)

        threads = [threading.Thread(target=hold_one_and_ask_for_another) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(2 * PATIENCE)
        assert len(refused) == 3


def test_a_thread_with_a_transaction_open_gets_a_second_one_while_one_is_free(
    postgres_url: str,
) -> None:
    with (
        Holdfast(postgres_url, connections=8) as hf,
        hf.transaction() as first,
        hf.transaction() as second,
    ):
        assert second is not first


@pytest.fixture
def small_server() -> Iterator[str]:
    full = {"max_connections": str(PLACES), "superuser_reserved_connections": "0"}
    with servers.postgres(**full, reserved_connections="0", max_wal_senders="0") as url:
        yield url


def test_a_server_that_takes_no_more_clients_is_told_with_what_to_set(
    small_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    with servers.database(small_server) as url:
        engine = Engine(url, settings=Settings(url=url, patience=0.5))
        try:
            others = [psycopg.connect(small_server) for _ in range(PLACES - 2)]
            with (
                caplog.at_level(logging.WARNING),
                pytest.raises(StoreUnreachable, match=r"max_connections.*`connections`"),
                engine.transaction(),
            ):
                pass
            for each in others:
                each.close()
            assert any("max_connections" in line for line in caplog.messages)
            with engine.transaction():
                pass
        finally:
            engine.close()
