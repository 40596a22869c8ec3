"""An enqueue whose only answer was lost: its statements and its COMMIT were sent together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import psycopg
import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import KeyConflict, UnknownOutcome
from holdfast.model.task import NewTask
from holdfast.settings import Settings
from holdfast.store.connection_pool import PoolSizes
from holdfast.store.database import Transaction
from holdfast.store.postgresql.commit_outcome import mark_session, was_committed_in
from holdfast.store.postgresql.connection import ServerAddress
from holdfast.store.postgresql.session import PostgresqlSession
from holdfast.store.sql_text.transitions import CommitProof
from tests.contract.postgresql_proxy import Cut, Proxy, proxied

PATIENCE = 20.0
WAITING = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
"""


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with proxied(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def engine(proxy: Proxy) -> Iterator[Engine]:
    with closing(Engine(proxy.url)) as engine:
        engine.commits.start()
        # What is prepared once is not in the way of the next cut.
        engine.tasks.create(NewTask(title="first", key="first"))
        yield engine


@pytest.mark.parametrize("cut", Cut)
@pytest.mark.parametrize("key", [None, "mine"])
def test_an_enqueue_that_was_cut_off_is_there_once(
    engine: Engine, proxy: Proxy, cut: Cut, key: str | None
) -> None:
    proxy.cut(cut)
    made = engine.tasks.create(NewTask(title="job", key=key))
    assert proxy.cuts == 1
    assert made.created
    assert [task.id for task in engine.tasks.list() if task.title == "job"] == [made.id]
    assert [event.type for event in engine.tasks.events(made.id)] == ["task.created"]


@pytest.mark.parametrize("cut", Cut)
def test_an_enqueue_that_was_cut_off_is_told_who_holds_its_key(
    engine: Engine, proxy: Proxy, cut: Cut
) -> None:
    known = engine.tasks.create(NewTask(title="job", key="mine", payload=1))
    proxy.cut(cut)
    again = engine.tasks.create(NewTask(title="job", key="mine", payload=1))
    assert (again.id, again.created) == (known.id, False)
    proxy.cut(cut)
    with pytest.raises(KeyConflict) as refusal:
        engine.tasks.create(NewTask(title="job", key="mine", payload=2))
    assert known.id in str(refusal.value)
    assert proxy.cuts == 2
    assert len(engine.tasks.list()) == 2


def test_an_enqueue_whose_key_cannot_be_read_again_costs_the_others_of_its_group_nothing(
    proxy: Proxy,
) -> None:
    """The commit is known, and every connection that could read the key's holder is taken."""
    settings = Settings(url=proxy.url, patience=0.5, connections=4)
    with closing(Engine(proxy.url, settings=settings)) as engine, ExitStack() as stack:
        engine.tasks.create.submit(NewTask(title="first", key="first"))
        engine.commits.step()
        views = PoolSizes.of(settings.connections).views
        for _ in range(views):
            stack.enter_context(viewing(engine))
        commits: list[None] = []
        engine.on_commit(lambda: commits.append(None))
        keyed = engine.tasks.create.submit(NewTask(title="keyed", key="mine"))
        plain = engine.tasks.create.submit(NewTask(title="plain"))
        proxy.cut(Cut.AFTER_THE_SERVER_GOT_IT)
        engine.commits.step()
        assert proxy.cuts == 1
        assert plain.result().created
        with pytest.raises(UnknownOutcome, match="it was committed"):
            keyed.result()
        assert commits == [None]
        stack.close()
        titles = [task.title for task in engine.tasks.list()]
        assert sorted(titles) == ["first", "keyed", "plain"]


@contextmanager
def viewing(engine: Engine) -> Iterator[None]:
    """A view that stays open."""
    opened, over = threading.Event(), threading.Event()

    def stay(_: Transaction) -> None:
        opened.set()
        assert over.wait(PATIENCE)

    thread = threading.Thread(target=engine.database.view, args=(stay,))
    thread.start()
    try:
        assert opened.wait(PATIENCE)
        yield
    finally:
        over.set()
        thread.join()


def test_an_enqueue_that_still_waits_on_the_server_is_ended_and_written_again(
    engine: Engine, proxy: Proxy, postgres_url: str
) -> None:
    """Its session is told by its process id and beginning: nobody knows its transaction's id."""
    with (
        psycopg.connect(postgres_url) as holder,
        psycopg.connect(postgres_url, autocommit=True) as watch,
    ):
        # A row of the same key that is not committed: the enqueue waits for it.
        holder.execute("UPDATE holdfast_task SET key = 'mine' WHERE key = 'first'")
        proxy.cut(Cut.AFTER_THE_SERVER_GOT_IT)
        done = threading.Event()
        made: list[bool] = []

        def create() -> None:
            made.append(engine.tasks.create(NewTask(title="job", key="mine")).created)
            done.set()

        thread = threading.Thread(target=create)
        thread.start()
        while not watch.execute(WAITING).fetchall():
            assert not done.is_set()
        holder.rollback()
        assert done.wait(PATIENCE)
        thread.join()
    assert made == [True]
    assert [task.title for task in engine.tasks.list() if task.key == "mine"] == ["job"]


def test_the_outcome_in_a_lost_session_is_not_told_before_the_session_has_ended(
    engine: Engine, postgres_url: str
) -> None:
    made = engine.tasks.create(NewTask(title="job"))
    there = CommitProof(entity=made.id, version=1)
    gone = CommitProof(entity="t_" + "7" * 20, version=1)
    with closing(PostgresqlSession(ServerAddress(postgres_url).connect())) as asking:
        lost = PostgresqlSession(ServerAddress(postgres_url).connect())
        identity = mark_session(lost)
        assert was_committed_in(asking, identity, [there]) is None
        while (told := was_committed_in(asking, identity, [gone, there])) is None:
            pass
        assert told is True
        assert was_committed_in(asking, identity, [gone]) is False
        lost.close()


def test_a_session_that_a_pooler_has_given_to_another_client_is_not_ended(
    engine: Engine, postgres_url: str
) -> None:
    made = engine.tasks.create(NewTask(title="job"))
    there = CommitProof(entity=made.id, version=1)
    with (
        closing(PostgresqlSession(ServerAddress(postgres_url).connect())) as asking,
        closing(PostgresqlSession(ServerAddress(postgres_url).connect())) as pooled,
    ):
        lost = mark_session(pooled)
        # It may be the session that the pooler gives to the client that asks.
        assert was_committed_in(pooled, lost, [there]) is True
        # What a pooler does before it gives a session to another client.
        pooled.execute("DISCARD ALL")
        pooled.end_reading()
        pooled.execute("BEGIN")
        pooled.execute("SELECT 'of the other client'").rows()
        assert was_committed_in(asking, lost, [there]) is True
        pooled.commit()
