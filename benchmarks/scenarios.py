"""What is measured, each scenario beside the same writes done by hand."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import by_hand, durable, lone_calls
from benchmarks.by_hand import RESULT, STEPS, WORKER, ByHand, in_batches
from benchmarks.places import Places, contents, weigh
from benchmarks.places import by_hand as open_by_hand
from benchmarks.program import Program, program
from benchmarks.slow_disk import slow_disk
from benchmarks.worker_processes import drain_together
from holdfast.engine.engine import Engine
from holdfast.engine.input.validation import MAX_BATCH
from holdfast.model.task import Assignment, NewTask

# The start, and each step's report; both bring the next step's start with them.
COMMITS_OF_A_PIPELINE = 1 + len(STEPS)
SMALL_LOOP = 2_000
# Concurrencies among which the best is for steps that do nothing, and for steps of five
# milliseconds, of which fewer are done where they are done one by one.
BEST_OF_NOTHING = (100, 500)
BEST_OF_SHORT = (1, 2, 8, 32)
SHORT_PER_CONCURRENCY = 75
# How much longer a commit takes on a slow disk, in seconds.
SLOWER = 0.004
# The worker processes that share a store, and the part of all tasks that they drain: as they come,
# workers are slower than with the concurrency of the other measures.
PROCESSES, SHARED = 4, 4


@dataclass(frozen=True, kw_only=True)
class Sizes:
    tasks: int
    pipelines: int
    alone: int
    finished: int
    drained: int
    claims: int
    batch: int
    loop: int
    short: int
    dispatches: int
    idle: int
    starts: int
    durable: int
    files: int


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two rates taken one right after the other, both per second."""

    subject: float
    reference: float

    @property
    def ratio(self) -> float:
        return self.subject / self.reference


