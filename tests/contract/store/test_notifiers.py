"""Hints: heard within a process at once, and across processes soon."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from holdfast.randomness import SystemRandomness
from holdfast.settings import Settings
from holdfast.store.drivers import open_notifier
from holdfast.store.notifier import Notifier
from holdfast.store.notifiers.memory import MemoryNotifier
from holdfast.store.notifiers.postgresql import PostgresqlNotifier
from holdfast.threads import SystemThreads
from tests.contract.hint_listener import Ear
from tests.contract.store.small_store import opened, write_in_turns


@contextmanager
def notifying(url: str) -> Iterator[Notifier]:
    with opened(url) as database:
        notifier = open_notifier(
            url,
            database,
            randomness=SystemRandomness(),
            threads=SystemThreads(),
            settings=Settings(url=url),
        )
        with closing(notifier):
            yield notifier


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def notifier(request: pytest.FixtureRequest) -> Iterator[Notifier]:
    if request.param == "memory":
        yield MemoryNotifier(SystemThreads())
        return
    urls = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}
    with notifying(request.getfixturevalue(urls[request.param])) as notifier:
        yield notifier


def test_a_hint_reaches_every_subscriber_of_the_process_before_notify_returns(
    notifier: Notifier,
) -> None:
    first, second = Ear(), Ear()
    notifier.subscribe(first)
    notifier.subscribe(second)
    notifier.notify()
    assert (first.count, second.count) == (1, 1)


def test_an_unsubscribed_listener_hears_no_more_hints(notifier: Notifier) -> None:
    first, second = Ear(), Ear()
    unsubscribe = notifier.subscribe(first)
    notifier.subscribe(second)
    unsubscribe()
    unsubscribe()
    notifier.notify()
    assert (first.count, second.count) == (0, 1)


def test_a_listener_to_the_hints_of_others_hears_none_of_its_own(notifier: Notifier) -> None:
    others, all_of_them = Ear(), Ear()
    notifier.subscribe(others, own=False)
    notifier.subscribe(all_of_them)
    notifier.notify()
    assert (others.count, all_of_them.count) == (0, 1)


def test_a_subscriber_that_fails_does_not_keep_others_from_hearing(
    notifier: Notifier, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    ear = Ear()
    notifier.subscribe(fail)
    notifier.subscribe(ear)
    notifier.notify()
    assert ear.count == 1
    assert "ZeroDivisionError" in caplog.text


def test_a_subscriber_may_unsubscribe_while_it_is_called(notifier: Notifier) -> None:
    ear = Ear()
    unsubscribes: list[Callable[[], None]] = []

    def leave() -> None:
        unsubscribes.pop()()

    unsubscribes.append(notifier.subscribe(leave))
    notifier.subscribe(ear)
    notifier.notify()
    notifier.notify()
    assert ear.count == 2


def test_a_notifier_that_was_never_started_can_be_closed(bare_url: str) -> None:
    with notifying(bare_url):
        pass


def test_a_commit_of_another_process_is_heard_on_sqlite(sqlite_url: str) -> None:
    with notifying(sqlite_url) as notifier:
        ear, others = Ear(), Ear()
        notifier.subscribe(ear)
        notifier.subscribe(others, own=False)
        notifier.start()
        writer = multiprocessing.get_context("spawn").Process(
            target=write_in_turns, args=(sqlite_url, 1)
        )
        writer.start()
        assert ear.hears(1)
        assert others.hears(1)
        writer.join()
        notifier.close()
        heard = ear.count
        notifier.notify()
        assert ear.count == heard + 1


def test_a_notify_of_another_session_is_heard_on_postgresql(postgres_url: str) -> None:
    with notifying(postgres_url) as notifier:
        ear, others = Ear(), Ear()
        notifier.subscribe(ear)
        notifier.subscribe(others, own=False)
        notifier.start()
        # The first hint says that it listens now, and that something may have been missed.
        assert ear.hears(1)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("NOTIFY holdfast")
            assert ear.hears(2)
            other.execute("NOTIFY something_else")
            other.execute("NOTIFY holdfast")
            assert ear.hears(3)
        notifier.close()
        assert (ear.count, others.count) == (3, 3)


def test_a_listener_whose_session_was_ended_listens_again(postgres_url: str) -> None:
    with notifying(postgres_url) as notifier:
        ear = Ear()
        notifier.subscribe(ear)
        notifier.start()
        assert ear.hears(1)
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert ear.hears(2)
            admin.execute("NOTIFY holdfast")
            assert ear.hears(3)


def test_a_listener_without_a_server_keeps_trying_until_it_is_closed() -> None:
    url = "postgresql://me:hush@127.0.0.1:1/db"
    notifier = PostgresqlNotifier(url, SystemRandomness(), SystemThreads())
    notifier.start()
    notifier.close()
