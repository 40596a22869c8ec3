"""Operations of coroutines, signals and cancels in the application's own transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine

from holdfast import Context, Holdfast, InvalidInput, KeyConflict, NotFound
from holdfast.model.status import RunStatus, Status

PATIENCE = 30
NOBODY = "r_" + "0" * 20
App = psycopg.AsyncConnection[Any]
SqlAlchemy = AsyncConnection | AsyncSession


class Oops(Exception):
    pass


def run(work: Coroutine[Any, Any, Any]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


class Shop:
    """A program with a task, and with a workflow that waits for a signal."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf

        @hf.task
        def ship(order: int) -> int:
            return order

        self.flow = hf.workflow("flow")

        @self.flow.step
        def wait(ctx: Context, order: int) -> object:
            return [order, ctx.wait_for("paid")]

        self.ship = ship

    def count(self) -> tuple[int, int]:
        return len(self.hf.tasks.list()), len(self.hf.runs.list())


@pytest.fixture
def shop(store_url: str) -> Iterator[Shop]:
    # It would look only once a minute: what comes sooner has woken it.
    with Holdfast(store_url, poll=60) as hf:
        yield Shop(hf)
        assert hf.doctor().ok


class TestSignalsAndCancels:
    """`signal` and `cancel` in a transaction of the application, on both databases."""

    def test_a_signal_wakes_its_run_with_the_commit_and_a_cancel_ends_its_own(
        self, shop: Shop
    ) -> None:
        hf = shop.hf
        paid, dropped = (shop.flow.start(order=number) for number in (1, 2))
        lone = shop.ship.using(scheduled_for="1h").enqueue(3)
        with hf.worker():
            with hf.transaction() as connection:
                assert hf.signal(paid, "paid", 7, connection=connection).ok
                assert hf.runs.cancel(dropped, connection=connection).ok
                assert hf.tasks.cancel(lone, connection=connection).ok
                assert hf.runs.get(dropped).status is RunStatus.RUNNING
            assert paid.result(PATIENCE) == [1, 7]
        assert hf.runs.get(dropped).status is RunStatus.CANCELLED
        assert hf.tasks.get(lone).status is Status.CANCELLED

    def test_a_signal_and_a_cancel_that_are_rolled_back_leave_nothing(self, shop: Shop) -> None:
        hf = shop.hf
        run, lone = shop.flow.start(order=1), shop.ship.enqueue(3)
        before = [*hf.runs.events(run), *hf.tasks.events(lone)]

        def give_up() -> None:
            with hf.transaction() as connection:
                hf.signal(run, "paid", 7, key="once", connection=connection)
                hf.tasks.cancel(lone, connection=connection)
                hf.runs.cancel(run, connection=connection)
                raise Oops

        with pytest.raises(Oops):
            give_up()
        assert [*hf.runs.events(run), *hf.tasks.events(lone)] == before
        hf.signal(run, "paid", 8, key="once")
        with hf.worker():
            assert (run.result(PATIENCE), lone.result(PATIENCE)) == ([1, 8], 3)

    def test_a_running_step_hears_of_a_cancel_when_the_transaction_commits(
        self, shop: Shop
    ) -> None:
        began, heard = threading.Event(), threading.Event()

        @shop.hf.task
        async def work() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                heard.set()

        with shop.hf.worker():
            job = work.enqueue()
            assert began.wait(PATIENCE)
            with shop.hf.transaction() as connection:
                assert shop.hf.tasks.cancel(job, connection=connection).ok
                assert not heard.is_set()
            assert heard.wait(PATIENCE)

    def test_a_coroutine_uses_the_transaction_of_hf(self, shop: Shop) -> None:
        async def sell(*, fails: bool) -> None:
            with shop.hf.transaction() as connection:
                job = await shop.ship.enqueue.aio(7, key="7", connection=connection)
                await shop.flow.start.aio(order=8, connection=connection)
                assert (await shop.hf.tasks.cancel.aio(job, connection=connection)).ok
                if fails:
                    raise Oops

        with pytest.raises(Oops):
            run(sell(fails=True))
        assert shop.count() == (0, 0)
        run(sell(fails=False))
        assert shop.count() == (2, 1)


