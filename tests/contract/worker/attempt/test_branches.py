"""Branches of one function beside each other: each goes on with what is its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from holdfast import AsyncContext, Context
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from tests.contract.task_states import finish
from tests.contract.worker.attempt.test_combined_waits import (
    BOTH,
    HOUR,
    Beside,
    Children,
    Story,
    gathered,
    in_group,
)

Wait = Callable[[AsyncContext, str], Awaitable[Any]]


async def in_turn(ctx: AsyncContext, beside: Beside, wait: Wait, *names: str) -> dict[str, object]:
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

    async def work(ctx: AsyncContext) -> object:
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
    async def work(ctx: AsyncContext) -> object:
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
    async def work(ctx: AsyncContext) -> object:
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
def test_two_branches_have_each_what_its_own_effect_gave(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    async def work(ctx: AsyncContext) -> object:
        gave = await in_turn(
            ctx, beside, lambda ctx, name: ctx.effect(f"open {name}", str, name), "one", "two"
        )
        await ctx.sleep("1h")
        return gave

    story = Story(engine, work)
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == {"one": "one", "two": "two"}


@BOTH
def test_two_branches_have_each_what_its_own_children_gave(engine: Engine, beside: Beside) -> None:
    numbers = {"one": 1, "two": 2}

    async def work(ctx: AsyncContext) -> object:
        return await in_turn(
            ctx,
            beside,
            lambda ctx, name: ctx.map(Children(), [numbers[name]], name=name),
            *numbers,
        )

    story = Story(engine, work)
    assert story.goes_on()
    for child in engine.tasks.list(parent=story.task_id):
        finish(engine, child.id, child.payload["number"])
    assert story.goes_on()
    assert story.output == {"one": "[1]", "two": "[2]"}


@BOTH
def test_two_branches_know_each_its_own_child_by_the_title(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    async def work(ctx: AsyncContext) -> object:
        gave = await in_turn(
            ctx, beside, lambda ctx, name: ctx.spawn(Children(name), 1), "one", "two"
        )
        await ctx.sleep("1h")
        return gave

    story = Story(engine, work)
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    children = engine.tasks.list(parent=story.task_id)
    assert story.output == {child.title: child.id for child in children}


@pytest.mark.parametrize(
    ("wait", "told"),
    [
        (lambda ctx, _: ctx.sleep("1h"), "name: 'sleep' is done by two .* name=…"),
        (lambda ctx, _: ctx.wait_for("go"), "name: 'wait go' is done by two .* name=…"),
        (lambda ctx, name: ctx.ask(name), "name: 'ask' is done by two .* name=…"),
        (lambda ctx, _: ctx.sleep("1h", name="same"), r"name: 'sleep \(same\)' is done by two "),
        (lambda ctx, name: ctx.effect("mail", str, name), "effect: 'mail' is done by two .* its "),
        (lambda ctx, _: ctx.map(Children(), [1]), "name: 'map child' is done by two .* name=…"),
        (lambda ctx, _: ctx.spawn(Children(), 1), r"title: 'spawn child' is .*[.]using\(title=…\)"),
    ],
)
def test_branches_that_nothing_tells_apart_are_refused_for_good(
    engine: Engine, wait: Wait, told: str
) -> None:
    async def work(ctx: AsyncContext) -> object:
        return await in_turn(ctx, in_group, wait, "one", "two")

    story = Story(engine, work)
    assert story.goes_on()
    # Tried again, one branch could go on with what the other has left until that one comes.
    assert story.state == "failed"
    assert re.match(told, engine.tasks.get(story.task_id).error["message"])


@pytest.mark.parametrize("after", [None, "wait", "error"])
def test_a_function_that_catches_the_refusal_has_failed_all_the_same(
    engine: Engine, after: str | None
) -> None:
    async def work(ctx: AsyncContext) -> None:
        async def mail(name: str) -> str:
            return str(await ctx.effect("mail", str, name))

        await asyncio.gather(mail("one"), mail("two"), return_exceptions=True)
        if after == "wait":
            await ctx.sleep("1h")
        elif after == "error":
            raise ValueError("another")

    story = Story(engine, work)
    assert story.goes_on()
    assert story.state == "failed"
    assert "'mail' is done by two branches" in str(engine.tasks.get(story.task_id).error)


def test_branches_one_after_the_other_are_refused_too(engine: Engine) -> None:
    async def work(ctx: AsyncContext) -> None:
        for name in ("one", "two"):
            await asyncio.create_task(_mail(ctx, name))

    story = Story(engine, work)
    assert story.goes_on()
    assert story.state == "failed"
    assert engine.work.effects(story.task_id) == {"mail": "one"}


async def _mail(ctx: AsyncContext, name: str) -> None:
    await ctx.effect("mail", str, name)


def test_a_branch_that_comes_first_to_what_another_did_before_ends_in_no_result(
    engine: Engine, clock: ManualClock
) -> None:
    async def work(ctx: AsyncContext) -> None:
        if ctx.attempt == 1:
            await asyncio.create_task(_mail(ctx, "one"))
            await ctx.sleep("1h")
        await asyncio.gather(_mail(ctx, "two"), _mail(ctx, "one"))

    story = Story(engine, work)
    assert story.goes_on()
    assert engine.work.effects(story.task_id)["mail"] == "one"
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.state == "failed"


def test_threads_of_one_function_are_branches(engine: Engine) -> None:
    both = Barrier(2)

    def work(ctx: Context) -> object:
        def mail(name: str) -> object:
            both.wait(30)
            return ctx.effect(f"to {name}", str, name), ctx.effect("mail", str, name)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(mail, ["one", "two"]))

    story = Story(engine, work)
    assert story.goes_on()
    assert story.state == "failed"
    assert "'mail' is done by two branches" in str(engine.tasks.get(story.task_id).error)
    assert engine.work.effects(story.task_id).keys() >= {"to one", "to two"}


@BOTH
def test_repeated_effects_and_empty_maps_of_a_branch_need_no_name_of_their_own(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    async def work(ctx: AsyncContext) -> object:
        async def branch(name: str) -> list[object]:
            gave = [await ctx.effect(name, str, n) for n in range(2)]
            ids = [await ctx.spawn(Children(name), n) for n in range(2)]
            return [*gave, len(set(ids)), *await ctx.map(Children(), [])]

        gave = await beside(branch("one"), branch("two"))
        await ctx.sleep("1h")
        return gave

    story = Story(engine, work)
    assert story.goes_on()
    noted = engine.work.effects(story.task_id).keys() - {"sleep"}
    each = ("{}", "{} #2", "spawn {}", "spawn {} #2")
    assert noted == {form.format(name) for form in each for name in ("one", "two")}
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == [["0", "1", 2], ["0", "1", 2]]


def test_waits_called_in_one_branch_and_awaited_in_others_keep_the_order_of_the_calls(
    engine: Engine, clock: ManualClock
) -> None:
    async def work(ctx: AsyncContext) -> object:
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
    async def hear(ctx: AsyncContext) -> str:
        try:
            await ctx.wait_for("go", timeout="1h")
        except TimeoutError:
            return "late"
        return "heard"

    async def work(ctx: AsyncContext) -> object:
        # As many as have to read what is remembered while the first has read it.
        return await beside(hear(ctx), *(ctx.sleep("2h") for _ in range(12)))

    story = Story(engine, work)
    for _ in range(3):
        assert story.goes_on()
        clock.advance(HOUR)
    assert story.output == ["late", *[None] * 12]
