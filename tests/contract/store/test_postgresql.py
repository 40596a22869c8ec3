"""What PostgreSQL and the network do to a transaction, forced for real."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from holdfast.clock import ManualClock, SystemClock
from holdfast.errors import StoreError, StoreUnreachable, UnknownOutcome
from holdfast.store.database import Database, Transaction
from holdfast.store.postgresql.commit_outcome import was_committed
from holdfast.store.postgresql.connection import ServerAddress
from holdfast.store.postgresql.database import PostgresqlDatabase
from holdfast.store.postgresql.session import PostgresqlSession
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.store.sql_text.transitions import CommitProof
from tests.contract.postgresql_proxy import Cut, Proxy, proxied
from tests.contract.store.small_store import add, events, notes, opened, tasks

Admin = psycopg.Connection[tuple[object, ...]]

OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'holdfast'
"""


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    with opened(postgres_url) as database:
        yield database


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Admin]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with proxied(postgres_url) as proxy:
        yield proxy


def test_a_deadlock_is_tried_again_and_both_sides_are_written(
    admin: Admin, database: Database, postgres_url: str
) -> None:
    # Sooner than its writer gives up waiting for a row; it has to connect anew to hear of it.
    admin.execute(
        SQL("ALTER DATABASE {} SET deadlock_timeout = '20ms'").format(Identifier(admin.info.dbname))
    )
    admin.execute(OTHERS)
    add(database, ("t_1", "one"), ("t_2", "two"))
    tries: list[int] = []
    has_second, has_first = threading.Event(), threading.Event()

    def rival() -> None:
        with psycopg.connect(postgres_url) as other:
            # Never the one to notice: the victim has to be the database that is tested.
            other.execute("SET deadlock_timeout = '60s'")
            other.execute("UPDATE holdfast_task SET title = title || '!' WHERE id = 't_2'")
            has_second.set()
            assert has_first.wait(20)
            other.execute("UPDATE holdfast_task SET title = title || '!' WHERE id = 't_1'")

    def work(transaction: Transaction) -> None:
        if tries:
            # The rival takes what was given up, and would else be raced for it.
            thread.join(20)
        tries.append(1)
        transaction.change("rename_tasks", rows=[("t_1", "uno")])
        has_first.set()
        transaction.change("rename_tasks", rows=[("t_2", "due")])

    thread = threading.Thread(target=rival)
    thread.start()
    assert has_second.wait(20)
    database.transact(work)
    thread.join(20)
    assert len(tries) == 2
    assert tasks(database) == {"t_1": "uno", "t_2": "due"}
    assert len(events(database)) == 4


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_transaction_the_server_gave_up_is_run_again_from_its_start(
    database: Database, code: str
) -> None:
    tries: list[int] = []

    def work(transaction: Transaction) -> str:
        transaction.change("add_tasks", rows=[("t_1", "one")])
        tries.append(1)
        if len(tries) < 3:
            transaction.read("fail", code=code)
        return "done"

    assert database.transact(work) == "done"
    assert len(tries) == 3
    assert len(events(database)) == 1


def test_giving_up_comes_to_an_end(postgres_url: str) -> None:
    with opened(postgres_url, clock=ManualClock(), patience=2) as database:
        with pytest.raises(StoreError, match="on request"):
            database.transact(lambda t: t.read("fail", code="40001"))
        add(database, ("t_1", "one"))


def test_any_other_error_is_not_tried_again(database: Database) -> None:
    tries: list[int] = []

    def work(transaction: Transaction) -> None:
        tries.append(1)
        transaction.read("fail", code="P0001")

    with pytest.raises(StoreError, match="on request"):
        database.transact(work)
    assert len(tries) == 1


def test_a_session_that_was_ended_is_replaced_and_its_transaction_run_again(
    database: Database, admin: Admin
) -> None:
    add(database, ("t_1", "one"))
    admin.execute(OTHERS)
    add(database, ("t_2", "two"))
    tries: list[int] = []

    def work(transaction: Transaction) -> None:
        tries.append(1)
        transaction.change("add_tasks", rows=[("t_3", "three")])
        if len(tries) == 1:
            admin.execute(OTHERS)
        transaction.read("tasks")

    database.transact(work)
    assert len(tries) == 2
    assert len(tasks(database)) == len(events(database)) == 3


def test_a_view_whose_session_was_ended_looks_again(database: Database, admin: Admin) -> None:
    add(database, ("t_1", "one"))
    assert len(tasks(database)) == 1
    admin.execute(OTHERS)
    assert len(tasks(database)) == 1


