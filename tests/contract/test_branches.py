"""Branches of one function beside each other: each goes on with what is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Context
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from tests.contract.test_waits_beside import BOTH, HOUR, Beside, Story, gathered

Wait = Callable[[Context, str], Awaitable[Any]]


async def in_turn(ctx: Context, beside: Beside, wait: Wait, *names: str) -> dict[str, object]:
    """What two branches waited for; they come to it in another order with each attempt."""
    came = asyncio.Event()
    gave: dict[str, object] = {}

    async def branch(name: str, *, first: bool) -> None:
        if not first:
            await came.wait()
        waited = wait(ctx, name)
        came.set()
        gave[name] = await ctx.effect(f"note {name}", str, await waited)

    odd = ctx.attempt % 2 == 1
    await beside(branch(names[0], first=not odd), branch(names[1], first=odd))
    return gave


@BOTH
def test_two_branches_sleep_each_for_its_own_time(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    hours = {"long": 5, "short": 1}

    async def work(ctx: Context) -> object:
        return await in_turn(
            ctx, beside, lambda ctx, name: ctx.sleep(hours[name] * HOUR, name=name), *hours
        )

    story = Story(engine, work)
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    noted = engine.work.effects(story.task_id)
    assert ("note short" in noted, "note long" in noted) == (True, False)
    assert not story.goes_on()
    clock.advance(4 * HOUR)
    assert story.goes_on()
    assert story.output == {"long": "None", "short": "None"}


@BOTH
def test_two_branches_hear_the_same_signal_and_keep_what_they_heard(
    engine: Engine, beside: Beside
) -> None:
    async def work(ctx: Context) -> object:
        return await in_turn(
            ctx, beside, lambda ctx, name: ctx.wait_for("go", name=name), "one", "two"
        )

    story = Story(engine, work)
    assert story.goes_on()
    for signal in ("A", "B"):
        story.signal("go", signal)
        assert story.goes_on()
    noted = engine.work.effects(story.task_id)
    assert story.output == {name: noted[f"wait go ({name})"]["signal"] for name in ("one", "two")}
    assert sorted(story.output.values()) == ["A", "B"]


@BOTH
def test_two_branches_are_each_answered_what_they_have_asked(
    engine: Engine, beside: Beside
) -> None:
    async def work(ctx: Context) -> object:
        return await in_turn(
            ctx, beside, lambda ctx, name: ctx.ask(f"{name}?", name=name), "which", "when"
        )

    story = Story(engine, work)
    for _ in range(2):
        assert story.goes_on()
        question = str(engine.tasks.get(story.task_id).question)
        assert engine.tasks.answer(story.task_id, f"to {question}").ok
    assert story.goes_on()
    assert story.output == {"which": "to which?", "when": "to when?"}


@BOTH
@pytest.mark.parametrize(
    ("wait", "what"),
    [
        (lambda ctx, _: ctx.sleep("1h"), "'sleep'"),
        (lambda ctx, _: ctx.wait_for("go"), "'wait go'"),
        (lambda ctx, name: ctx.ask(name), "'ask'"),
        (lambda ctx, _: ctx.sleep("1h", name="same"), "'sleep (same)'"),
    ],
)
def test_branches_that_nothing_tells_apart_are_refused(
    engine: Engine, beside: Beside, wait: Wait, what: str
) -> None:
    async def work(ctx: Context) -> object:
        return await in_turn(ctx, beside, wait, "one", "two")

    story = Story(engine, work)
    assert story.goes_on()
    task = engine.tasks.get(story.task_id)
    assert (task.failures, engine.work.effects(story.task_id)) == (1, {})
    assert f"{what} is done by two branches of this function" in str(task.error)
    assert "give each a name" in str(task.error)


def test_what_one_branch_calls_and_others_await_has_the_order_of_the_calls(
    engine: Engine, clock: ManualClock
) -> None:
    async def work(ctx: Context) -> object:
        naps = {"long": ctx.sleep("5h"), "short": ctx.sleep("1h")}
        return await in_turn(ctx, gathered, lambda _, name: naps[name], *naps)

    story = Story(engine, work)
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    assert "note short" in engine.work.effects(story.task_id)
    clock.advance(4 * HOUR)
    assert story.goes_on()
    assert story.output == {"long": "None", "short": "None"}


@BOTH
def test_a_wait_beside_a_sleep_times_out(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    async def hear(ctx: Context) -> str:
        try:
            await ctx.wait_for("go", timeout="1h")
        except TimeoutError:
            return "late"
        return "heard"

    async def work(ctx: Context) -> object:
        # As many as have to read what is remembered while the first has read it.
        return await beside(hear(ctx), *(ctx.sleep("2h") for _ in range(12)))

    story = Story(engine, work)
    for _ in range(3):
        assert story.goes_on()
        clock.advance(HOUR)
    assert story.output == ["late", *[None] * 12]
