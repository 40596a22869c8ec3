"""A wait in the background of a function counts from when the function is left for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from holdfast import AsyncContext, Context
from holdfast.engine.engine import Engine
from tests.contract.worker.attempt.test_combined_waits import Story


async def in_a_task(ctx: AsyncContext) -> str:
    stop = asyncio.create_task(ctx.wait_for("stop"))
    await ctx.effect("build", str, "built")
    left = asyncio.Event()
    stop.add_done_callback(lambda _: left.set())
    # Stands for whatever else a function awaits that is nothing durable.
    await left.wait()
    return "built" if stop.exception() is not None else "stopped"


def in_a_thread(ctx: Context) -> str:
    with ThreadPoolExecutor(1) as pool:
        stop = pool.submit(ctx.wait_for, "stop")
    return "built" if stop.exception() is not None else "stopped"


@pytest.mark.parametrize("function", [in_a_task, in_a_thread])
def test_a_function_that_was_left_for_a_wait_in_the_background_waits_for_it_and_says_so(
    engine: Engine, caplog: pytest.LogCaptureFixture, function: Callable[[AsyncContext], Any]
) -> None:
    story = Story(engine, function)
    assert story.goes_on()
    assert (story.state, story.goes_on()) == ("waiting", False)
    assert "it waits for the signal 'stop'" in str(engine.why(story.task_id))
    (told,) = caplog.messages
    assert "returned after it was left for a wait" in told
    story.signal("stop")
    assert story.goes_on()
    assert story.output == "stopped"


def test_a_wait_in_the_background_of_effects_alone_holds_nothing_up(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    async def be_elsewhere() -> str:
        for _ in range(100):
            await asyncio.sleep(0)
        return "built"

    async def work(ctx: AsyncContext) -> object:
        stop = asyncio.create_task(ctx.wait_for("stop"))
        built = await ctx.effect("build", be_elsewhere)
        stop.cancel()
        return built

    story = Story(engine, work)
    assert story.goes_on()
    assert story.output == "built"
    assert not caplog.messages


def test_an_effect_with_a_wait_in_its_background_is_done_again_when_that_is_over(
    engine: Engine,
) -> None:
    done: list[int] = []

    async def work(ctx: AsyncContext) -> object:
        async def build() -> str:
            stop = asyncio.create_task(ctx.wait_for("stop"))
            await asyncio.wait({stop})
            done.append(ctx.attempt)
            return "built"

        return await ctx.effect("build", build)

    story = Story(engine, work)
    assert story.goes_on()
    assert "build" not in engine.work.effects(story.task_id)
    assert not story.goes_on()
    story.signal("stop")
    assert story.goes_on()
    assert (story.output, done) == ("built", [1, 2])


def test_a_thread_in_the_context_of_an_effect_waits_inside_it(engine: Engine) -> None:
    def work(ctx: Context) -> object:
        def hear() -> object:
            with ThreadPoolExecutor(1) as pool:
                heard = pool.submit(copy_context().run, ctx.wait_for, "go")
            return str(heard.exception()) if heard.exception() else heard.result()

        return ctx.effect("hear", hear)

    story = Story(engine, work)
    assert story.goes_on()
    assert "hear" not in engine.work.effects(story.task_id)
    story.signal("go", "gone")
    assert story.goes_on()
    assert story.output == "gone"
