"""A program of no-op functions, as a user writes it, and what it takes to run it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from benchmarks.by_hand import RESULT, STEPS, in_batches
from holdfast import Holdfast, Loop, needs
from holdfast.engine.engine import engine_of
from holdfast.engine.input.validation import MAX_BATCH


class Program:
    """One task, one pipeline of five steps, one loop of one step; none of them does anything.

    And two tasks of five milliseconds: one sleeps, the other one computes.
    """

    def __init__(self, url: str) -> None:
        self.hf = Holdfast(url)
        self.began: list[float] = []

        @self.hf.task
        def job() -> dict[str, Any]:
            return RESULT

        @self.hf.task
        def note_time() -> None:
            self.began.append(time.perf_counter())

        @self.hf.task
        def nap() -> None:
            time.sleep(SHORT)

        @self.hf.task
        def compute() -> None:
            until = time.thread_time() + SHORT
            while time.thread_time() < until:
                pass

        self.job = job
        self.nap, self.compute = nap, compute
        self.note_time = note_time
        self.pipeline = self.hf.workflow("pipeline")
        before: Callable[..., Any] | None = None
        for name in STEPS:
            before = self.pipeline.step(_step(name, before))
        self.many = self.hf.workflow("many")
        self._add_body(self.many.loop("build", over="input.items", parallel=200))

    def _add_body(self, loop: Loop) -> None:
        @loop.step
        def implement(item: int) -> int:
            return item

    def enqueue(self, count: int) -> None:
        _all([self.job.enqueue.submit() for _ in range(count)])

    def enqueue_short(self, count: int, *, naps: bool, computes: bool) -> None:
        kinds = [*([self.nap] * naps), *([self.compute] * computes)]
        _all([kinds[each % len(kinds)].enqueue.submit() for each in range(count)])

    def create_bulk(self, count: int) -> None:
        for size in in_batches(count, MAX_BATCH):
            self.job.enqueue_many([{}] * size)

    def start(self, count: int) -> None:
        _all([self.pipeline.start.submit() for _ in range(count)])

    @contextmanager
    def draining(self, prefix: str, count: int) -> Iterator[Callable[[], None]]:
        """Gives a way to wait until so many tasks (`t_`) or runs (`r_`) have ended."""
        through = threading.Event()
        ended = 0

        def note(identifiers: Sequence[str]) -> None:
            nonlocal ended
            ended += sum(each.startswith(prefix) for each in identifiers)
            if ended >= count:
                through.set()

        leave = engine_of(self.hf).on_end(note)
        try:
            yield lambda: _demand(through.wait(PATIENCE))
        finally:
            leave()

    def drain(self, prefix: str, count: int, concurrency: int | None) -> None:
        """Run a worker until so many have ended; without a concurrency it is told nothing."""
        with self.draining(prefix, count) as wait, self.hf.worker(concurrency=concurrency):
            wait()


PATIENCE = 1_800.0
SHORT = 0.005


@contextmanager
def program(url: str) -> Iterator[Program]:
    made = Program(url)
    try:
        yield made
    finally:
        made.hf.close()


def _step(name: str, before: Callable[..., Any] | None) -> Callable[..., Any]:
    def first() -> dict[str, Any]:
        return RESULT

    def later(given: Any = None if before is None else needs(before)) -> Any:  # noqa: ANN401
        return given

    chosen: Callable[..., Any] = first if before is None else later
    chosen.__name__ = name
    return chosen


def _demand(ended: bool) -> None:  # noqa: FBT001 - what waiting gave
    assert ended, f"not everything ended within {PATIENCE:g} s"


def _all(futures: Sequence[Future[Any]]) -> None:
    for future in futures:
        future.result()