class TestPsycopg:
    """An AsyncConnection of psycopg."""

    @pytest.fixture
    def shop(self, postgres_store_url: str) -> Iterator[Shop]:
        with Holdfast(postgres_store_url, poll=60) as hf:
            yield Shop(hf)
            assert hf.doctor().ok

    @pytest.fixture
    def connect(self, postgres_store_url: str) -> Callable[[], Coroutine[Any, Any, App]]:
        return lambda: psycopg.AsyncConnection.connect(postgres_store_url)

    def test_what_is_written_appears_with_the_commit_and_wakes_a_worker(
        self, shop: Shop, connect: Callable[[], Coroutine[Any, Any, App]]
    ) -> None:
        paid, dropped = (shop.flow.start(order=number) for number in (1, 2))

        async def sell() -> None:
            async with await connect() as app:
                await app.execute("CREATE TEMPORARY TABLE orders (id integer)")
                job = await shop.ship.enqueue.aio(7, connection=app)
                begun = await shop.flow.start.aio(order=8, connection=app)
                both = await shop.ship.enqueue_many.aio([{"order": 9}], connection=app)
                for each in (begun, paid):
                    assert (await shop.hf.signal.aio(each, "paid", 7, connection=app)).ok
                assert (await shop.hf.runs.cancel.aio(dropped, connection=app)).ok
                with pytest.raises(NotFound):
                    await job.result.aio(PATIENCE)
                await app.commit()
                assert await job.result.aio(PATIENCE) == 7
                assert await both[0].result.aio(PATIENCE) == 9
                assert await begun.result.aio(PATIENCE) == [8, 7]
                assert await paid.result.aio(PATIENCE) == [1, 7]

        with shop.hf.worker():
            run(sell())
        assert shop.hf.runs.get(dropped).status is RunStatus.CANCELLED

    def test_a_rollback_and_an_error_leave_nothing(
        self, shop: Shop, connect: Callable[[], Coroutine[Any, Any, App]]
    ) -> None:
        async def sell() -> None:
            async with await connect() as app:
                await shop.ship.enqueue.aio(7, connection=app)
                await app.rollback()
                with suppress(Oops):
                    async with app.transaction():
                        await shop.ship.enqueue.aio(7, connection=app)
                        await shop.flow.start.aio(order=8, connection=app)
                        raise Oops

        run(sell())
        assert shop.count() == (0, 0)

    def test_savepoints_of_the_application_take_what_was_written_in_them(
        self, shop: Shop, connect: Callable[[], Coroutine[Any, Any, App]]
    ) -> None:
        async def sell() -> str:
            async with await connect() as app, app.transaction():
                kept = await shop.ship.enqueue.aio(1, key="1", connection=app)
                with suppress(Oops):
                    async with app.transaction():
                        await shop.ship.enqueue.aio(2, connection=app)
                        raise Oops
                # A refusal of Holdfast rolls back its own savepoint alone.
                with pytest.raises(KeyConflict):
                    await shop.ship.enqueue.aio(3, key="1", connection=app)
                with pytest.raises(InvalidInput, match="order: "):
                    await shop.ship.enqueue.aio(cast("int", "three"), connection=app)
                return kept.id

        kept = asyncio.run(sell())
        assert [task.id for task in shop.hf.tasks.list()] == [kept]

    def test_operations_of_two_coroutines_on_one_connection_take_turns(
        self, shop: Shop, postgres_store_url: str
    ) -> None:
        note = shop.hf.task(_read_note)

        async def sell() -> None:
            connect = psycopg.AsyncConnection.connect
            async with (
                await connect(postgres_store_url) as other,
                await connect(postgres_store_url, client_encoding="latin1") as app,
            ):
                await note.enqueue.aio("first", key="taken", connection=other)
                # The first waits for the key. The second is refused, which rolls back a savepoint.
                first = asyncio.create_task(note.enqueue.aio("kept", key="taken", connection=app))
                await _wait_until_blocked(other, app)
                second = asyncio.create_task(note.enqueue.aio("5 €", connection=app))
                await other.rollback()
                assert (await first).created
                with pytest.raises(InvalidInput, match="lacks '€'"):
                    await second

        run(sell())
        assert [task.payload for task in shop.hf.tasks.list()] == [{"text": "kept"}]

    def test_a_cancelled_call_leaves_no_half_and_the_transaction_goes_on(
        self, shop: Shop, connect: Callable[[], Coroutine[Any, Any, App]]
    ) -> None:
        async def sell() -> None:
            async with await connect() as first, await connect() as app:
                await shop.ship.enqueue.aio(1, key="taken", connection=first)
                await shop.ship.enqueue.aio(2, connection=app)
                # It waits for the key that the first transaction may still give up.
                late = asyncio.create_task(shop.ship.enqueue.aio(1, key="taken", connection=app))
                await _wait_until_blocked(first, app)
                late.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await late
                await first.rollback()
                await shop.ship.enqueue.aio(3, connection=app)

        run(sell())
        assert sorted(task.payload["order"] for task in shop.hf.tasks.list()) == [2, 3]

    def test_a_call_that_is_cancelled_again_and_again_is_rolled_back_all_the_same(
        self, shop: Shop, connect: Callable[[], Coroutine[Any, Any, App]]
    ) -> None:
        async def sell() -> None:
            async with await connect() as first, await connect() as app:
                await shop.ship.enqueue.aio(1, key="taken", connection=first)
                late = asyncio.create_task(shop.ship.enqueue.aio(1, key="taken", connection=app))
                await _wait_until_blocked(first, app)
                while not late.done():
                    late.cancel()
                    await asyncio.sleep(0)
                assert late.cancelled()
                await first.rollback()
                await shop.ship.enqueue.aio(3, connection=app)

        run(sell())
        assert [task.payload for task in shop.hf.tasks.list()] == [{"order": 3}]

    def test_a_call_that_does_not_await_is_refused_with_what_to_write(
        self, shop: Shop, connect: Callable[[], Coroutine[Any, Any, App]]
    ) -> None:
        async def sell() -> None:
            async with await connect() as app:
                calls: list[Callable[[], object]] = [
                    lambda: shop.ship.enqueue(7, connection=app),
                    lambda: shop.flow.start(order=7, connection=app),
                    lambda: shop.hf.signal(NOBODY, "paid", connection=app),
                    lambda: shop.ship.enqueue.submit(7, connection=app),
                ]
                for call in calls:
                    with pytest.raises(InvalidInput, match=r"asynchronous; .* `await ….aio\("):
                        call()

        run(sell())
        assert shop.count() == (0, 0)

    def test_a_connection_of_another_event_loop_is_refused(
        self, shop: Shop, connect: Callable[[], Coroutine[Any, Any, App]]
    ) -> None:
        refused: list[BaseException] = []

        async def sell() -> None:
            async with await connect() as app:
                await shop.ship.enqueue.aio(7, connection=app)

                def elsewhere() -> None:
                    try:
                        asyncio.run(shop.ship.enqueue.aio(8, connection=app))
                    except InvalidInput as error:
                        refused.append(error)

                await asyncio.to_thread(elsewhere)

        run(sell())
        assert "used in another event loop" in str(refused[0])
        assert [task.payload for task in shop.hf.tasks.list()] == [{"order": 7}]

    def test_a_connection_outside_of_a_transaction_and_a_closed_one_are_refused(
        self, shop: Shop, postgres_store_url: str
    ) -> None:
        async def sell() -> None:
            connect = psycopg.AsyncConnection.connect
            async with await connect(postgres_store_url, autocommit=True) as app:
                with pytest.raises(InvalidInput, match="autocommit mode and no transaction"):
                    await shop.ship.enqueue.aio(7, connection=app)
                async with app.transaction():
                    await shop.ship.enqueue.aio(8, connection=app)
            with pytest.raises(InvalidInput, match="is closed"):
                await shop.ship.enqueue.aio(7, connection=app)

        run(sell())
        assert [task.payload for task in shop.hf.tasks.list()] == [{"order": 8}]


