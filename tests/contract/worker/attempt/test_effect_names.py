"""Names of effects: what is called differently, or again, is done and remembered by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from holdfast import AsyncContext, Context, Holdfast

PATIENCE = 30


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url) as opened:
        yield opened


def test_no_name_of_an_effect_is_that_of_another_or_of_what_else_is_remembered(
    hf: Holdfast,
) -> None:
    done: list[str] = []

    def do(what: str) -> str:
        done.append(what)
        return what

    @hf.task
    def double(number: int) -> int:
        return number * 2

    @hf.task(max_attempts=1)
    def work(ctx: Context) -> list[Any]:
        names = ("mail 2", "mail", "mail", "sleep #2", "sleep", "wait go", "ask", "map double")
        kept = [ctx.effect(name, do, f"{name}, {n}") for n, name in enumerate(names)]
        ctx.sleep(0)
        ctx.sleep(0)
        return [*kept, ctx.wait_for("go"), ctx.map(double, [1]), ctx.map(double, [2])]

    with hf.worker():
        handle = work.enqueue()
        assert hf.signal(handle.id, "go", "gone").ok
        assert handle.result(PATIENCE) == [*done, "gone", [2], [4]]
    assert len(set(done)) == len(done) == 8


def test_each_effect_of_one_name_has_an_id_of_its_own_inside_and_before_it(hf: Holdfast) -> None:
    seen: list[list[str]] = []

    @hf.task(max_attempts=2, backoff=0)
    def work(ctx: Context) -> object:
        ids = [
            ctx.effect("pay", lambda before: [before, ctx.effect_id("pay")], ctx.effect_id("pay"))
            for _ in range(2)
        ]
        seen.append([*chain(*ids), ctx.effect_id("pay")])
        if ctx.attempt == 1:
            raise ConnectionError
        return ids

    with hf.worker():
        handle = work.enqueue()
        handle.result(PATIENCE)
    one, two, three = (f"{handle.id}/1/pay{again}" for again in ("", " #2", " #3"))
    assert seen == [[one, one, two, two, three]] * 2


def test_effects_of_one_name_that_are_under_way_together_have_their_own_ids(hf: Holdfast) -> None:
    @hf.task
    async def work(ctx: AsyncContext) -> object:
        both = asyncio.Barrier(2)

        async def pay(before: str) -> bool:
            await both.wait()
            return ctx.effect_id("pay") == before

        first = ctx.effect("pay", pay, one := ctx.effect_id("pay"))
        second = ctx.effect("pay", pay, two := ctx.effect_id("pay"))
        return [one != two, *await asyncio.gather(second, first)]

    with hf.worker():
        assert work.enqueue().result(PATIENCE) == [True, True, True]
