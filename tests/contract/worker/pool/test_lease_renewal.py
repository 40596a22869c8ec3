"""How a worker keeps its leases, and when it stops vouching for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from holdfast import Context, Holdfast
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine, engine_of
from holdfast.worker.pool.lease_renewal import Heartbeat
from tests.contract.task_states import create
from tests.contract.worker.function_workers import execution_of
from tests.race.racers import eventually

PATIENCE = 30


def renewed(engine: Engine, task_id: str) -> Callable[[], bool]:
    """Whether the lease of a task has been renewed since now."""
    before = engine.tasks.get(task_id).lease
    assert before is not None

    def look() -> bool:
        lease = engine.tasks.get(task_id).lease
        return lease is not None and lease.expires_at > before.expires_at

    return look


@contextmanager
def stuck(engine: Engine) -> Iterator[None]:
    """A writer that hangs in the middle of its work."""
    reached, free = threading.Event(), threading.Event()

    def hang(_: Sequence[str]) -> None:
        reached.set()
        assert free.wait(PATIENCE)

    leave = engine.on_end(hang)
    ending = engine.tasks.cancel.submit(create(engine))
    assert reached.wait(PATIENCE)
    try:
        yield
    finally:
        free.set()
        assert ending.result(PATIENCE).ok
        leave()


def test_a_lease_lasts_as_long_as_it_is_renewed(engine: Engine, clock: ManualClock) -> None:
    execution = execution_of(engine)
    heartbeat = Heartbeat(engine, lambda: [execution])
    for _ in range(9):
        is_renewed = renewed(engine, execution.task_id)
        clock.advance(heartbeat.step())
        heartbeat.step()
        assert eventually(is_renewed)
        assert eventually(lambda: heartbeat.step() == 10)
        assert engine.work.recover() == []
    assert clock.monotonic() == 90
    assert not execution.ended.is_set()
    clock.advance(30)
    assert [each.ok for each in engine.work.recover()] == [True]


def test_an_attempt_ends_itself_when_the_store_does_not_answer_in_time(
    engine: Engine, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    execution = execution_of(engine)
    with stuck(engine):
        heartbeat = Heartbeat(engine, lambda: [execution])
        clock.advance(heartbeat.step())
        assert heartbeat.step() == 20
        clock.advance(19)
        heartbeat.step()
        assert not execution.ended.is_set()
        clock.advance(1)
        heartbeat.step()
        assert execution.ended.is_set()
    assert "could not be renewed before its lease ran out" in caplog.text


def test_a_heartbeat_with_nothing_left_to_keep_rests_though_the_store_does_not_answer(
    engine: Engine, clock: ManualClock
) -> None:
    running = [execution_of(engine)]
    with stuck(engine):
        heartbeat = Heartbeat(engine, lambda: running)
        clock.advance(heartbeat.step())
        heartbeat.step()
        running.clear()
        clock.advance(10)
        assert heartbeat.step() == 10


def test_an_attempt_that_lost_its_lease_ends_with_the_next_renewal(
    engine: Engine, clock: ManualClock
) -> None:
    lost, kept = execution_of(engine), execution_of(engine)
    heartbeat = Heartbeat(engine, lambda: [lost, kept])
    assert engine.tasks.cancel(lost.task_id).ok
    clock.advance(heartbeat.step())
    assert eventually(lambda: heartbeat.step() == 10)
    assert lost.ended.is_set()
    assert not kept.ended.is_set()


def test_a_busy_function_keeps_its_lease_for_three_times_its_length(store_url: str) -> None:
    with Holdfast(store_url, lease=2, renewal=0.1) as hf:

        @hf.task
        def busy(ctx: Context) -> int:
            until = engine_of(hf).now() + 3 * 2 * MICROSECONDS
            while engine_of(hf).now() < until:
                sum(range(10_000))
            return ctx.attempt

        with hf.worker(concurrency=1):
            assert busy.enqueue().result(PATIENCE) == 1


def test_an_attempt_keeps_its_lease_when_an_older_one_of_its_task_returns(store_url: str) -> None:
    with Holdfast(store_url, lease=60, renewal=0.05) as hf:
        began, again, returned = threading.Event(), threading.Event(), threading.Event()

        @hf.task(max_attempts=1)
        def job(ctx: Context) -> str:
            if ctx.attempt == 1:
                began.set()
                assert again.wait(PATIENCE)
                returned.set()
                return "old"
            again.set()
            assert returned.wait(PATIENCE)
            assert all(eventually(renewed(engine_of(hf), ctx.task_id)) for _ in range(3))
            return "new"

        with hf.worker(concurrency=2):
            handle = job.enqueue()
            assert began.wait(PATIENCE)
            assert hf.tasks.cancel(handle.id).ok
            assert hf.tasks.retry(handle.id).ok
            assert handle.result(PATIENCE) == "new"


def test_a_report_that_waits_for_its_commit_does_not_hold_up_other_coroutines(
    hf: Holdfast,
) -> None:
    committing, turned = threading.Event(), threading.Event()
    met: list[bool] = []

    @hf.task
    async def quick() -> None: ...

    @hf.task
    async def other() -> None:
        assert await asyncio.to_thread(committing.wait, PATIENCE)
        turned.set()

    def hold_the_writer(_: Sequence[str]) -> None:
        committing.set()
        met.append(turned.wait(PATIENCE))

    with hf.worker(concurrency=2):
        engine_of(hf).on_end(hold_the_writer)
        handles = [other.enqueue(), quick.enqueue()]
        for handle in handles:
            handle.result(2 * PATIENCE)
    assert met[0]
