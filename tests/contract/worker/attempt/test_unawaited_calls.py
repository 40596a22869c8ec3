"""A call of the context that a coroutine forgets to await fails the step, and says which it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import AsyncContext, Holdfast, TaskFailed
from holdfast.engine.engine import engine_of

PATIENCE = 30


def child(page: int) -> int:
    return page


CALLS: dict[str, Callable[[AsyncContext, Any], Any]] = {
    "ctx.effect('pay', …)": lambda ctx, _: ctx.effect("pay", str),
    "ctx.sleep('1h')": lambda ctx, _: ctx.sleep("1h"),
    "ctx.wait_for('go')": lambda ctx, _: ctx.wait_for("go"),
    "ctx.ask('May I?')": lambda ctx, _: ctx.ask("May I?"),
    "ctx.map(child, …)": lambda ctx, task: ctx.map(task, [1]),
    "ctx.spawn(child, …)": lambda ctx, task: ctx.spawn(task, 1),
    "ctx.artifact('a.txt', …)": lambda ctx, _: ctx.artifact("a.txt", "a"),
    "ctx.lease('printer', …)": lambda ctx, _: ctx.lease("printer", "1m"),
    "ctx.guard.aio()": lambda ctx, _: ctx.guard.aio(),
    "ctx.check.aio()": lambda ctx, _: ctx.check.aio(),
}


def test_each_call_that_is_not_awaited_fails_the_step_for_good_and_is_named(hf: Holdfast) -> None:
    task = hf.task(child)

    @hf.task
    async def forget(ctx: AsyncContext, call: str) -> str:
        CALLS[call](ctx, task)
        return "done"

    with hf.worker():
        handles = {call: forget.enqueue(call) for call in CALLS}
        for call, handle in handles.items():
            with pytest.raises(TaskFailed) as failed:
                handle.result(PATIENCE)
            said = f"{call}: nobody awaits it, so that nothing was done: write await {call}; "
            assert said in str(failed.value)
            assert engine_of(hf).work.effects(handle.id) == {}
            assert hf.tasks.get(handle.id).attempt == 1
    assert [each.id for each in hf.tasks.list(agent="default") if each.step == "child"] == []


def test_calls_that_are_awaited_later_or_by_a_task_or_cancelled_count_as_awaited(
    hf: Holdfast,
) -> None:
    done: list[str] = []

    @hf.task
    async def remember(ctx: AsyncContext) -> bool:
        later = ctx.effect("later", done.append, "later")
        task = asyncio.create_task(ctx.effect("task", done.append, "task"))
        await asyncio.gather(later, task, ctx.guard.aio())
        unwanted = asyncio.create_task(ctx.effect("unwanted", done.append, "unwanted"))
        unwanted.cancel()
        await asyncio.wait({unwanted})
        return unwanted.cancelled()

    with hf.worker():
        assert remember.enqueue().result(PATIENCE) is True
    assert sorted(done) == ["later", "task"]


def test_a_step_that_raises_beside_a_call_that_it_forgot_reports_its_own_error(
    hf: Holdfast,
) -> None:
    called: list[Any] = []

    @hf.task(max_attempts=1)
    async def forget(ctx: AsyncContext) -> None:
        called.append(ctx.effect("pay", str))
        raise ConnectionError("nobody is there")

    with hf.worker(), pytest.raises(TaskFailed, match="ConnectionError: nobody is there"):
        forget.enqueue().result(PATIENCE)
    called[0].close()