def _read_note(text: str) -> str:
    return text


async def _wait_until_blocked(observer: App, blocked: App) -> None:
    """Wait until a connection waits for a lock; no sleep is long enough to know."""
    pid = blocked.info.backend_pid
    while True:
        found = await observer.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", (pid,))
        if await found.fetchone() == (True,):
            return


class TestSqlAlchemy:
    """An AsyncSession or AsyncConnection of SQLAlchemy on `postgresql+psycopg`."""

    @pytest.fixture
    def shop(self, postgres_store_url: str) -> Iterator[Shop]:
        with Holdfast(postgres_store_url, poll=60) as hf:
            yield Shop(hf)
            assert hf.doctor().ok

    @pytest.mark.parametrize("kind", [AsyncConnection, AsyncSession])
    def test_its_transaction_carries_operations_and_wakes_a_worker_with_its_commit(
        self, shop: Shop, postgres_store_url: str, kind: type[SqlAlchemy]
    ) -> None:
        async def sell() -> None:
            async with _connect(postgres_store_url, kind) as app:
                job = await shop.ship.enqueue.aio(7, connection=app)
                await app.rollback()
                assert shop.count() == (0, 0)
                await app.execute(text("CREATE TEMPORARY TABLE orders (id integer)"))
                job = await shop.ship.enqueue.aio(7, connection=app)
                async with app.begin_nested() as savepoint:
                    await shop.ship.enqueue.aio(8, connection=app)
                    await savepoint.rollback()
                await app.commit()
                assert await job.result.aio(PATIENCE) == 7

        with shop.hf.worker():
            run(sell())
        assert shop.count() == (1, 0)

    def test_an_engine_is_no_connection(self, shop: Shop, postgres_store_url: str) -> None:
        engine = create_async_engine(postgres_store_url.replace("://", "+psycopg://"))
        with pytest.raises(InvalidInput, match="AsyncEngine; give the AsyncConnection or"):
            run(shop.ship.enqueue.aio(7, connection=engine))
        with pytest.raises(InvalidInput, match=r"asynchronous; .* `await ….aio\("):
            shop.ship.enqueue(7, connection=engine)