def test_a_lost_session_costs_one_wait_though_all_idle_sessions_are_lost(
    postgres_url: str, admin: Admin
) -> None:
    class Counting(SystemClock):
        waits = 0

        def sleep(self, seconds: float) -> None:
            self.waits += 1
            super().sleep(seconds)

    clock = Counting()
    with opened(postgres_url, clock=clock) as database:

        def nest(depth: int) -> int:
            return depth and database.view(lambda _: nest(depth - 1))

        nest(3)
        admin.execute(OTHERS)
        assert tasks(database) == {}
    assert clock.waits == 1


@pytest.mark.parametrize("cut", Cut)
def test_a_transaction_whose_commit_was_cut_off_is_written_exactly_once(
    proxy: Proxy, cut: Cut
) -> None:
    tries: list[int] = []

    def work(transaction: Transaction) -> str:
        tries.append(1)
        transaction.change("add_tasks", rows=[("t_1", "one")])
        if len(tries) == 1:
            proxy.cut(cut)
        return f"try {len(tries)}"

    with opened(proxy.url) as database:
        answer = database.transact(work)
        assert tasks(database) == {"t_1": "one"}
        assert len(events(database)) == 1
    assert proxy.cuts == 1
    assert answer == f"try {len(tries)}"
    expected = {
        Cut.BEFORE_THE_SERVER_GOT_IT: {2},
        Cut.AFTER_THE_SERVER_GOT_IT: {1, 2},
        Cut.AFTER_THE_SERVER_ANSWERED: {1},
    }
    assert len(tries) in expected[cut]


def only_notes(transaction: Transaction) -> None:
    transaction.run("add_note", text="once")
    transaction.read("notes")
    transaction.run("add_note", text="twice")


def a_note_behind_statements_that_wrote_nothing(transaction: Transaction) -> None:
    transaction.change("rename_tasks", rows=[("t_9", "nobody")])
    transaction.run("forget_note", text="never written")
    transaction.read("add_and_read_note", text="once")
    transaction.read("add_and_read_note", text="twice")


@pytest.mark.parametrize("work", [only_notes, a_note_behind_statements_that_wrote_nothing])
@pytest.mark.parametrize("cut", [Cut.BEFORE_THE_SERVER_GOT_IT, Cut.AFTER_THE_SERVER_ANSWERED])
def test_a_lost_commit_without_events_is_written_exactly_once(
    proxy: Proxy, cut: Cut, work: Callable[[Transaction], None]
) -> None:
    tries: list[int] = []

    def attempt(transaction: Transaction) -> None:
        tries.append(1)
        work(transaction)
        if len(tries) == 1:
            # The last that a transaction asks before its COMMIT is what number it has.
            assert isinstance(transaction, PostgresqlTransaction)
            assert transaction.xid() is not None
            proxy.cut(cut)

    with opened(proxy.url) as database:
        database.transact(attempt)
        assert notes(database) == ["once", "twice"]
    assert len(tries) == (2 if cut is Cut.BEFORE_THE_SERVER_GOT_IT else 1)


def test_a_commit_still_under_way_on_the_server_is_ended_and_tried_again(
    proxy: Proxy, admin: Admin
) -> None:
    admin.execute("SELECT pg_advisory_lock(1)")
    tries: list[int] = []

    def work(transaction: Transaction) -> None:
        tries.append(1)
        title = "slow" if len(tries) == 1 else "quick"
        transaction.change("add_tasks", rows=[("t_1", title)])
        if len(tries) == 1:
            proxy.cut(Cut.AFTER_THE_SERVER_GOT_IT)

    with opened(proxy.url) as database:
        database.transact(work)
        assert tasks(database) == {"t_1": "quick"}
        assert len(events(database)) == 1
    assert len(tries) == 2


def test_a_transaction_is_known_by_its_events_where_another_has_its_number(
    postgres_url: str, database: Database
) -> None:
    """A standby that takes over hands out numbers that its predecessor had handed out already."""
    [there] = add(database, ("t_1", "one"))
    mark = CommitProof.of(there)
    session = PostgresqlSession(ServerAddress(postgres_url).connect())
    _, [(committed,)] = session.execute("SELECT CAST(xmin AS text) FROM holdfast_task").rows()
    future = str(int(committed) + 1_000_000)
    assert was_committed(session, committed) is True
    assert was_committed(session, committed, [mark]) is True
    assert was_committed(session, committed, [replace(mark, version=2)]) is False
    assert was_committed(session, future, [mark]) is False
    session.close()


