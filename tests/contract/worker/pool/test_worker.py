"""A worker's life: started, shared, stopped, interrupted."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine, engine_of
from holdfast.store.database import Transaction
from holdfast.threads import DEFAULT_SWITCH_INTERVAL, SWITCH_INTERVAL
from tests.race.racers import eventually

PATIENCE = 30


def open_again(hf: Holdfast) -> AbstractContextManager[Engine]:
    return closing(Engine(hf.settings.url).start())


def test_a_stopping_worker_finishes_what_it_runs_and_claims_nothing_more(hf: Holdfast) -> None:
    began, finish = threading.Event(), threading.Event()

    @hf.task
    def job(name: str) -> str:
        began.set()
        assert finish.wait(PATIENCE)
        return name

    worker = hf.worker(concurrency=2).start()
    running = job.enqueue("running")
    assert began.wait(PATIENCE)
    stopping = [threading.Thread(target=worker.stop) for _ in range(2)]
    for thread in stopping:
        thread.start()
    assert eventually(lambda: worker.stopping)
    # Each of these commits wakes the worker, which has room for one more.
    waiting = [job.enqueue("waiting") for _ in range(20)]
    assert all(thread.is_alive() for thread in stopping)
    finish.set()
    for thread in stopping:
        thread.join(PATIENCE)
    assert running.result(PATIENCE) == "running"
    assert {hf.tasks.get(handle.id).state for handle in waiting} == {"ready"}


def test_a_worker_has_stopped_when_it_is_no_longer_listed(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = hf.worker().start()
    (listed,) = hf.workers.list()
    write = engine_of(hf).database.transact
    about_to, go_on, stopped = (threading.Event() for _ in range(3))

    def wait_before(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever is written
        about_to.set()
        assert go_on.wait(PATIENCE)
        return write(*given, **named)

    worker.drain()
    monkeypatch.setattr(engine_of(hf).database, "transact", wait_before)

    def stop() -> None:
        worker.stop()
        stopped.set()

    thread = threading.Thread(target=stop)
    thread.start()
    assert about_to.wait(PATIENCE)
    assert not stopped.wait(0.1)
    go_on.set()
    thread.join()
    assert listed.name not in [each.name for each in hf.workers.list()]


@pytest.mark.parametrize("begin", [Holdfast.worker, open_again])
@pytest.mark.parametrize(
    ("chosen", "then"), [(DEFAULT_SWITCH_INTERVAL, SWITCH_INTERVAL), (0.002, 0.002)]
)
def test_the_switch_interval_of_threads_is_shortened_unless_the_program_has_chosen_one(
    hf: Holdfast,
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[Holdfast], AbstractContextManager[object]],
    chosen: float,
    then: float,
) -> None:
    assert hf.tasks.list() == []
    interval = chosen

    def choose(seconds: float) -> None:
        nonlocal interval
        interval = seconds

    monkeypatch.setattr(sys, "getswitchinterval", lambda: interval)
    monkeypatch.setattr(sys, "setswitchinterval", choose)
    with begin(hf):
        assert interval == then


def test_a_stopping_worker_lets_a_cancelled_coroutine_clean_up(hf: Holdfast) -> None:
    began, cleaned = threading.Event(), threading.Event()

    @hf.task
    async def endless() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            for _ in range(100):
                await asyncio.sleep(0.001)
            cleaned.set()

    with hf.worker():
        handle = endless.enqueue()
        assert began.wait(PATIENCE)
        assert hf.tasks.cancel(handle.id).ok
    assert cleaned.is_set()


def test_two_workers_of_one_process_share_the_work(hf: Holdfast) -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE)

    @hf.task
    def meet() -> int:
        return meeting.wait()

    with hf.worker(name="anna", concurrency=1), hf.worker(name="bert", concurrency=1):
        handles = meet.enqueue_many([{}, {}])
        assert sorted(handle.result(PATIENCE) for handle in handles) == [0, 1]
    owners = {hf.tasks.attempts(handle.id)[0].owner for handle in handles}
    assert owners == {"anna", "bert"}


def test_a_worker_serves_its_agents_and_tags_only(hf: Holdfast) -> None:
    @hf.task(agent="planner", tags=["gpu"])
    def plan() -> str:
        return "planned"

    @hf.task
    def other() -> None: ...

    left = other.enqueue()
    with hf.worker(agents=["planner"], tags=["gpu", "big"]):
        assert plan.enqueue().result(PATIENCE) == "planned"
    assert hf.tasks.get(left.id).state == "ready"


def test_a_worker_runs_in_a_thread_while_the_main_thread_waits(hf: Holdfast) -> None:
    @hf.task
    def job() -> str:
        return threading.current_thread().name

    worker = hf.worker()
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert job.enqueue().result(PATIENCE).startswith("holdfast-step")
    worker.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_closing_a_holdfast_stops_its_workers_first(store_url: str) -> None:
    began, go_on = threading.Event(), threading.Event()
    hf = Holdfast(store_url)

    @hf.task
    async def job() -> str:
        began.set()
        await asyncio.to_thread(go_on.wait, PATIENCE)
        return "made"

    worker = hf.worker().start()
    handle = job.enqueue()
    assert began.wait(PATIENCE)
    closing = threading.Thread(target=hf.close)
    closing.start()
    assert eventually(lambda: worker.stopping)
    assert closing.is_alive()
    go_on.set()
    closing.join(PATIENCE)
    with Holdfast(store_url) as again:
        assert again.tasks.get(handle.id).output == "made"


def test_a_worker_that_has_stopped_is_not_kept(hf: Holdfast) -> None:
    @hf.task
    def job() -> str:
        return "made"

    with hf.worker() as worker:
        assert job.enqueue().result(PATIENCE) == "made"
    left = [weakref.ref(worker), weakref.ref(hf.worker())]
    del worker
    gc.collect()
    assert [each() for each in left] == [None, None]


def test_recovery_goes_on_after_whatever_it_met(
    store_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Holdfast(store_url, recovery=0.05) as hf:
        met = threading.Event()
        look = engine_of(hf).outcomes.look_for_ends

        def fail_once() -> None:
            # Not for who only hears of ends, who comes here too.
            if met.is_set() or threading.current_thread().name != "holdfast-recovery":
                return look()
            met.set()
            raise ZeroDivisionError

        monkeypatch.setattr(engine_of(hf).outcomes, "look_for_ends", fail_once)
        assert met.wait(PATIENCE)

        @hf.task
        def job() -> None: ...

        handle = job.enqueue()
        assert len(hf.work.claim("gone", lease=0.05)) == 1
        assert eventually(lambda: hf.tasks.get(handle.id).lost == 1)
    assert "recovery could not look; it looks again in 0.05 s" in caplog.text


def test_a_stopping_worker_gives_back_what_is_on_its_way_to_it(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Holdfast(store_url) as hf:

        @hf.task
        def job() -> None: ...

        worker = hf.worker().start()
        job.enqueue().result(PATIENCE)
        reached, go_on = threading.Event(), threading.Event()
        transact = engine_of(hf).database.transact

        def slow(work: Callable[[Transaction], object], **options: bool) -> object:
            reached.set()
            assert go_on.wait(PATIENCE)
            return transact(work, **options)

        monkeypatch.setattr(engine_of(hf).database, "transact", slow)
        enqueued = job.enqueue.submit()
        assert reached.wait(PATIENCE)
        stopping = threading.Thread(target=worker.stop)
        stopping.start()
        assert eventually(lambda: worker.stopping)
        go_on.set()
        stopping.join(PATIENCE)
        assert not stopping.is_alive()
        task = hf.tasks.get(enqueued.result(PATIENCE).id)
        assert (task.state, task.lost) == ("ready", 0)


def test_the_place_of_a_step_that_ran_too_long_is_free_as_soon_as_it_has_returned(
    store_url: str,
) -> None:
    with Holdfast(store_url, poll=600) as hf:
        returned = asyncio.Event()

        @hf.task(timeout=0.05, max_attempts=1)
        async def slow() -> None:
            try:
                await returned.wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)

        @hf.task
        def next_one() -> str:
            return "made"

        with hf.worker(concurrency=1):
            slow.enqueue()
            assert next_one.enqueue().result(PATIENCE) == "made"
