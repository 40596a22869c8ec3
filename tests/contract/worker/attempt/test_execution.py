"""What becomes of functions that a worker runs: failures, cancels, timeouts, bad results."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from typing import Any

import pytest

from holdfast import AsyncContext, AttemptEnded, Context, Holdfast, InvalidInput, TaskFailed
from holdfast.engine.engine import engine_of
from holdfast.worker.pool.worker_attempts import LOOK_EVERY
from tests.contract.worker.function_workers import store_worker
from tests.race.racers import eventually

PATIENCE = 30


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def test_a_failing_function_is_tried_again_and_its_error_kept(hf: Holdfast) -> None:
    calls: list[int] = []

    @hf.task(max_attempts=3, backoff=0)
    def broken(ctx: Context) -> str:
        calls.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("no luck")
        return "made"

    with hf.worker():
        handle = broken.enqueue()
        assert handle.result(PATIENCE) == "made"
    assert calls == [1, 2, 3]
    attempts = hf.tasks.attempts(handle.id)
    assert [each.outcome for each in attempts] == ["failed", "failed", "completed"]
    assert attempts[0].error["message"] == "no luck"


def test_a_worker_logs_what_raised_with_its_traceback_and_a_final_failure_as_an_error(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    @hf.task(max_attempts=2, backoff=0)
    def broken() -> str:
        raise ValueError("no luck\nand more of it")

    with hf.worker():
        handle = broken.enqueue()
        with pytest.raises(TaskFailed, match="and more of it"):
            handle.result(PATIENCE)
    logged = [each for each in caplog.records if each.name == "holdfast.worker.failures"]
    assert [each.levelname for each in logged] == ["WARNING", "ERROR"]
    told = [each.getMessage().splitlines() for each in logged]
    assert [lines[0] for lines in told] == [
        f"attempt 1 of broken ({handle.id}) raised ValueError: no luck; it is tried again",
        f"attempt 2 of broken ({handle.id}) raised ValueError: no luck; it is not tried again",
    ]
    for lines in told:
        # The first frame is the step's own.
        assert re.match(r'  File ".*test_execution.py", line \d+, in broken', lines[2])
        assert lines[-2:] == ["ValueError: no luck", "and more of it"]


def test_an_exception_of_any_kind_fails_its_task_and_not_the_worker(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def leave() -> None:
        sys.exit(3)

    @hf.task(max_attempts=1)
    async def interrupt() -> None:
        raise KeyboardInterrupt

    @hf.task(max_attempts=1)
    async def give_up() -> None:
        raise asyncio.CancelledError

    @hf.task(max_attempts=1)
    def mumble() -> None:
        raise Unspeakable

    @hf.task
    def fine() -> str:
        return "fine"

    with hf.worker(concurrency=1):
        for handle, said in (
            (leave.enqueue(), "SystemExit: 3"),
            (interrupt.enqueue(), "KeyboardInterrupt"),
            (give_up.enqueue(), "CancelledError"),
            (mumble.enqueue(), "Unspeakable: its message cannot be shown"),
        ):
            with pytest.raises(TaskFailed, match=f"ended failed: {said}$"):
                handle.result(PATIENCE)
        assert fine.enqueue().result(PATIENCE) == "fine"


def test_a_result_that_cannot_be_kept_fails_without_another_try(store_url: str) -> None:
    with Holdfast(store_url, max_output=9_000) as hf:

        @hf.task
        def opaque() -> object:
            return object()

        @hf.task
        def wrong(value: Any) -> int:  # noqa: ANN401 - what it is given is the test's to say
            made: int = value
            return made

        @hf.task
        def large() -> str:
            return "x" * 10_000

        with hf.worker():
            for identifier, said in (
                (opaque.enqueue().id, "return: is not JSON"),
                (wrong.enqueue("many").id, "return: Input should be a valid integer"),
                (large.enqueue().id, "output: is 10002 bytes of JSON; at most 9000 are kept"),
            ):
                row = engine_of(hf).outcomes.wait(identifier).result(PATIENCE)
                assert (row["status"], said in row["error"]) == ("failed", True), row["error"]
                assert hf.tasks.get(identifier).failures == 1


def test_an_argument_that_no_longer_fits_fails_without_another_try(
    hf: Holdfast, store_url: str
) -> None:
    @hf.task
    def job(number: str) -> str:
        return number

    handle = job.enqueue("seven")
    with Holdfast(store_url) as newer:

        @newer.task(name="job")
        def changed(number: int) -> int:
            return number

        with newer.worker(), pytest.raises(TaskFailed, match="number: Input should be a valid int"):
            handle.result(PATIENCE)
    assert hf.tasks.get(handle.id).failures == 1


def test_a_cancel_stops_a_coroutine_and_its_guard_refuses(hf: Holdfast) -> None:
    began = threading.Event()
    stopped: list[str] = []

    @hf.task
    async def endless(ctx: AsyncContext) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(AttemptEnded):
                await ctx.guard.aio()
            stopped.append(ctx.check().reason or "")
            raise

    with hf.worker():
        handle = endless.enqueue()
        assert began.wait(PATIENCE)
        assert hf.tasks.cancel(handle.id).ok
        with pytest.raises(TaskFailed, match="cancelled"):
            handle.result(PATIENCE)
    assert stopped == ["cancelled"]


def test_a_cancel_by_another_process_stops_a_step_long_before_its_next_renewal(
    store_url: str,
) -> None:
    # And nothing but a hint has the worker look.
    seldom = {"lease": 7200, "renewal": 3600, "poll": 3600}
    with Holdfast(store_url, **seldom) as hf, Holdfast(store_url) as other:
        began, ended = threading.Event(), threading.Event()

        @hf.task
        def plain(ctx: Context) -> None:
            began.set()
            if eventually(lambda: ctx.ended):
                ended.set()

        with hf.worker() as worker:
            handle = plain.enqueue()
            assert began.wait(PATIENCE)
            # Once it looks no more by itself.
            now = engine_of(hf).clock.monotonic
            held = store_worker(worker)._held  # noqa: SLF001
            assert eventually(
                lambda: now() > held._looked_at + 3 * LOOK_EVERY  # noqa: SLF001
            )
            assert other.tasks.cancel(handle.id).ok
            assert ended.wait(PATIENCE)
        assert [each.outcome for each in hf.tasks.attempts(handle.id)] == ["cancelled"]


def test_a_step_longer_than_its_timeout_fails_and_its_late_result_is_refused(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    late = threading.Event()

    @hf.task(timeout="50ms", max_attempts=1)
    async def slow() -> None:
        await asyncio.Event().wait()

    @hf.task(timeout="50ms", max_attempts=1)
    def stubborn() -> None:
        assert late.wait(PATIENCE)

    with hf.worker(concurrency=2):
        for job in (slow, stubborn):
            with pytest.raises(TaskFailed, match=r"TimeoutError: ran longer than 0\.05 s"):
                job.enqueue().result(PATIENCE)
        late.set()
    assert "its report was refused" in caplog.text


def test_progress_is_stored_and_a_bad_note_hurts_nobody_else(store_url: str) -> None:
    with Holdfast(store_url, lease=60, renewal=0.05) as hf:
        noted = threading.Event()

        @hf.task
        def careless(ctx: Context) -> str:
            for bad in (object(), "\ud800", "x" * 100_000):
                with pytest.raises(InvalidInput, match=r"^progress: "):
                    ctx.progress(bad)
            assert noted.wait(PATIENCE)
            return "done"

        @hf.task
        def careful(ctx: Context) -> object:
            note = {"done": 1}
            ctx.progress(note)
            note["done"] = 2
            assert eventually(lambda: hf.tasks.get(ctx.task_id).progress is not None)
            noted.set()
            return hf.tasks.get(ctx.task_id).progress

        with hf.worker(concurrency=2):
            first, second = careless.enqueue(), careful.enqueue()
            assert first.result(PATIENCE) == "done"
            assert second.result(PATIENCE) == {"done": 1}
