"""Enqueue in the application's own transaction: it is there exactly when that commits."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.orm import Session

from holdfast import Holdfast, InvalidInput, KeyConflict, NotFound, TaskFunction
from holdfast.clock import ManualClock
from holdfast.engine.engine import engine_of
from holdfast.errors import StoreUnreachable, WrongThread
from holdfast.model.task import NewTask
from tests.engines import opened

PATIENCE = 30
Ship = TaskFunction[[int], int, int]


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url) as opened:
        yield opened
        diagnosis = opened.doctor()
        assert diagnosis.ok, str(diagnosis)


class Oops(Exception):
    pass


def orders(connection: apsw.Connection | psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS orders (id integer)")
    connection.execute("INSERT INTO orders VALUES (7)")


def test_work_enqueued_in_a_transaction_appears_with_its_commit_and_wakes_a_worker(
    hf: Holdfast,
) -> None:
    done = threading.Event()

    @hf.task
    def ship(order: int) -> int:
        done.set()
        return order

    flow = hf.workflow("flow")

    @flow.step
    def first(order: int) -> int:
        return order

    with hf.worker():
        with hf.transaction() as connection:
            orders(connection)
            job = ship.enqueue(7, connection=connection)
            run = flow.start(order=8, connection=connection)
            assert not done.is_set()
            for each in (job, run):
                with pytest.raises(NotFound):
                    each.result(PATIENCE)
        assert done.wait(PATIENCE)
        assert (job.result(PATIENCE), run.result(PATIENCE)) == (7, 8)


def test_work_enqueued_in_a_transaction_is_gone_when_it_is_rolled_back(hf: Holdfast) -> None:
    @hf.task
    def ship(order: int) -> int:
        return order

    def give_up() -> None:
        with hf.transaction() as connection:
            orders(connection)
            ship.enqueue(7, key="order-7", connection=connection)
            raise Oops

    with pytest.raises(Oops):
        give_up()
    again = ship.enqueue(7, key="order-7")
    assert again.created


def test_a_key_is_taken_once_inside_and_outside_of_transactions(hf: Holdfast) -> None:
    @hf.task
    def ship(order: int) -> int:
        return order

    before = ship.enqueue(7, key="order-7")
    with hf.transaction() as connection:
        inside = ship.enqueue(7, key="order-7", connection=connection)
        with pytest.raises(KeyConflict):
            ship.enqueue(8, key="order-7", connection=connection)
        other = ship.enqueue(9, key="order-9", connection=connection)
    assert (inside.id, inside.created) == (before.id, False)
    assert ship.enqueue(9, key="order-9").id == other.id


def test_many_calls_go_into_one_transaction(hf: Holdfast) -> None:
    @hf.task
    def ship(order: int) -> int:
        return order

    with hf.transaction() as connection:
        jobs = ship.enqueue_many([{"order": number} for number in range(5)], connection=connection)
    with hf.worker():
        assert [job.result(PATIENCE) for job in jobs] == list(range(5))


def test_a_connection_of_the_standard_library_is_refused_with_the_reason(
    tmp_path: Path, sqlite_url: str
) -> None:
    with Holdfast(sqlite_url) as hf, closing(sqlite3.connect(tmp_path / "other.db")) as other:

        @hf.task
        def ship() -> None: ...

        with pytest.raises(InvalidInput, match="two SQLite libraries on one file"):
            ship.enqueue(connection=other)


def test_a_transaction_that_has_ended_is_refused(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:

        @hf.task
        def ship() -> None: ...

        with hf.transaction() as connection:
            pass
        with pytest.raises(InvalidInput, match="must come from hf"):
            ship.enqueue(connection=connection)


class TestPsycopg:
    """The application's own psycopg connection, with its own settings."""

    @pytest.fixture
    def app(self, postgres_url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(postgres_url) as connection:
            yield connection

    @pytest.fixture
    def hf(self, postgres_url: str) -> Iterator[Holdfast]:
        with Holdfast(postgres_url) as opened:
            yield opened
            assert opened.doctor().ok

    def test_an_ordinary_connection_carries_it(
        self, hf: Holdfast, app: psycopg.Connection[tuple[Any, ...]]
    ) -> None:
        @hf.task
        def ship(order: int) -> int:
            return order

        with hf.worker():
            orders(app)
            job = ship.enqueue(7, connection=app)
            assert app.execute("SELECT count(*) FROM orders").fetchone() == (1,)
            app.commit()
            assert job.result(PATIENCE) == 7

    def test_a_second_enqueue_of_a_key_waits_for_the_transaction_and_gets_its_task(
        self, hf: Holdfast, app: psycopg.Connection[tuple[Any, ...]]
    ) -> None:
        @hf.task
        def ship(order: int) -> int:
            return order

        mine = ship.enqueue(7, key="order-7", connection=app)
        theirs = ship.enqueue.submit(7, key="order-7")
        app.commit()
        assert theirs.result(PATIENCE).id == mine.id

    def test_an_autocommit_connection_without_a_transaction_is_refused(
        self, hf: Holdfast, app: psycopg.Connection[tuple[Any, ...]]
    ) -> None:
        @hf.task
        def ship() -> None: ...

        app.autocommit = True
        with pytest.raises(InvalidInput, match="begin one"):
            ship.enqueue(connection=app)
        with app.transaction():
            ship.enqueue(connection=app)
        with pytest.raises(InvalidInput, match="must be psycopg's"):
            ship.enqueue(connection=object())

    def test_a_connection_that_can_carry_nothing_is_refused_with_what_it_is(
        self, hf: Holdfast, postgres_url: str
    ) -> None:
        @hf.task
        def ship() -> None: ...

        reasons = {
            "is in a read-only transaction": "SET TRANSACTION READ ONLY",
            "is in a failed transaction": "no SQL at all",
            "is closed; open another": "SELECT pg_terminate_backend(pg_backend_pid())",
        }
        for reason, said in reasons.items():
            with psycopg.connect(postgres_url) as app:
                with suppress(psycopg.Error):
                    app.execute(said.encode())
                with pytest.raises(InvalidInput, match=f"^connection: {reason}"):
                    ship.enqueue(connection=app)

    def test_a_connection_to_another_store_is_refused(
        self, hf: Holdfast, postgres_server: str
    ) -> None:
        @hf.task
        def ship() -> None: ...

        with (
            psycopg.connect(postgres_server) as other,
            pytest.raises(InvalidInput, match="without a Holdfast store"),
        ):
            ship.enqueue(connection=other)

    def test_a_search_path_that_does_not_lead_to_the_store_is_named(
        self, hf: Holdfast, app: psycopg.Connection[tuple[Any, ...]]
    ) -> None:
        @hf.task
        def ship() -> None: ...

        assert hf.tasks.list() == []
        app.execute("CREATE SCHEMA shop")
        app.execute("SET search_path TO shop")
        with pytest.raises(InvalidInput, match=r"search_path shop, .* store in public; add that"):
            ship.enqueue(connection=app)
        app.execute("SET search_path TO shop, public")
        ship.enqueue(connection=app)

    @pytest.mark.parametrize("kind", [psycopg.ClientCursor, psycopg.RawCursor])
    def test_cursors_of_every_kind_carry_an_enqueue(
        self, hf: Holdfast, postgres_url: str, kind: type[psycopg.Cursor[Any]]
    ) -> None:
        @hf.task
        def ship(order: int) -> int:
            return order

        with psycopg.connect(postgres_url, cursor_factory=kind) as app:
            jobs = [ship.enqueue(number, key=f"{number}", connection=app) for number in range(9)]
            prepared = app.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        assert {task.id for task in hf.tasks.list()} == {job.id for job in jobs}
        assert (prepared == (0,)) is (kind is psycopg.ClientCursor)

    def test_text_that_the_encoding_of_the_connection_lacks_is_refused_and_leaves_nothing(
        self, hf: Holdfast, postgres_url: str
    ) -> None:
        @hf.task
        def ship(price: str) -> str:
            return price

        def sell_and_tell(app: psycopg.Connection[Any], job: str) -> None:
            with engine_of(hf).join_group(app) as joined:
                joined.tasks.edit.submit(job, {"title": "sold"})
                joined.tasks.create.submit(NewTask(title="5 €"))

        refused = "client_encoding LATIN1, which lacks '€'; use"
        with psycopg.connect(postgres_url, client_encoding="latin1") as app:
            job = ship.enqueue("5 £", connection=app)
            with pytest.raises(InvalidInput, match=refused):
                ship.enqueue("5 €", connection=app)
            with pytest.raises(InvalidInput, match=refused):
                sell_and_tell(app, job.id)
        assert [task.id for task in hf.tasks.list()] == [job.id]
        left = hf.tasks.get(job.id)
        assert (left.title, left.payload) == ("ship", {"price": "5 £"})
        with psycopg.connect(postgres_url, client_encoding="sql_ascii") as app:
            refused = "client_encoding SQL_ASCII, in which text is only bytes; use UTF8"
            with pytest.raises(InvalidInput, match=refused):
                ship.enqueue("5", connection=app)


class TestSqlAlchemy:
    """The application's Connection or Session on `postgresql+psycopg`, as SQLAlchemy gives it."""

    @pytest.fixture
    def app(self, postgres_url: str) -> Iterator[Engine]:
        app = create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://"))
        yield app
        app.dispose()

    @pytest.fixture
    def hf(self, postgres_url: str) -> Iterator[Holdfast]:
        # It would look only once a minute: what comes sooner has woken it.
        with Holdfast(postgres_url, poll=60) as opened:
            yield opened
            assert opened.doctor().ok

    @pytest.fixture
    def ship(self, hf: Holdfast) -> Ship:
        @hf.task
        def ship(order: int) -> int:
            return order

        return ship

    @pytest.mark.parametrize("kind", [Connection, Session, type("Ours", (Session,), {})])
    def test_work_enqueued_over_sqlalchemy_appears_with_the_commit_and_wakes_a_worker(
        self, hf: Holdfast, app: Engine, ship: Ship, kind: type[Connection | Session]
    ) -> None:
        flow = hf.workflow("flow")

        @flow.step
        def first(order: int) -> int:
            return order

        with hf.worker(), kind(app) as connection:
            connection.execute(text("CREATE TABLE orders (id integer)"))
            job = ship.enqueue(7, connection=connection)
            run = flow.start(order=8, connection=connection)
            assert (hf.tasks.list(), hf.runs.list()) == ([], [])
            connection.commit()
            assert (job.result(PATIENCE), run.result(PATIENCE)) == (7, 8)

    @pytest.mark.parametrize("kind", [Connection, Session])
    def test_work_enqueued_over_sqlalchemy_is_gone_with_the_rollback(
        self, hf: Holdfast, app: Engine, ship: Ship, kind: type[Connection | Session]
    ) -> None:
        with kind(app) as connection:
            ship.enqueue(7, key="order-7", connection=connection)
            connection.rollback()
        with kind(app) as connection:
            ship.enqueue(7, key="order-7", connection=connection)
        assert hf.tasks.list() == []
        with kind(app) as connection, connection.begin():
            assert ship.enqueue(7, key="order-7", connection=connection).created

    @pytest.mark.parametrize("kind", [Connection, Session])
    def test_a_transaction_that_begins_with_the_enqueue_is_one_that_sqlalchemy_commits(
        self, hf: Holdfast, app: Engine, ship: Ship, kind: type[Connection | Session]
    ) -> None:
        with kind(app) as connection:
            job = ship.enqueue(7, connection=connection)
            connection.commit()
        assert [task.id for task in hf.tasks.list()] == [job.id]

    def test_an_autocommit_connection_is_refused(self, hf: Holdfast, app: Engine) -> None:
        @hf.task
        def ship() -> None: ...

        with (
            app.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
            pytest.raises(InvalidInput, match="autocommit mode"),
        ):
            ship.enqueue(connection=connection)
        assert hf.tasks.list() == []

    def test_a_connection_of_its_pool_carries_it_too(
        self, hf: Holdfast, app: Engine, ship: Ship
    ) -> None:
        with closing(app.raw_connection()) as connection:
            job = ship.enqueue(7, connection=connection)
            connection.commit()
            ship.enqueue(8, connection=connection)
            connection.rollback()
            ship.enqueue(9, connection=connection)
        assert [task.id for task in hf.tasks.list()] == [job.id]
        with pytest.raises(InvalidInput, match="is closed; open another"):
            ship.enqueue(7, connection=connection)

    def test_an_engine_is_no_connection(self, app: Engine, ship: Ship) -> None:
        with pytest.raises(InvalidInput, match="is SQLAlchemy's Engine; give the Connection or"):
            ship.enqueue(7, connection=app)

    def test_another_driver_is_refused_with_the_reason(self, hf: Holdfast, sqlite_url: str) -> None:
        def ship() -> None: ...

        other = create_engine("sqlite://")
        enqueue = hf.task(ship).enqueue
        with other.connect() as connection, Session(other) as session:
            for each in (connection, session):
                with pytest.raises(InvalidInput, match=r"on postgresql\+psycopg, not sqlite3\."):
                    enqueue(connection=each)
            with Holdfast(sqlite_url) as embedded:
                enqueue = embedded.task(ship).enqueue
                with pytest.raises(InvalidInput, match="two SQLite libraries on one file"):
                    enqueue(connection=connection)
        other.dispose()


def test_a_thread_that_would_wait_for_its_own_transaction_is_refused(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:

        @hf.task
        def job() -> None: ...

        with hf.transaction() as connection:
            with pytest.raises(WrongThread, match="pass its connection on as connection="):
                job.enqueue()
            waiting = job.enqueue.submit()
            inside = job.enqueue(connection=connection)
        assert {hf.tasks.get(each.id).state for each in (inside, waiting.result(30))} == {"ready"}


def test_a_second_transaction_of_the_same_thread_and_file_is_refused_at_once(
    sqlite_url: str, tmp_path: Path
) -> None:
    other = Holdfast(f"sqlite:///{tmp_path / 'other.db'}")
    with Holdfast(sqlite_url) as hf, Holdfast(sqlite_url) as same, other, hf.transaction():
        for each in (hf, same):
            with (
                pytest.raises(WrongThread, match="use its connection for both"),
                each.transaction(),
            ):
                pass
        with other.transaction():
            pass


def test_a_program_that_waits_in_vain_for_its_own_transaction_is_told_so(sqlite_url: str) -> None:
    with Holdfast(sqlite_url, patience=0.05) as hf:

        @hf.task
        def job() -> None: ...

        async def wait() -> None:
            await asyncio.wrap_future(job.enqueue.submit())

        with (
            hf.transaction(),
            pytest.raises(StoreUnreachable, match="a transaction of this program has kept"),
        ):
            asyncio.run(wait())


@pytest.mark.parametrize(("seconds", "warned"), [(10, False), (11, True)])
def test_a_transaction_that_could_cost_others_their_leases_is_warned_of(
    sqlite_url: str, caplog: pytest.LogCaptureFixture, seconds: int, *, warned: bool
) -> None:
    clock = ManualClock()
    with opened(sqlite_url, clock=clock) as engine:
        with engine.transaction():
            clock.advance(seconds)
        assert ("was open for 11.0 s" in caplog.text) is warned
