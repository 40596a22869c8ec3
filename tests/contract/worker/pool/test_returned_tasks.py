"""A worker that can begin nothing more: it stops, and gives back what it has claimed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import Holdfast, StoreUnreachable
from holdfast.model.task import Assignment
from holdfast.threads import RunningThread, SystemThreads
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import Invocation
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from tests.contract.task_states import create
from tests.contract.worker.function_workers import OneFunction, started, worker_of
from tests.programs import running
from tests.race.racers import eventually

PROGRAM = """
import asyncio, sys, threading
from concurrent.futures import ThreadPoolExecutor
from holdfast import Context, Holdfast, StoreUnreachable, Worker
from holdfast.model.task import Assignment

hf = Holdfast(sys.argv[1], poll=0.05)
began = threading.Event()

def read() -> None:
    began.set()
    sys.stdin.readline()

@hf.task
async def slow() -> None:
    await asyncio.to_thread(read)

@hf.task(backoff=0)
async def quick() -> None:
    await asyncio.to_thread(lambda: None)

worker = hf.worker(concurrency=2).start()

def watch() -> None:
    pool = ThreadPoolExecutor()
    try:
        while True:
            pool.submit(int)
    except RuntimeError:
        print("ends", flush=True)
    for _ in range(1000):
        if worker.stopping:
            break
        threading.Event().wait(0.01)
    print("stops" if worker.stopping else "goes on", flush=True)

slow.enqueue()
began.wait()
threading.Thread(target=watch, daemon=True).start()
"""


class NoMoreSteps(SystemThreads):
    """A system that starts no thread for a step, as one does that has no more of them."""

    def start(self, name: str, target: Callable[[], None]) -> RunningThread:
        if name == "holdfast-step":
            raise RuntimeError("can't start new thread")
        return super().start(name, target)


def test_a_program_that_ends_claims_nothing_more_and_fails_nothing(
    hf: Holdfast, store_url: str, tmp_path: Path
) -> None:
    @hf.task
    def quick() -> None: ...

    with running(PROGRAM, store_url, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ends\n"
        waiting = [quick.enqueue() for _ in range(5)]
        assert child.stdout.readline() == "stops\n"
        child.communicate("\n")
    tasks = [hf.tasks.get(handle.id) for handle in waiting]
    assert {(task.status.value, task.failures, task.lost) for task in tasks} == {("queued", 0, 0)}


def test_a_worker_that_cannot_begin_a_step_gives_it_back_and_stops(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with started(store_url, threads=NoMoreSteps()) as engine:
        ids = [create(engine) for _ in range(3)]
        worker = worker_of(engine, lambda ctx: ctx.attempt, concurrency=3).start()
        assert eventually(lambda: worker.stopping)
        worker.stop()
        assert {engine.tasks.get(each).state for each in ids} == {"ready"}
        outcomes = [[each.outcome for each in engine.tasks.attempts(task)] for task in ids]
        assert outcomes == [["released"]] * 3
    assert "cannot begin, so that this worker stops: can't start new thread" in caplog.text


class UnreadAtFirst(OneFunction):
    """A program that cannot read what its task needs the first time, as the store is away."""

    def __init__(self) -> None:
        super().__init__(lambda ctx: ctx.attempt)

    def bind(self, assignment: Assignment, context: AttemptContext) -> Invocation:
        if assignment.attempt == 1:
            raise StoreUnreachable("not now")
        return super().bind(assignment, context)


def test_a_task_whose_needs_cannot_be_read_is_given_back_and_pays_nothing(store_url: str) -> None:
    with started(store_url) as engine:
        task_id = create(engine)
        with StoreWorker(engine, UnreadAtFirst(), WorkerOptions()):
            assert eventually(lambda: engine.tasks.get(task_id).output == 2)
        assert engine.tasks.get(task_id).failures == 0
