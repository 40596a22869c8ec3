"""A machine that sleeps while a step runs: on waking, its worker fences itself."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast import AsyncContext, Settings
from holdfast.clock import ManualClock, SystemClock
from holdfast.engine.engine import Engine
from holdfast.worker.pool.lease_renewal import Heartbeat
from tests.contract.task_states import create
from tests.contract.worker.function_workers import execution_of, started, worker_of

PATIENCE = 30
HOUR = 3600.0


class Sleeper(SystemClock):
    """The clock of a machine that can be made to have slept."""

    slept = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.slept


def test_a_coroutine_is_cancelled_within_moments_of_waking(store_url: str) -> None:
    clock, cancelled = Sleeper(), threading.Event()
    settings = Settings(url=store_url, lease=HOUR, renewal=HOUR / 2)

    async def sleep(ctx: AsyncContext) -> None:
        assert not ctx.ended
        clock.slept = 2 * HOUR
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with started(store_url, clock=clock, settings=settings) as engine:
        create(engine)
        with worker_of(engine, sleep, concurrency=1):
            assert cancelled.wait(PATIENCE)


def test_a_step_sees_by_the_clock_alone_that_its_lease_has_run_out(
    engine: Engine, clock: ManualClock
) -> None:
    execution = execution_of(engine)
    clock.advance(engine.settings.lease - 1)
    assert not execution.context.ended
    clock.advance(1)
    assert execution.context.ended
    assert not execution.fail(ValueError("the network is gone"))
    assert not execution.reported


def test_sleeping_through_lease_and_timeout_costs_no_failure(
    engine: Engine, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    execution = execution_of(engine, timeout=HOUR / 2)
    heartbeat = Heartbeat(engine, lambda: [execution])
    clock.advance(8 * HOUR)
    heartbeat.step()
    assert execution.ended.is_set()
    assert [each.ok for each in engine.work.recover()] == [True]
    task = engine.tasks.get(execution.task_id)
    assert (task.status.value, task.failures, task.lost) == ("queued", 0, 1)
    assert "could not be renewed before its lease ran out" in caplog.text
