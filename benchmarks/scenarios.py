"""What is measured, each scenario beside the same writes done by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks import by_hand
from benchmarks.by_hand import PIPELINE, RESULT, STEPS, WORKER, ByHand, in_batches
from benchmarks.places import Places, count_events
from benchmarks.places import by_hand as open_by_hand
from holdfast.engine.engine import Engine
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask

COMMITS_OF_A_PIPELINE = 1 + 2 * len(STEPS)
ALONE = 30
FLAT = 2_000


@dataclass(frozen=True, kw_only=True)
class Sizes:
    tasks: int
    pipelines: int
    finished: int
    batch: int


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two rates taken one right after the other, both per second."""

    subject: float
    reference: float

    @property
    def ratio(self) -> float:
        return self.subject / self.reference


class Scenarios:
    def __init__(self, places: Places, sizes: Sizes) -> None:
        self._places = places
        self._sizes = sizes

    def tasks(self, database: str, *, turned: bool, check: bool) -> Pair:
        """Lone tasks: created, claimed, completed."""
        return self._pair(database, self._engine_tasks, self._hand_tasks, turned, check)

    def pipelines(self, database: str, *, turned: bool, check: bool) -> Pair:
        """Runs of five steps, each needing the one before."""
        return self._pair(database, self._engine_pipelines, self._hand_pipelines, turned, check)

    def alone(self, database: str) -> Pair:
        """One pipeline at a time, call by call, beside as many of the smallest commits."""
        with self._places.new(database) as url:
            with opened(url) as engine:
                taken = timed(lambda: _alone(engine))
            hand = open_by_hand(url)
            hand.commit_once()
            bare = timed(lambda: _commit(hand))
            hand.close()
        return Pair(subject=ALONE / taken, reference=ALONE / bare)

    @contextmanager
    def filled(self, database: str) -> Iterator[Callable[[], Pair]]:
        """Claim and complete among many finished tasks, beside the same in an empty store."""
        with self._places.new(database) as full:
            hand = open_by_hand(full)
            for count in in_batches(self._sizes.finished, 10_000):
                hand.fill(count)
            hand.close()
            yield lambda: self._flat(database, full)

    def _flat(self, database: str, full: str) -> Pair:
        rates = []
        with self._places.new(database) as empty:
            for url in (full, empty):
                with opened(url) as engine:
                    _create(engine, FLAT)
                    rates.append(FLAT / timed(lambda: _drain(engine, self._sizes.batch)))
        return Pair(subject=rates[0], reference=rates[1])

    def _pair(
        self,
        database: str,
        engine: Callable[[str], float],
        hand: Callable[[str], float],
        turned: bool,  # noqa: FBT001
        check: bool,  # noqa: FBT001
    ) -> Pair:
        with self._places.new(database) as first, self._places.new(database) as second:
            if turned:
                reference = hand(second)
                subject = engine(first)
            else:
                subject = engine(first)
                reference = hand(second)
            if check:
                _check_same(first, second)
        return Pair(subject=subject, reference=reference)

    def _engine_tasks(self, url: str) -> float:
        with opened(url) as engine:
            seconds = timed(lambda: _create(engine, self._sizes.tasks))
            seconds += timed(lambda: _drain(engine, self._sizes.batch))
        return self._sizes.tasks / seconds

    def _engine_pipelines(self, url: str) -> float:
        with opened(url) as engine:
            seconds = timed(lambda: _start(engine, self._sizes.pipelines))
            seconds += timed(lambda: _drain(engine, self._sizes.batch))
        return self._sizes.pipelines / seconds

    def _hand_tasks(self, url: str) -> float:
        hand = open_by_hand(url)

        def work() -> None:
            for count in in_batches(self._sizes.tasks, self._sizes.batch):
                hand.create_tasks(count)
            by_hand.drain(hand, self._sizes.batch)

        seconds = timed(work)
        hand.close()
        return self._sizes.tasks / seconds

    def _hand_pipelines(self, url: str) -> float:
        hand = open_by_hand(url)

        def work() -> None:
            for count in in_batches(self._sizes.pipelines, self._sizes.batch):
                hand.create_pipelines(count)
            by_hand.drain(hand, self._sizes.batch)

        seconds = timed(work)
        hand.close()
        return self._sizes.pipelines / seconds


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    engine.commits.start()
    try:
        yield engine
    finally:
        engine.close()


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _create(engine: Engine, count: int) -> None:
    _all([engine.tasks.create.submit(NewTask(title="job")) for _ in range(count)])


def _start(engine: Engine, count: int) -> None:
    _all([engine.runs.start.submit(NewRun(workflow=PIPELINE)) for _ in range(count)])


def _drain(engine: Engine, batch: int) -> None:
    reports: list[Future[Any]] = []
    held = engine.work.claim(WORKER, count=batch)
    while held:
        reports += [engine.work.complete.submit(each.task.id, each.token, RESULT) for each in held]
        held = engine.work.claim(WORKER, count=batch)
    assert all(report.result().ok for report in reports)


def _alone(engine: Engine) -> None:
    for _ in range(ALONE):
        engine.runs.start(NewRun(workflow=PIPELINE))
        for _ in STEPS:
            (held,) = engine.work.claim(WORKER)
            assert engine.work.complete(held.task.id, held.token, RESULT).ok


def _commit(hand: ByHand) -> None:
    for _ in range(ALONE * COMMITS_OF_A_PIPELINE):
        hand.commit_once()


def _all(futures: list[Future[Any]]) -> None:
    for future in futures:
        future.result()


def _check_same(engine: str, hand: str) -> None:
    """Both did the same work, and what was written by hand breaks no invariant either."""
    assert count_events(engine) == count_events(hand)
    for url in (engine, hand):
        with opened(url) as examined:
            diagnosis = examined.doctor()
            assert diagnosis.ok, str(diagnosis)[:2000]
