"""A function that catches the wait it is left for has waited for nothing: nothing comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Event
from typing import Any

import pytest

from holdfast import AsyncContext, Context
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from tests.contract.task_states import finish
from tests.contract.worker.attempt.test_combined_waits import HOUR, Children, Story

Operation = Callable[[Any], Any]

WAITS: dict[str, Operation] = {
    "sleep": lambda ctx: ctx.sleep("1h"),
    "signal": lambda ctx: ctx.wait_for("go"),
    "question": lambda ctx: ctx.ask("which?"),
    "children": lambda ctx: ctx.map(Children(), [1]),
}
WAIT = pytest.mark.parametrize("wait", WAITS)


def come(story: Story, clock: ManualClock, wait: str) -> None:
    """Let what is waited for be there."""
    engine = story.engine
    if wait == "sleep":
        clock.advance(HOUR)
    elif wait == "signal":
        story.signal("go")
    elif wait == "question":
        assert engine.tasks.answer(story.task_id, "this").ok
    else:
        (child,) = engine.tasks.list(parent=story.task_id)
        finish(engine, child.id, 1)


def is_parked(story: Story) -> bool:
    """Whether it waits as it asked to, and nothing was counted, done or made beside that."""
    task = story.engine.tasks.get(story.task_id)
    beside = {"mail", "spawn other", "wait other", "sleep (again)"}
    known = story.engine.work.effects(story.task_id).keys() & beside
    assert (task.failures, task.output, known) == (0, None, set()), task
    return not story.goes_on()


def ends_late(story: Story, clock: ManualClock, wait: str) -> None:
    """It is parked until its wait is over, and only then ends."""
    assert story.goes_on()
    assert is_parked(story)
    come(story, clock, wait)
    assert story.goes_on()
    assert story.output == "late"


@WAIT
@pytest.mark.parametrize("then", ["return", "raise"])
def test_a_plain_function_that_catches_its_wait_is_parked(
    engine: Engine, clock: ManualClock, wait: str, then: str
) -> None:
    def work(ctx: Context) -> str:
        try:
            WAITS[wait](ctx)
        except BaseException:  # noqa: BLE001 - what nobody should write, and somebody does
            if then == "raise":
                raise ValueError("it did not wait") from None
            return "early"
        return "late"

    ends_late(Story(engine, work), clock, wait)


@WAIT
@pytest.mark.parametrize("then", ["return", "raise"])
def test_a_gather_that_keeps_exceptions_is_parked_until_its_wait_is_over(
    engine: Engine, clock: ManualClock, wait: str, then: str
) -> None:
    async def work(ctx: AsyncContext) -> str:
        (gave,) = await asyncio.gather(WAITS[wait](ctx), return_exceptions=True)
        if isinstance(gave, BaseException):
            if then == "raise":
                raise ValueError("it did not wait")
            return "early"
        return "late"

    ends_late(Story(engine, work), clock, wait)


def test_a_gather_that_returns_exceptions_remembers_all_of_its_waits(
    engine: Engine, clock: ManualClock
) -> None:
    async def work(ctx: AsyncContext) -> object:
        waits = ctx.sleep("2h"), ctx.wait_for("go", timeout="3h"), ctx.sleep("1h")
        return [str(each) for each in await asyncio.gather(*waits, return_exceptions=True)]

    story = Story(engine, work)
    assert story.goes_on()
    story.signal("go", 7)
    assert story.goes_on()
    for _ in range(2):
        assert not story.goes_on()
        clock.advance(HOUR)
        assert story.goes_on()
    assert story.output == ["None", "7", "None"]


def begins_nothing(story: Story, clock: ManualClock) -> None:
    """It is parked, has done nothing of what stands after its wait, and ends when that is over."""
    story.signal("other")
    assert story.goes_on()
    assert is_parked(story)
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output is None
    assert not story.engine.tasks.list(parent=story.task_id)


NEXT: dict[str, Operation] = {
    "effect": lambda ctx: ctx.effect("mail", str, "mailed"),
    "spawn": lambda ctx: ctx.spawn(Children("other"), 1),
    "signal": lambda ctx: ctx.wait_for("other"),
    "sleep": lambda ctx: ctx.sleep("1s", name="again"),
}
AFTER = pytest.mark.parametrize("after", NEXT)


@AFTER
def test_a_plain_function_begins_nothing_after_a_wait_that_it_caught(
    engine: Engine, clock: ManualClock, after: str
) -> None:
    def work(ctx: Context) -> None:
        with suppress(BaseException):
            ctx.sleep("1h")
            return
        NEXT[after](ctx)

    begins_nothing(Story(engine, work), clock)


@AFTER
@pytest.mark.parametrize("called", ["before", "after"])
def test_a_coroutine_begins_nothing_after_a_wait_that_it_caught(
    engine: Engine, clock: ManualClock, after: str, called: str
) -> None:
    async def work(ctx: AsyncContext) -> None:
        following = NEXT[after](ctx) if called == "before" else None
        with suppress(BaseException):
            await ctx.sleep("1h")
            if following is not None:
                following.close()
            return
        await (following or NEXT[after](ctx))

    begins_nothing(Story(engine, work), clock)


def test_a_step_that_caught_its_wait_may_not_act(engine: Engine) -> None:
    acted: list[int] = []

    def work(ctx: Context) -> None:
        with suppress(BaseException):
            ctx.sleep("1h")
        ctx.guard()
        acted.append(ctx.attempt)

    story = Story(engine, work)
    assert story.goes_on()
    assert is_parked(story)
    assert not acted


def test_an_effect_that_only_a_caught_wait_leads_to_clashes_with_no_effect_of_its_name(
    engine: Engine, clock: ManualClock
) -> None:
    async def work(ctx: AsyncContext) -> str:
        async def nap() -> None:
            await ctx.effect("note", str, "tired")
            await ctx.sleep("1h")

        try:
            await asyncio.create_task(nap())
        except BaseException:  # noqa: BLE001 - as above
            await ctx.effect("note", str, "not slept")
        return "rested"

    story = Story(engine, work)
    assert story.goes_on()
    assert is_parked(story)
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == "rested"


def test_an_effect_beside_a_caught_wait_is_done_once(engine: Engine, clock: ManualClock) -> None:
    done: list[str] = []

    async def mail() -> str:
        for _ in range(100):
            await asyncio.sleep(0)
        done.append("mailed")
        return "mailed"

    async def work(ctx: AsyncContext) -> object:
        both = ctx.effect("letter", mail), ctx.sleep("1h")
        return [str(each) for each in await asyncio.gather(*both, return_exceptions=True)]

    story = Story(engine, work)
    assert story.goes_on()
    assert engine.work.effects(story.task_id)["letter"] == "mailed"
    assert is_parked(story)
    clock.advance(HOUR)
    assert story.goes_on()
    assert (story.output, done) == (["mailed", "None"], ["mailed"])


def test_a_branch_that_comes_to_its_effect_after_the_function_was_left_does_it_later(
    engine: Engine, clock: ManualClock
) -> None:
    done: list[int] = []

    async def work(ctx: AsyncContext) -> object:
        left = asyncio.Event()

        async def nap() -> None:
            try:
                await ctx.sleep("1h")
            finally:
                left.set()

        async def mail() -> None:
            await left.wait()
            await ctx.effect("letter", done.append, ctx.attempt)

        both = await asyncio.gather(nap(), mail(), return_exceptions=True)
        return [str(each) for each in both]

    story = Story(engine, work)
    assert story.goes_on()
    assert is_parked(story)
    assert not done
    clock.advance(HOUR)
    assert story.goes_on()
    assert (story.output, done) == (["None", "None"], [2])


@pytest.mark.parametrize("then", ["return", "raise"])
def test_an_effect_that_catches_a_wait_inside_it_is_not_remembered(
    engine: Engine, clock: ManualClock, then: str
) -> None:
    async def work(ctx: AsyncContext) -> object:
        async def nap() -> str:
            try:
                await ctx.sleep("1h")
            except BaseException:  # noqa: BLE001 - as above
                if then == "raise":
                    raise ValueError("it did not wait") from None
                with suppress(BaseException):
                    await ctx.effect("mail", str, "not slept")
                return "tired"
            return "rested"

        with suppress(ValueError):
            return await ctx.effect("nap", nap)
        return await ctx.effect("mail", str, "not slept")

    story = Story(engine, work)
    assert story.goes_on()
    assert "nap" not in engine.work.effects(story.task_id)
    assert is_parked(story)
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == "rested"


def test_the_waits_of_two_threads_are_both_remembered(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, now = Barrier(2), engine.now

    def meet() -> int:
        both.wait(30)
        return now()

    # Each has begun before the other leaves.
    monkeypatch.setattr(engine, "now", meet)

    def work(ctx: Context) -> object:
        with ThreadPoolExecutor(2) as pool:
            long = pool.submit(ctx.sleep, "2h", name="long")
            short = pool.submit(ctx.sleep, "1h", name="short")
            return [str(each.exception()) for each in (long, short)]

    story = Story(engine, work)
    assert story.goes_on()
    for _ in range(2):
        assert is_parked(story)
        clock.advance(HOUR)
        assert story.goes_on()
    assert story.output == ["None", "None"]


def test_an_effect_done_in_a_thread_while_another_thread_leaves_is_remembered(
    engine: Engine, clock: ManualClock
) -> None:
    done: list[int] = []
    begun, left = Event(), Event()

    def work(ctx: Context) -> object:
        def mail() -> None:
            begun.set()
            assert left.wait(30)
            done.append(ctx.attempt)

        def nap() -> None:
            assert begun.wait(30)
            try:
                ctx.sleep("1h")
            finally:
                left.set()

        with ThreadPoolExecutor(2) as pool:
            letter = pool.submit(ctx.effect, "letter", mail)
            return [str(each.exception()) for each in (pool.submit(nap), letter)]

    story = Story(engine, work)
    assert story.goes_on()
    assert "letter" in engine.work.effects(story.task_id)
    assert is_parked(story)
    clock.advance(HOUR)
    assert story.goes_on()
    assert (story.output, done) == (["None", "None"], [1])


def test_a_wait_caught_after_an_effect_that_failed_is_waited_for(
    engine: Engine, clock: ManualClock
) -> None:
    async def refused() -> None:
        raise ValueError("not now")

    async def work(ctx: AsyncContext) -> str:
        try:
            await ctx.effect("call", refused)
        except ValueError:
            gave = await asyncio.gather(ctx.sleep("1h"), return_exceptions=True)
            return "early" if any(gave) else "later"
        return "at once"

    story = Story(engine, work)
    assert story.goes_on()
    assert is_parked(story)
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == "later"
