"""The standalone context: steps called as plain functions, without a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Holdfast, InvalidInput
from holdfast.testing import StandaloneContext
from tests.contract.testing import shop_program as shop

hf = Holdfast("sqlite:///nowhere.db")


@hf.task
def double(number: int) -> int:
    return 2 * number


@hf.task
async def halve(number: int) -> float:
    return number / 2


def test_effects_are_done_and_kept_and_sleeps_are_noted() -> None:
    ctx = StandaloneContext()
    assert shop.charge(ctx, 7) == "paid 7"
    assert ctx.effects == {"note": 5, "charge": "paid 7"}
    ctx = StandaloneContext(signals={"confirmed": "mail"})
    with Holdfast("sqlite:///unused.db"):
        step: Any = shop.welcome.signature.function
        with pytest.raises(Exception, match="folder"):
            step(ctx, "ada")
    assert ctx.sleeps == [7 * 86_400]
    assert ctx.effects == {"open account": "account of ada"}


def test_everything_that_a_step_may_ask_is_answered(tmp_path: Path) -> None:
    ctx = StandaloneContext(
        signals={"go": ["first", "second"], "late": TimeoutError},
        answers=["yes"],
        attempt=3,
        folder=tmp_path,
        taken_leases=["printer"],
    )

    def step(ctx: Context) -> list[Any]:
        ctx.guard()
        ctx.log("begun")
        ctx.progress({"half": True})
        with pytest.raises(TimeoutError, match="late"):
            ctx.wait_for("late", timeout="1d")
        return [
            ctx.attempt,
            ctx.check().ok,
            ctx.wait_for("go"),
            ctx.wait_for("go"),
            ctx.ask("really?"),
            ctx.map(double, [1, 2]),
            ctx.map(halve, [1]),
            ctx.spawn(double, 4)[:2],
            ctx.artifact("note.txt", "text").read_text(),
            ctx.lease("printer", "1m"),
            getattr(ctx.lease("scanner", "1m"), "fence", None),
            ctx.effect("twice", lambda: (1, 2)),
            ctx.effect("twice", lambda: ctx.effect_id("twice").rpartition("/")[2]),
        ]

    assert step(ctx) == [
        *(3, True, "first", "second", "yes", [2, 4], [0.5], "t_", "text", None, 1),
        *([1, 2], "twice #2"),
    ]
    assert (ctx.logs, ctx.notes, ctx.asked) == (["begun"], [{"half": True}], ["really?"])
    assert [each.payload for each in ctx.spawned] == [{"number": 4}]
    assert ctx.artifacts == {"note.txt": b"text"}


def test_coroutines_await_their_context() -> None:
    ctx = StandaloneContext(answers=["yes"])

    async def step() -> list[Any]:
        async def effect() -> str:
            await asyncio.sleep(0)
            return "done"

        await ctx.guard.aio()
        await ctx.sleep(5)
        return [
            await ctx.effect("it", effect),
            await ctx.ask("really?"),
            await ctx.map(halve, [4]),
        ]

    assert asyncio.run(step()) == ["done", "yes", [2.0]]
    assert ctx.sleeps == [5]

    async def call_plain() -> str:
        return shop.charge(StandaloneContext(asynchronous=False), 7)

    assert asyncio.run(call_plain()) == "paid 7"


def test_what_the_test_does_not_give_is_asked_for() -> None:
    ctx = StandaloneContext(signals={"go": 1})
    with pytest.raises(
        InvalidInput, match="waits for 'stop', and the signals of the test are 'go'"
    ):
        ctx.wait_for("stop")
    with pytest.raises(InvalidInput, match="asks 'why', and the test gives no answer"):
        ctx.ask("why")
    with pytest.raises(InvalidInput, match="folder"):
        ctx.artifact("note.txt", "text")
