"""An effect that is under way when what is around it ends or is left goes on to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from holdfast import AsyncContext, AttemptEnded, Context, Holdfast, TaskFailed
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from tests.contract.worker.attempt.test_combined_waits import HOUR, Story

Act = Callable[[Any], Any]


def look(ctx: Context) -> None:
    ctx.guard()


def mail(ctx: Context) -> object:
    return ctx.effect("mail", str, "sent")


ACTS = pytest.mark.parametrize("act", [look, mail])


def beside_a_wait(act: Act) -> Callable[[Context], list[Any]]:
    """A function with an effect in one thread that acts once another thread has left to wait."""
    begun, left = Event(), Event()

    def work(ctx: Context) -> list[Any]:
        def charge() -> object:
            begun.set()
            assert left.wait(30)
            try:
                return act(ctx)
            except BaseException as error:  # noqa: BLE001 - it would be remembered for good
                return repr(error)

        def nap() -> None:
            assert begun.wait(30)
            try:
                ctx.sleep("1h")
            finally:
                left.set()

        with ThreadPoolExecutor(2) as pool:
            both = pool.submit(ctx.effect, "charge", charge), pool.submit(nap)
        return [each.result() for each in both]

    return work


@ACTS
def test_an_effect_goes_on_in_its_thread_after_another_thread_has_left(
    engine: Engine, clock: ManualClock, act: Act
) -> None:
    done: list[int] = []

    def pay(ctx: Context) -> str:
        done.append(ctx.attempt)
        act(ctx)
        return "paid"

    story = Story(engine, beside_a_wait(pay))
    assert story.goes_on()
    assert engine.work.effects(story.task_id)["charge"] == "paid"
    assert not story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    assert (story.output, done) == (["paid", None], [1])


def test_an_effect_that_waits_after_another_thread_has_left_is_not_remembered(
    engine: Engine, clock: ManualClock
) -> None:
    story = Story(engine, beside_a_wait(lambda ctx: ctx.wait_for("paid")))
    assert story.goes_on()
    assert "charge" not in engine.work.effects(story.task_id)
    assert not story.goes_on()
    story.signal("paid", "yes")
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == ["yes", None]


@ACTS
@pytest.mark.parametrize("name", ["letter", "outer"])
def test_an_effect_goes_on_inside_one_that_was_left_beside_it(
    engine: Engine, name: str, act: Act
) -> None:
    done: list[int] = []

    async def work(ctx: AsyncContext) -> object:
        left = asyncio.Event()

        async def write() -> str:
            done.append(ctx.attempt)
            await left.wait()
            try:
                acting = act(ctx)
                if acting is not None:
                    await acting
            except BaseException as error:  # noqa: BLE001 - as above
                return repr(error)
            return "written"

        async def listen() -> object:
            try:
                return await ctx.wait_for("go")
            finally:
                left.set()

        async def both() -> object:
            return await asyncio.gather(ctx.effect(name, write), listen())

        return await ctx.effect("outer", lambda: ctx.effect("inner", both))

    story = Story(engine, work)
    assert story.goes_on()
    known = engine.work.effects(story.task_id)
    assert {"written"} == {known[each] for each in known if each.startswith(name)}
    story.signal("go", "gone")
    assert story.goes_on()
    assert (story.output, done) == (["written", "gone"], [1])


def test_an_effect_is_remembered_though_another_branch_raises_before_it_has_ended(
    hf: Holdfast,
) -> None:
    done: list[tuple[str, int]] = []

    @hf.task(max_attempts=2, backoff=0)
    async def order(ctx: AsyncContext) -> list[Any]:
        begun, raised = asyncio.Event(), asyncio.Event()

        async def charge() -> str:
            begun.set()
            await raised.wait()
            # Until whoever awaits the other has heard of it too.
            for _ in range(100):
                await asyncio.sleep(0)
            done.append(("charge", ctx.attempt))
            return "paid"

        async def pay() -> list[Any]:
            paid = await ctx.effect("charge", charge)
            return [paid, await ctx.effect("mail", done.append, ("mail", ctx.attempt))]

        async def pack() -> None:
            await begun.wait()
            raised.set()
            raise ConnectionError("nobody is there")

        if ctx.attempt > 1:
            raised.set()
            return await pay()
        await asyncio.gather(pay(), pack())
        return []

    with hf.worker():
        assert order.enqueue().result(30) == ["paid", None]
    assert done == [("charge", 1), ("mail", 2)]


def test_an_effect_that_does_not_end_keeps_a_function_that_raised_no_longer_than_a_lease(
    store_url: str,
) -> None:
    with Holdfast(store_url, lease=0.5) as hf:

        @hf.task(max_attempts=2, backoff=0)
        async def order(ctx: AsyncContext) -> int:
            begun = asyncio.Event()

            async def charge() -> None:
                begun.set()
                await asyncio.Event().wait()

            async def pack() -> None:
                await begun.wait()
                raise ConnectionError("nobody is there")

            if ctx.attempt == 1:
                await asyncio.gather(ctx.effect("charge", charge), pack())
            return ctx.attempt

        with hf.worker():
            assert order.enqueue().result(30) == 2


def test_a_function_that_has_raised_begins_nothing_that_it_has_called_before(hf: Holdfast) -> None:
    called: list[Any] = []
    done: list[str] = []

    @hf.task(max_attempts=1)
    async def order(ctx: AsyncContext) -> None:
        called.append(ctx.effect("charge", done.append, "paid"))
        raise ConnectionError("nobody is there")

    with hf.worker(), pytest.raises(TaskFailed):
        order.enqueue().result(30)
    with pytest.raises(AttemptEnded, match="has raised by now"):
        called[0].send(None)
    assert not done