@asynccontextmanager
async def _connect(url: str, kind: type[SqlAlchemy]) -> AsyncIterator[SqlAlchemy]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with kind(engine) as app:
            yield app
    finally:
        await engine.dispose()


def test_a_connection_of_asyncpg_is_refused_with_what_to_use(postgres_store_url: str) -> None:
    other = type("Connection", (), {"__module__": "asyncpg.connection"})()
    reason = r"writes through psycopg alone.*postgresql\+psycopg://"
    with Holdfast(postgres_store_url) as hf:
        shop = Shop(hf)
        with pytest.raises(InvalidInput, match=reason):
            shop.ship.enqueue(7, connection=other)
        with pytest.raises(InvalidInput, match=reason):
            run(shop.ship.enqueue.aio(7, connection=other))


def test_a_connection_of_aiosqlite_is_refused_with_what_to_use(sqlite_store_url: str) -> None:
    other = type("Connection", (), {"__module__": "aiosqlite.core"})()
    reason = "two SQLite libraries on one file.*with hf.transaction"
    with Holdfast(sqlite_store_url) as hf:
        shop = Shop(hf)
        with pytest.raises(InvalidInput, match=reason):
            shop.ship.enqueue(7, connection=other)
        with pytest.raises(InvalidInput, match=reason):
            run(shop.ship.enqueue.aio(7, connection=other))