def test_an_outcome_that_nobody_can_tell_is_said_to_be_unknown(
    proxy: Proxy, postgres_url: str
) -> None:
    tries: list[int] = []

    def work(transaction: Transaction) -> None:
        tries.append(1)
        transaction.change("add_tasks", rows=[("t_1", "one")])
        proxy.cut(Cut.AFTER_THE_SERVER_ANSWERED, then_refuse=True)

    with opened(proxy.url, patience=0.3) as database:
        with pytest.raises(UnknownOutcome, match="COMMIT"):
            database.transact(work)
        proxy.admit()
        add(database, ("t_2", "two"))
    assert len(tries) == 1
    with opened(postgres_url) as database:
        assert list(tasks(database)) == ["t_1", "t_2"]


def test_a_server_that_stays_away_is_unreachable_and_welcome_back(proxy: Proxy) -> None:
    with opened(proxy.url, patience=0.3) as database:
        tries: list[int] = []

        def work(transaction: Transaction) -> None:
            tries.append(1)
            proxy.cut(Cut.BEFORE_THE_SERVER_GOT_IT, then_refuse=True)
            transaction.change("add_tasks", rows=[("t_1", "one")])

        with pytest.raises(StoreUnreachable, match="does not answer"):
            database.transact(work)
        assert len(tries) == 1
        with pytest.raises(StoreUnreachable):
            tasks(database)
        proxy.admit()
        add(database, ("t_2", "two"))
        assert list(tasks(database)) == ["t_2"]


def test_a_server_that_comes_back_in_time_is_waited_for(proxy: Proxy) -> None:
    class Janitor(SystemClock):
        """Opens the door when someone has waited for it a while."""

        waits = 0

        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            self.waits += 1
            if self.waits == 3:
                proxy.admit()

    clock = Janitor()
    with opened(proxy.url, clock=clock) as database:
        proxy.cut(Cut.BEFORE_THE_SERVER_GOT_IT, then_refuse=True)
        add(database, ("t_1", "one"))
        assert tasks(database) == {"t_1": "one"}
    assert clock.waits >= 3


def test_opening_fails_at_once_without_the_password() -> None:
    clock = ManualClock()
    url = "postgresql://me:hush@127.0.0.1:1/db"
    with pytest.raises(StoreUnreachable) as refusal, opened(url, clock=clock):
        pass
    assert "hush" not in str(refusal.value)
    assert clock.monotonic() == 0


@pytest.fixture
def writer(database: Database) -> PostgresqlSession:
    assert isinstance(database, PostgresqlDatabase)
    return database._connected_writer()  # noqa: SLF001


def test_the_writers_durability_is_the_servers_own(writer: PostgresqlSession, admin: Admin) -> None:
    [[server]] = admin.execute("SHOW synchronous_commit").fetchall()
    assert writer.execute("SHOW synchronous_commit").rows()[1] == [(server,)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("plan_cache_mode", "force_generic_plan"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("application_name", "holdfast"),
    ],
)
def test_the_writer_plans_for_indexes_and_never_sits_on_its_locks(
    writer: PostgresqlSession, name: str, value: str
) -> None:
    assert writer.execute(f"SHOW {name}").rows()[1] == [(value,)]


def test_a_query_is_prepared_once_whatever_the_size_of_its_numbers(
    database: Database, writer: PostgresqlSession
) -> None:
    def work(transaction: Transaction) -> None:
        for number in (1, 70_000, -1):
            transaction.read("number", number=number)

    database.transact(work)
    _, found = writer.execute("SELECT statement FROM pg_prepared_statements").rows()
    assert len([text for (text,) in found if "AS number" in text]) == 1


def test_a_table_that_is_changed_under_a_live_process_fails_nothing(
    database: Database, admin: Admin
) -> None:
    add(database, ("t_1", "one"))
    everything = "SELECT * FROM holdfast_task"

    def work(transaction: Transaction) -> int:
        assert isinstance(transaction, PostgresqlTransaction)
        return len(transaction._session.execute(everything).rows()[1])  # noqa: SLF001

    for ask in (database.view, database.transact):
        assert ask(work) == 1
    admin.execute("ALTER TABLE holdfast_task ADD COLUMN later text")
    for ask in (database.view, database.transact):
        assert ask(work) == 1
