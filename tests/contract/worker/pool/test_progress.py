"""Others see the progress of a step soon after the step has said it, and not with its renewals."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from holdfast import Context, Holdfast
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.worker.pool.lease_renewal import PROGRESS_EVERY, Heartbeat
from tests.contract.worker.file_steps import file_steps, shell
from tests.contract.worker.function_workers import execution_of
from tests.race.racers import eventually

PATIENCE = 30
# Nothing is renewed while a test runs, unless there is a progress to tell.
RARELY: dict[str, Any] = {"lease": "1h", "renewal": "20m"}


def test_the_progress_of_functions_and_coroutines_is_seen_while_they_run(store_url: str) -> None:
    with Holdfast(store_url, **RARELY) as hf:
        free = threading.Event()

        @hf.task
        def pack(ctx: Context) -> None:
            ctx.progress({"packed": 1})
            assert free.wait(PATIENCE)

        @hf.task
        async def ship(ctx: Context) -> None:
            ctx.progress("loading")
            ctx.progress("at sea")
            assert await asyncio.to_thread(free.wait, PATIENCE)

        with hf.worker():
            packed, shipped = pack.enqueue(), ship.enqueue()
            assert eventually(lambda: hf.tasks.get(packed.id).progress == {"packed": 1})
            assert eventually(lambda: hf.tasks.get(shipped.id).progress == "at sea")
            free.set()
            packed.result(PATIENCE)
            shipped.result(PATIENCE)


def test_the_last_line_of_a_command_is_seen_while_it_runs(sqlite_url: str, tmp_path: Path) -> None:
    with file_steps(sqlite_url, tmp_path, **RARELY) as steps:
        task_id = steps.enqueue(shell("echo half; while :; do sleep 0.01; done"))
        assert eventually(lambda: steps.hf.tasks.get(task_id).progress == {"log": "half"})
        assert steps.hf.tasks.cancel(task_id).ok
        assert eventually(lambda: steps.idle)


def test_progress_is_told_at_once_and_then_no_more_often_than_people_can_read(
    engine: Engine, clock: ManualClock
) -> None:
    execution = execution_of(engine)
    heartbeat = Heartbeat(engine, lambda: [execution])
    execution.context.on_progress = lambda: heartbeat.note_progress(execution)

    def told() -> object:
        return engine.tasks.get(execution.task_id).progress

    def settle() -> float:
        """Until the answer to a renewal has come; gives when the next step is due."""
        assert eventually(lambda: (heartbeat.step(), not heartbeat._renewals)[1])  # noqa: SLF001
        return heartbeat.step()

    execution.context.progress(1)
    settle()
    assert told() == 1
    execution.context.progress(2)
    execution.context.progress(3)
    assert settle() == PROGRESS_EVERY
    assert told() == 1
    clock.advance(PROGRESS_EVERY)
    settle()
    assert told() == 3
    execution.context.progress(3)
    clock.advance(PROGRESS_EVERY)
    assert settle() > PROGRESS_EVERY
