"""A coroutine that keeps the worker's loop from the others is named, with how long it did."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import pytest

from holdfast import Context, Holdfast
from holdfast.worker.pool import lease_renewal, loop_watch
from tests.race.racers import eventually

PATIENCE = 30


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_watch, "BLOCKED_SECONDS", 0.05)
    monkeypatch.setattr(lease_renewal, "LOOK_EVERY", 0.02)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


def test_a_blocked_loop_is_told_with_the_step_its_line_and_how_long_it_was(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    free = threading.Event()

    @hf.task
    async def block() -> None:
        free.wait(PATIENCE)

    with hf.worker():
        handle = block.enqueue()
        assert eventually(lambda: len(warnings(caplog)) == 1)
        free.set()
        handle.result(PATIENCE)
        assert eventually(lambda: len(warnings(caplog)) == 2)
    name = f"attempt 1 of block ({handle.id})"
    began, ended = warnings(caplog)
    assert began.startswith(f"{name} blocks the loop of this worker's coroutines at {__file__}:")
    assert "asyncio.to_thread" in began
    assert ended.startswith(f"{name} has blocked the loop of the coroutines for ")


def test_a_part_of_a_step_that_blocks_is_told_as_the_step_and_others_are_not(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    @hf.task
    async def patient(ctx: Context) -> None:
        for _ in range(1_000_000):
            if ctx.ended:
                return
            await asyncio.sleep(0)

    @hf.task
    async def split() -> None:
        async def part() -> None:
            await asyncio.sleep(0)
            assert eventually(lambda: bool(warnings(caplog)))

        async with asyncio.TaskGroup() as group:
            group.create_task(part())

    with hf.worker():
        waiting = patient.enqueue()
        split.enqueue().result(PATIENCE)
        assert hf.tasks.cancel(waiting.id).ok
    about_loops = [each for each in warnings(caplog) if "loop" in each]
    assert all("of split (" in each for each in about_loops)


def test_a_coroutine_that_awaits_and_a_function_that_blocks_are_not_told_of(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    @hf.task
    async def patient() -> None:
        await asyncio.sleep(0.2)

    @hf.task
    def block() -> None:
        time.sleep(0.2)

    with hf.worker():
        for each in (patient.enqueue(), block.enqueue()):
            each.result(PATIENCE)
    assert warnings(caplog) == []
