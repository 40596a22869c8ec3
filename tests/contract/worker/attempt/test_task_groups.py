"""A function that waits or fails inside an `asyncio.TaskGroup` does so as one without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import AsyncContext, Holdfast, TaskFailed

PATIENCE = 30


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url) as opened:
        yield opened


async def together(*waits: Any) -> list[Any]:
    async with asyncio.TaskGroup() as group, asyncio.TaskGroup() as inner:
        outer = group.create_task(waits[0])
        tasks = [outer, *(inner.create_task(each) for each in waits[1:])]
    return [task.result() for task in tasks]


def test_waits_in_groups_hold_no_worker_and_cost_no_attempt(hf: Holdfast) -> None:
    @hf.task
    async def double(number: int) -> int:
        return 2 * number

    @hf.task(max_attempts=1)
    async def work(ctx: AsyncContext) -> object:
        return await together(
            ctx.sleep(0.01), ctx.wait_for("go"), ctx.map(double, [1]), ctx.sleep("20ms")
        )

    with hf.worker(concurrency=1):
        handle = work.enqueue()
        assert hf.signal(handle.id, "go", "gone").ok
        assert handle.result(PATIENCE) == [None, "gone", [2], None]
    outcomes = [attempt.outcome for attempt in hf.tasks.attempts(handle.id)]
    assert set(outcomes[:-1]) == {"released"}


def test_an_error_in_a_task_group_beside_a_wait_fails_the_task_with_its_message(
    hf: Holdfast,
) -> None:
    @hf.task(max_attempts=1)
    async def divide(number: int) -> float:
        return 1 / number

    async def stumble() -> None:
        raise ValueError("stumbled")

    @hf.task(max_attempts=3, backoff=0)
    async def child_failed(ctx: AsyncContext) -> object:
        return await together(ctx.map(divide, [0]), ctx.sleep(0))

    @hf.task(max_attempts=2, backoff=0)
    async def stumbled(ctx: AsyncContext) -> object:
        return await together(stumble(), ctx.sleep("1h"))

    with hf.worker():
        handles = child_failed.enqueue(), stumbled.enqueue()
        for handle, message in zip(handles, ("division by zero", "TaskGroup"), strict=True):
            with pytest.raises(TaskFailed, match=message):
                handle.result(PATIENCE)
    assert [hf.tasks.get(handle.id).failures for handle in handles] == [1, 2]