class Scenarios:
    """Each gives one pair on one database; in every second pair the reference goes first."""

    def __init__(self, places: Places, sizes: Sizes) -> None:
        self._places = places
        self._sizes = sizes
        self._full: dict[str, str] = {}
        self._drained: dict[str, str] = {}

    @contextmanager
    def filled(self, databases: Sequence[str]) -> Iterator[dict[str, str]]:
        """Stores with many finished tasks, which the pairs use again; tells how large they are."""
        with ExitStack() as stack:
            for database in databases:
                self._full[database] = stack.enter_context(self._places.new(database))
                with written_by_hand(self._full[database]) as hand:
                    for count in in_batches(self._sizes.finished, 10_000):
                        hand.fill(count)
                self._drained[database] = stack.enter_context(self._places.new(database))
                self._fill_by_worker(self._drained[database])
            yield {database: weigh(self._full[database]) for database in databases}

    def tasks(self, database: str, number: int) -> Pair:
        """Lone tasks: created, claimed, completed."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            drain = partial(self._drain_tasks, concurrency=self._sizes.batch)
            pair = take(number, partial(drain, ours), partial(self._tasks, theirs))
            if number == 1:
                check_same(ours, theirs)
        return pair

    def bulk(self, database: str, number: int) -> Pair:
        """Lone tasks created ten thousand in a call; by hand on PostgreSQL they are COPYed."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            pair = take(number, partial(self._create_bulk, ours), partial(self._load, theirs))
            if number == 1:
                check_same(ours, theirs)
        return pair

    def waiting_tasks(self, database: str, number: int) -> Pair:
        """Lone tasks that are there already: claimed, completed."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            drain = partial(self._drain_waiting, ours, self._sizes.batch)
            return take(number, drain, partial(self._waiting, theirs))

    def pipelines(self, database: str, number: int) -> Pair:
        """Runs of five steps, each needing the one before."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            drain = partial(self._drain_pipelines, ours, self._sizes.batch)
            pair = take(number, drain, partial(self._pipelines, theirs))
            if number == 1:
                check_same(ours, theirs)
        return pair

    def tasks_as_it_comes(self, database: str, number: int) -> Pair:
        """Lone tasks, done by a worker that is told nothing."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            drain = partial(self._drain_tasks, ours, None)
            return take(number, drain, partial(self._tasks, theirs))

    def waiting_tasks_as_it_comes(self, database: str, number: int) -> Pair:
        """Lone tasks that are there already, done by a worker that is told nothing."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            drain = partial(self._drain_waiting, ours, None)
            return take(number, drain, partial(self._waiting, theirs))

    def pipelines_as_it_comes(self, database: str, number: int) -> Pair:
        """Runs of five steps, done by a worker that is told nothing."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            drain = partial(self._drain_pipelines, ours, None)
            return take(number, drain, partial(self._pipelines, theirs))

    def tasks_beside_best(self, database: str, number: int) -> Pair:
        """Lone tasks, beside a worker that is told the best concurrency."""
        return self._beside_best(database, number, self._drain_waiting, BEST_OF_NOTHING)

    def pipelines_beside_best(self, database: str, number: int) -> Pair:
        return self._beside_best(database, number, self._drain_pipelines, BEST_OF_NOTHING)

    def sleeps_beside_best(self, database: str, number: int) -> Pair:
        rate = partial(self._drain_short, naps=True)
        return self._beside_best(database, number, rate, BEST_OF_SHORT)

    def computations_beside_best(self, database: str, number: int) -> Pair:
        rate = partial(self._drain_short, computes=True)
        return self._beside_best(database, number, rate, BEST_OF_SHORT)

    def both_beside_best(self, database: str, number: int) -> Pair:
        rate = partial(self._drain_short, naps=True, computes=True)
        return self._beside_best(database, number, rate, BEST_OF_SHORT)

    def alone(self, database: str, number: int) -> Pair:
        """One pipeline at a time, nothing to share a commit with, beside as many bare commits."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            return take(number, partial(self._run_alone, ours), partial(self._commits, theirs))

    def alone_on_a_slow_disk(self, database: str, number: int) -> Pair:
        """The same where the disk takes longer to keep what it is given."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            subject, reference = partial(self._run_alone, ours), partial(self._commits, theirs)
            with slow_disk(SLOWER, ours, theirs):
                return take(number, subject, reference)

    def alone_by_hand(self, database: str, number: int) -> Pair:
        """One pipeline at a time, beside the same written by hand in as many commits."""
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            return take(number, partial(self._run_alone, ours), partial(self._alone, theirs))

    def claims(self, database: str, number: int) -> Pair:
        """Claims among many finished tasks, beside the same in an empty store."""
        return self._among_finished(database, number, self._engine_claims)

    def completions(self, database: str, number: int) -> Pair:
        """Completions, apart from the claims: one could get slower behind the other's back."""
        return self._among_finished(database, number, self._engine_completions)

    def drained(self, database: str, number: int) -> Pair:
        """Tasks created and drained among many finished ones, beside an empty store."""
        drain = partial(self._drain_tasks, concurrency=self._sizes.batch)
        return self._among_finished(database, number, drain)

    def drained_among_drained(self, database: str, number: int) -> Pair:
        """The same among tasks that a worker has finished, and that the server may not clean up."""
        with self._places.new(database) as empty:
            full = self._drained[database]
            drain = partial(self._drain_tasks, concurrency=self._sizes.batch)
            return take(number, partial(drain, full), partial(drain, empty))

    def loops(self, database: str, number: int) -> Pair:
        """Items a second of one long loop, beside those of a short one."""
        with self._places.new(database) as long, self._places.new(database) as short:
            return take(
                number,
                partial(self._loop, long, self._sizes.loop),
                partial(self._loop, short, min(SMALL_LOOP, self._sizes.loop)),
            )

    def durable_at_500(self, database: str, number: int) -> Pair:
        """Functions of five effects each, beside tasks of none."""
        return self._durable(database, number, 500)

    def durable_at_100(self, database: str, number: int) -> Pair:
        return self._durable(database, number, 100)

    def durable_at_20(self, database: str, number: int) -> Pair:
        return self._durable(database, number, 20)

    def durable_as_it_comes(self, database: str, number: int) -> Pair:
        """The same with a worker that is told nothing."""
        return self._durable(database, number, None)

    def effects_alone(self, database: str, number: int) -> Pair:
        """One effect after another in one function, beside as many bare commits."""
        size = self._sizes.alone * COMMITS_OF_A_PIPELINE
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            commits = partial(self._bare_commits, theirs, size)
            return take(number, partial(durable.effect_after_effect, ours, size), commits)

    def _durable(self, database: str, number: int, concurrency: int | None) -> Pair:
        size = self._sizes.durable
        with self._places.new(database) as ours, self._places.new(database) as theirs:
            subject = partial(durable.five_effects, ours, size, concurrency)
            return take(
                number, subject, partial(durable.plain_tasks, theirs, size * 2, concurrency)
            )

    def enqueue_alone(self, database: str, _: int) -> Pair:
        """One enqueue with a key after the other, beside bare commits."""
        with self._beside_commits(database) as (url, hand), program(url) as made:
            return self._calls(lone_calls.enqueue_alone(made, hand, self._sizes.dispatches))

    def claim_alone(self, database: str, _: int) -> Pair:
        """One claim after the other, each of one task, beside bare commits."""
        with self._beside_commits(database) as (url, hand), opened(url) as engine:
            return self._calls(lone_calls.claim_alone(engine, hand, self._sizes.dispatches))

    def complete_alone(self, database: str, _: int) -> Pair:
        """One complete after the other, beside bare commits."""
        with self._beside_commits(database) as (url, hand), opened(url) as engine:
            return self._calls(lone_calls.complete_alone(engine, hand, self._sizes.dispatches))

    def shared_tasks(self, database: str, number: int) -> Pair:
        """Waiting tasks drained by several worker processes, beside one of them."""
        share = partial(self._drain_together, database, "t_", max(1, self._sizes.tasks // SHARED))
        return take(number, partial(share, PROCESSES), partial(share, 1))

    def shared_pipelines(self, database: str, number: int) -> Pair:
        """Started pipelines drained by several worker processes, beside one of them."""
        share = partial(
            self._drain_together, database, "r_", max(1, self._sizes.pipelines // SHARED)
        )
        return take(number, partial(share, PROCESSES), partial(share, 1))

    def _drain_together(self, database: str, prefix: str, count: int, processes: int) -> float:
        with self._places.new(database) as url:
            with program(url) as made:
                (made.enqueue if prefix == "t_" else made.start)(count)
            return count / drain_together(url, prefix, count, processes=processes)

    @contextmanager
    def _beside_commits(self, database: str) -> Iterator[tuple[str, ByHand]]:
        """A store for the calls, and one for the commits."""
        with (
            self._places.new(database) as ours,
            self._places.new(database) as theirs,
            written_by_hand(theirs) as hand,
        ):
            yield ours, hand

    def _calls(self, seconds: lone_calls.Seconds) -> Pair:
        called, committed = seconds
        count = self._sizes.dispatches
        return Pair(subject=count / called, reference=count / committed)

    def _among_finished(self, database: str, number: int, rate: Callable[[str], float]) -> Pair:
        with self._places.new(database) as empty:
            return take(number, partial(rate, self._full[database]), partial(rate, empty))

    def _beside_best(
        self,
        database: str,
        number: int,
        rate: Callable[[str, int | None], float],
        concurrencies: Sequence[int],
    ) -> Pair:
        """A worker that is told nothing, beside the best of those that are told a concurrency."""

        def measure(concurrency: int | None) -> float:
            with self._places.new(database) as url:
                return rate(url, concurrency)

        return take(number, partial(measure, None), lambda: max(map(measure, concurrencies)))

    def _drain_short(
        self, url: str, concurrency: int | None, *, naps: bool = False, computes: bool = False
    ) -> float:
        size = self._sizes.short
        if concurrency is not None:
            size = min(size, SHORT_PER_CONCURRENCY * concurrency)
        with program(url) as made:
            made.enqueue_short(size, naps=naps, computes=computes)
            return size / timed(lambda: made.drain("t_", size, concurrency))

    def _drain_tasks(self, url: str, concurrency: int | None) -> float:
        size = self._sizes.tasks
        with program(url) as made:
            seconds = timed(lambda: made.enqueue(size))
            seconds += timed(lambda: made.drain("t_", size, concurrency))
        return size / seconds

    def _fill_by_worker(self, url: str) -> None:
        with program(url) as made:
            for count in in_batches(self._sizes.drained, 2 * MAX_BATCH):
                made.create_bulk(count)
                made.drain("t_", count, self._sizes.batch)

    def _create_bulk(self, url: str) -> float:
        size = self._sizes.tasks
        with program(url) as made:
            return size / timed(lambda: made.create_bulk(size))

    def _drain_waiting(self, url: str, concurrency: int | None) -> float:
        size = self._sizes.tasks
        with program(url) as made:
            made.enqueue(size)
            return size / timed(lambda: made.drain("t_", size, concurrency))

    def _drain_pipelines(self, url: str, concurrency: int | None) -> float:
        size = self._sizes.pipelines
        with program(url) as made:
            seconds = timed(lambda: made.start(size))
            seconds += timed(lambda: made.drain("r_", size, concurrency))
        return size / seconds

    def _run_alone(self, url: str) -> float:
        with program(url) as made, made.hf.worker(concurrency=1):
            run_one_by_one(made, 2)
            return self._sizes.alone / timed(lambda: run_one_by_one(made, self._sizes.alone))

    def _loop(self, url: str, items: int) -> float:
        with program(url) as made, made.draining("r_", 1) as wait, made.hf.worker(concurrency=200):
            begin = time.perf_counter()
            made.many.start(items=list(range(items)))
            wait()
            return items / (time.perf_counter() - begin)

    def _engine_claims(self, url: str) -> float:
        return self._sizes.claims / self._claim_then_complete(url)[0]

    def _engine_completions(self, url: str) -> float:
        return self._sizes.claims / self._claim_then_complete(url)[1]

    def _claim_then_complete(self, url: str) -> tuple[float, float]:
        held: list[Assignment] = []
        with opened(url) as engine:
            _create(engine, self._sizes.claims)
            claiming = timed(lambda: held.extend(_claim_all(engine, self._sizes.batch)))
            completing = timed(lambda: _complete_all(engine, held))
        return claiming, completing

    def _tasks(self, url: str) -> float:
        with written_by_hand(url) as hand:
            return self._rate(hand, hand.create_tasks, self._sizes.tasks)

    def _load(self, url: str) -> float:
        rows = by_hand.Rows()
        batches = [rows.tasks(count) for count in in_batches(self._sizes.tasks, MAX_BATCH)]
        with written_by_hand(url) as hand:
            return self._sizes.tasks / timed(lambda: _load_each(hand, batches))

    def _waiting(self, url: str) -> float:
        size, batch = self._sizes.tasks, self._sizes.batch
        with written_by_hand(url) as hand:
            for count in in_batches(size, batch):
                hand.create_tasks(count)
            return size / timed(lambda: by_hand.drain(hand, batch))

    def _pipelines(self, url: str) -> float:
        with written_by_hand(url) as hand:
            return self._rate(hand, hand.create_pipelines, self._sizes.pipelines)

    def _rate(self, hand: ByHand, create: Callable[[int], None], size: int) -> float:
        def work() -> None:
            for count in in_batches(size, self._sizes.batch):
                create(count)
            by_hand.drain(hand, self._sizes.batch)

        return size / timed(work)

    def _alone(self, url: str) -> float:
        with written_by_hand(url) as hand:
            _run_by_hand(hand, 2)
            return self._sizes.alone / timed(lambda: _run_by_hand(hand, self._sizes.alone))

    def _commits(self, url: str) -> float:
        with written_by_hand(url) as hand:
            _commit(hand, 1)
            commits = self._sizes.alone * COMMITS_OF_A_PIPELINE
            return self._sizes.alone / timed(lambda: _commit(hand, commits))

    def _bare_commits(self, url: str, count: int) -> float:
        with written_by_hand(url) as hand:
            _commit(hand, 1)
            return count / timed(lambda: _commit(hand, count))


def take(number: int, subject: Callable[[], float], reference: Callable[[], float]) -> Pair:
    if number % 2:
        first = _alone(subject)
        return Pair(subject=first, reference=_alone(reference))
    first = _alone(reference)
    return Pair(subject=_alone(subject), reference=first)


def _alone(measure: Callable[[], float]) -> float:
    """Measured without what was there before: no collection walks past the modules, or a pair."""
    gc.collect()
    gc.freeze()
    try:
        return measure()
    finally:
        gc.unfreeze()


@contextmanager
def written_by_hand(url: str) -> Iterator[ByHand]:
    hand = open_by_hand(url)
    try:
        yield hand
    finally:
        hand.close()


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


def _load_each(hand: ByHand, batches: Sequence[Sequence[str]]) -> None:
    for ids in batches:
        hand.load_tasks(ids)


def _create(engine: Engine, count: int) -> None:
    _all([engine.tasks.create.submit(NewTask(title="job")) for _ in range(count)])


def _claim_all(engine: Engine, batch: int) -> Iterator[Assignment]:
    while held := engine.work.claim(WORKER, count=batch):
        yield from held


def _complete_all(engine: Engine, held: Sequence[Assignment]) -> None:
    _all([engine.work.complete.submit(each.task.id, each.token, RESULT) for each in held])


def run_one_by_one(made: Program, count: int) -> None:
    for _ in range(count):
        with made.draining("r_", 1) as wait:
            made.pipeline.start()
            wait()


def _run_by_hand(hand: ByHand, count: int) -> None:
    for _ in range(count):
        by_hand.run_alone(hand)


def _commit(hand: ByHand, count: int) -> None:
    for _ in range(count):
        hand.commit_once()


def _all(futures: list[Future[Any]]) -> None:
    for future in futures:
        future.result()


def check_same(engine: str, hand: str) -> None:
    """Both did the same work, and what was written by hand breaks no invariant either."""
    assert contents(engine) == contents(hand)
    for url in (engine, hand):
        with opened(url) as examined:
            diagnosis = examined.doctor()
            assert diagnosis.ok, str(diagnosis)[:2000]
