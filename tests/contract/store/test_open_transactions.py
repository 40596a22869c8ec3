"""On SQLite nobody waits for what its own open transaction keeps the writer from writing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from holdfast import AsyncContext, Context, Ended, Handle, Holdfast, TaskFailed
from holdfast.errors import WrongThread
from tests.contract.engine.writer.test_caller_transaction import PATIENCE, orders
from tests.race.racers import eventually

Do = Callable[[Any], Any]
Done = list[str]
# What a step remembers in the store, each by its name; all of it would be waited for.
CALLS: dict[str, Callable[[Done, Any], Do]] = {
    "effect": lambda done, _: lambda ctx: ctx.effect("charge", done.append, "charged"),
    "wait_for": lambda *_: lambda ctx: ctx.wait_for("go", timeout=0),
    "ask": lambda *_: lambda ctx: ctx.ask("Go?"),
    "spawn": lambda _, child: lambda ctx: ctx.spawn(child, 1),
    "map": lambda _, child: lambda ctx: ctx.map(child, [1]),
}
EACH = pytest.mark.parametrize("name", CALLS)


def kid(number: int) -> int:
    return number


@pytest.fixture
def embedded(sqlite_store_url: str) -> Iterator[Holdfast]:
    with Holdfast(sqlite_store_url, backoff=0.01) as hf:
        yield hf
        diagnosis = hf.doctor()
        assert diagnosis.ok, str(diagnosis)


@EACH
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_step_remembers_nothing_inside_its_transaction_and_is_not_tried_again(
    embedded: Holdfast, name: str, *, asynchronous: bool
) -> None:
    done: Done = []

    child = embedded.task(kid)
    call = CALLS[name](done, child)

    @embedded.task
    def plain(ctx: Context) -> None:
        with embedded.transaction() as connection:
            orders(connection)
            call(ctx)

    @embedded.task
    async def coroutine(ctx: AsyncContext) -> None:
        with embedded.transaction() as connection:
            orders(connection)
            await call(ctx)

    with embedded.worker():
        job = (coroutine if asynchronous else plain).enqueue()
        told = rf"InvalidWait: ctx\.{name}\(…\) would wait.*after it has ended, then retry"
        with pytest.raises(TaskFailed, match=told):
            job.result(PATIENCE)
        assert child.enqueue(7).result(PATIENCE) == 7
    assert embedded.tasks.get(job.id).failures == 1
    assert done == []
    assert len(embedded.tasks.list()) == 2


def test_a_step_may_catch_that_and_remember_it_after_the_transaction(embedded: Holdfast) -> None:
    done: Done = []

    @embedded.task
    def step(ctx: Context) -> str:
        with embedded.transaction() as connection:
            orders(connection)
            with pytest.raises(WrongThread):
                ctx.effect("charge", done.append, "charged")
        ctx.effect("charge", done.append, "charged")
        return "done"

    with embedded.worker():
        assert step.enqueue().result(PATIENCE) == "done"
    assert done == ["charged"]


def test_an_effect_remembered_before_is_known_inside_a_transaction(embedded: Holdfast) -> None:
    done: Done = []
    opened: list[int] = []

    @embedded.task
    def step(ctx: Context) -> str:
        if ctx.attempt == 1:
            ctx.effect("charge", done.append, "charged")
            raise ValueError
        with embedded.transaction() as connection:
            opened.append(ctx.attempt)
            orders(connection)
            ctx.effect("charge", done.append, "charged")
        return "done"

    with embedded.worker():
        assert step.enqueue().result(PATIENCE) == "done"
    assert done == ["charged"]
    assert opened == [2]


def test_on_postgresql_a_step_remembers_it_beside_its_transaction(postgres_store_url: str) -> None:
    done: Done = []
    with Holdfast(postgres_store_url) as hf:
        child = hf.task(kid)

        @hf.task
        def plain(ctx: Context) -> str:
            with hf.transaction() as connection:
                orders(connection)
                ctx.effect("charge", done.append, "plain")
                ctx.spawn(child, 1)
            return "done"

        @hf.task
        async def coroutine(ctx: AsyncContext) -> str:
            with hf.transaction() as connection:
                orders(connection)
                await ctx.effect("charge", done.append, "coroutine")
                await ctx.spawn(child, 1)
                await child.enqueue.aio(2)
            return "done"

        with hf.worker():
            for step in (plain, coroutine):
                assert step.enqueue().result(PATIENCE) == "done"
    assert done == ["plain", "coroutine"]


def test_a_coroutine_waits_for_the_transaction_of_another_on_its_loop(embedded: Holdfast) -> None:
    open_, asked = threading.Event(), threading.Event()

    @embedded.task
    async def holder() -> None:
        with embedded.transaction() as connection:
            orders(connection)
            open_.set()
            assert await asyncio.to_thread(asked.wait, PATIENCE)

    @embedded.task
    async def other(ctx: AsyncContext) -> str:
        assert await asyncio.to_thread(open_.wait, PATIENCE)

        def charge() -> str:
            asked.set()
            return "charged"

        return str(await ctx.effect("charge", charge))

    with embedded.worker(concurrency=2):
        waiting, holding = other.enqueue(), holder.enqueue()
        assert waiting.result(PATIENCE) == "charged"
        holding.result(PATIENCE)
    assert embedded.tasks.get(waiting.id).failures == 0


def test_a_program_with_an_open_transaction_may_wait_for_another_store(
    embedded: Holdfast, tmp_path: Path, postgres_store_url: str
) -> None:
    for url in (f"sqlite:///{tmp_path / 'other.db'}", postgres_store_url):
        with Holdfast(url) as other:
            job = other.task(kid)
            with embedded.transaction() as connection:
                orders(connection)
                made = job.enqueue(1)
            assert other.tasks.get(made.id).state == "ready"


def waits(hf: Holdfast, job: Handle[int]) -> dict[str, Callable[[], Any]]:
    """What a thread would wait for, each with the name that its refusal has for it."""
    task = hf.task(name="another")(kid)
    return {
        "enqueue": lambda: task.enqueue(1),
        "signal": lambda: hf.signal(job, "go"),
        "cancel": lambda: hf.tasks.cancel(job.id),
        "result": job.result,
        "worker": lambda: hf.worker().start(),
    }


def awaits(hf: Holdfast, job: Handle[int]) -> dict[str, Callable[[], Coroutine[Any, Any, Any]]]:
    """The same of a coroutine."""
    task = hf.task(name="another")(kid)
    return {
        r"enqueue\.aio": lambda: task.enqueue.aio(1),
        r"signal\.aio": lambda: hf.signal.aio(job, "go"),
        r"cancel\.aio": lambda: hf.tasks.cancel.aio(job.id),
        r"result\.aio": job.result.aio,
    }


def test_a_thread_is_refused_what_its_own_transaction_keeps_from_coming(embedded: Holdfast) -> None:
    job = embedded.task(kid).enqueue(1)
    for name, wait in waits(embedded, job).items():
        told = rf"^{name}\(…\) would wait.*after the transaction"
        with embedded.transaction(), pytest.raises(WrongThread, match=told):
            wait()

        async def in_a_thread(wait: Callable[[], Any] = wait) -> None:
            with embedded.transaction():
                await asyncio.to_thread(wait)

        with pytest.raises(WrongThread, match=told):
            asyncio.run(in_a_thread())
    assert [task.id for task in embedded.tasks.list()] == [job.id]
    assert embedded.workers.list() == []


def test_a_worker_is_not_stopped_inside_a_transaction_that_it_would_wait_for(
    embedded: Holdfast,
) -> None:
    with embedded.worker() as worker:
        with embedded.transaction(), pytest.raises(WrongThread, match=r"^stop\(…\) would wait"):
            worker.stop()
        assert embedded.task(kid).enqueue(7).result(PATIENCE) == 7
    with embedded.transaction():
        worker.stop()


def test_a_coroutine_is_refused_what_its_own_transaction_keeps_from_coming(
    embedded: Holdfast,
) -> None:
    job = embedded.task(kid).enqueue(1)
    calls = awaits(embedded, job)

    async def alone(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        with embedded.transaction():
            await call()

    async def in_a_task(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        with embedded.transaction():
            await asyncio.gather(call(), asyncio.sleep(0))

    async def around(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        await call()

    for name, call in calls.items():
        told = rf"^{name}\(…\) would wait.*after the transaction"
        for way in (alone, in_a_task):
            with pytest.raises(WrongThread, match=told):
                asyncio.run(way(call))
        with embedded.transaction(), pytest.raises(WrongThread, match=told):
            asyncio.run(around(call))
    assert [task.id for task in embedded.tasks.list()] == [job.id]


def test_coroutines_beside_a_transaction_and_tasks_that_outlive_it_wait(embedded: Holdfast) -> None:
    task = embedded.task(kid)

    async def main() -> list[str]:
        open_, asked, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def later() -> Handle[int]:
            await ended.wait()
            return await task.enqueue.aio(1)

        async def holder() -> asyncio.Task[Handle[int]]:
            with embedded.transaction():
                started = asyncio.create_task(later())
                open_.set()
                await asked.wait()
                await asyncio.sleep(0.01)
            ended.set()
            return started

        async def beside() -> Handle[int]:
            await open_.wait()
            asked.set()
            return await task.enqueue.aio(2)

        holding = asyncio.create_task(holder())
        made = [await beside(), await (await holding)]
        return [each.id for each in made]

    made = asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert {each.id for each in embedded.tasks.list()} == set(made)


def test_operations_submitted_in_a_transaction_are_waited_for_after_it(embedded: Holdfast) -> None:
    task = embedded.task(kid)
    with embedded.transaction():
        asked: list[Future[Any]] = [
            task.enqueue.submit(1),
            task.enqueue_many.submit([{"number": 2}, {"number": 3}]),
            embedded.plan.submit("plan"),
        ]
        for each in asked:
            with pytest.raises(WrongThread, match=r"^result\(…\) of what was submitted would wait"):
                each.result()
            with pytest.raises(WrongThread, match="after the transaction"):
                each.exception()
            with pytest.raises(TimeoutError):
                each.result(0)
    for each in asked:
        each.result(PATIENCE)
    assert len(embedded.tasks.list()) == 4


def test_a_result_that_is_there_can_be_had_inside_a_transaction(
    embedded: Holdfast, sqlite_store_url: str
) -> None:
    task = embedded.task(kid)
    job = task.enqueue(1)
    with Holdfast(sqlite_store_url) as other:
        other.task(kid)
        with other.worker():
            assert eventually(lambda: other.tasks.get(job.id).status == "done")

    async def ask() -> int:
        with embedded.transaction():
            return await job.result.aio()

    with embedded.transaction():
        assert job.result() == 1
    assert asyncio.run(ask()) == 1


def refusal(hf: Holdfast, call: Callable[[], object]) -> str:
    with hf.transaction(), pytest.raises(WrongThread) as caught:
        call()
    return str(caught.value)


def test_a_connection_is_asked_for_only_by_who_takes_one(
    embedded: Holdfast, tmp_path: Path
) -> None:
    task = embedded.task(kid)
    flow = embedded.workflow("flow")
    flow.step(kid)
    plan = embedded.plan("plan")
    joins: dict[str, Callable[[], object]] = {
        "enqueue": lambda: task.enqueue(1),
        "enqueue.aio": lambda: asyncio.run(task.enqueue.aio(1)),
        "enqueue_many": lambda: task.enqueue_many([{"number": 1}]),
        "start": lambda: flow.start(number=1),
        "signal": lambda: embedded.signal(plan, "go"),
    }
    after: dict[str, Callable[[], object]] = {
        "schedule": lambda: task.schedule("often", "* * * * *", number=1),
        "plan": lambda: embedded.plan("another"),
        "add": lambda: plan.add(task, 1),
        "hf.on": lambda: embedded.on("task.done")(followed),
        "hf.archive": lambda: embedded.archive(tmp_path / "archive"),
        "result": lambda: plan.result(PATIENCE),
        "worker": lambda: embedded.worker().start(),
    }
    for name, call in joins.items():
        told = refusal(embedded, call)
        assert told.startswith(f"{name}(…) would wait for the transaction")
        assert "pass its connection on as connection=…, or call it after the transaction" in told
    for name, call in after.items():
        told = refusal(embedded, call)
        assert told.startswith(f"{name}(…) would wait for the transaction")
        assert told.endswith("; call it after the transaction has ended")


def followed(event: Ended) -> None:
    assert isinstance(event, Ended)


def test_a_hook_that_was_refused_can_be_said_again(embedded: Holdfast, tmp_path: Path) -> None:
    again: dict[str, Callable[[], object]] = {
        "followed": lambda: embedded.on("task.done")(followed),
        "archive": lambda: embedded.archive(tmp_path / "archive"),
    }
    for say in again.values():
        assert refusal(embedded, say)
        say()
    assert {hook.name for hook in embedded.hooks.list()} == set(again)
