"""A function that neither says nor does anything for too long is ended as by a timeout."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from holdfast import Context, Holdfast, InvalidInput, TaskFailed
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.pool.lease_renewal import Heartbeat
from tests.contract.worker.function_workers import execution_of
from tests.race.racers import eventually

PATIENCE = 30
SAID = "was silent for longer than 0.2 s"


def test_a_silent_function_or_coroutine_fails_its_attempt_and_is_tried_again(hf: Holdfast) -> None:
    free = threading.Event()

    @hf.task(idle_timeout=0.2, max_attempts=2, backoff=0)
    def pack(ctx: Context) -> str:
        if ctx.attempt == 1:
            assert free.wait(PATIENCE)
        return "packed"

    @hf.task(idle_timeout="200ms", max_attempts=1)
    async def ship() -> None:
        await asyncio.Event().wait()

    with hf.worker():
        packed, shipped = pack.enqueue(), ship.enqueue()
        assert packed.result(PATIENCE) == "packed"
        with pytest.raises(TaskFailed, match=SAID):
            shipped.result(PATIENCE)
        free.set()
    (first, _) = hf.tasks.attempts(packed.id)
    assert first.outcome == "failed"
    assert hf.tasks.get(packed.id).failures == 1


def say(ctx: Context) -> None:
    ctx.log("on it")


def show(ctx: Context) -> None:
    ctx.progress(1)


def remember(ctx: Context) -> None:
    ctx.effect("pay", str)


def write(ctx: AttemptContext) -> None:
    # As a line that is printed or logged does.
    assert ctx.open_step_log() is not None


@pytest.mark.parametrize("act", [say, show, remember, write])
def test_all_that_a_function_says_or_does_counts_as_a_sign_of_life(
    engine: Engine, clock: ManualClock, act: Callable[[Any], None]
) -> None:
    execution = execution_of(engine)
    execution.limit_silence(8)
    heartbeat = Heartbeat(engine, lambda: [execution])
    clock.advance(7)
    act(execution.context)
    clock.advance(heartbeat.step())
    heartbeat.step()
    assert not execution.ended.is_set()
    assert eventually(lambda: (heartbeat.step(), not heartbeat._renewals)[1])  # noqa: SLF001
    clock.advance(heartbeat.step())
    assert clock.monotonic() == 15
    heartbeat.step()
    assert execution.ended.is_set()
    execution.context.close_step_log()


def test_an_idle_timeout_belongs_to_the_function_and_is_a_time(hf: Holdfast) -> None:
    with pytest.raises(InvalidInput, match="idle_timeout"):
        hf.task(idle_timeout="soon")
    with pytest.raises(InvalidInput, match="idle_timeout"):
        hf.task(idle_timeout=0)
    task = hf.task(idle_timeout=3)(logging.getLogger)
    with pytest.raises(InvalidInput, match="belongs to the function"):
        cast("Any", task).using(idle_timeout=4)
    step = hf.workflow("flow").step(idle_timeout=3)
    assert step(logging.getLogger) is logging.getLogger
