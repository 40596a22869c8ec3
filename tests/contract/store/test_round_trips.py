"""How often a writer on PostgreSQL waits for its server, counted where the bytes pass by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from benchmarks.program import Program, program
from holdfast.engine.engine import Engine
from holdfast.model.task import Assignment, NewTask
from tests.contract.postgresql_proxy import Proxy, proxied

WORKER = "anna"
STEPS = 5


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with proxied(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def engine(proxy: Proxy) -> Iterator[Engine]:
    """An engine with its writer, and without the loops that look for what is due."""
    with closing(Engine(proxy.url)) as engine:
        engine.commits.start()
        yield engine


def fewest(proxy: Proxy, act: Callable[[int], object]) -> int:
    """The round trips of the writer for one call; the first ones read what is kept afterwards."""
    counts: list[int] = []
    for number in range(4):
        before = proxy.round_trips[0]
        act(number)
        counts.append(proxy.round_trips[0] - before)
    return min(counts)


def test_an_enqueue_is_one_round_trip(engine: Engine, proxy: Proxy) -> None:
    assert fewest(proxy, lambda _: engine.tasks.create(NewTask(title="job"))) == 1
    assert len(engine.tasks.list()) == 4


def test_an_enqueue_with_a_key_is_one_round_trip(engine: Engine, proxy: Proxy) -> None:
    def create(number: int) -> None:
        assert engine.tasks.create(NewTask(title="job", key=f"key-{number}")).created

    assert fewest(proxy, create) == 1


def test_an_enqueue_that_finds_its_key_taken_is_one_round_trip(
    engine: Engine, proxy: Proxy
) -> None:
    known = engine.tasks.create(NewTask(title="job", key="mine"))

    def create_again(_: int) -> None:
        found = engine.tasks.create(NewTask(title="job", key="mine"))
        assert (found.id, found.created) == (known.id, False)

    assert fewest(proxy, create_again) == 1


def test_a_run_is_started_in_one_round_trip(proxy: Proxy) -> None:
    with program(proxy.url) as made:
        made.pipeline.start()
        assert fewest(proxy, lambda _: made.pipeline.start()) == 1


def claim(engine: Engine) -> Assignment:
    (held,) = engine.work.claim(WORKER)
    return held


def test_a_claim_looks_takes_and_commits_in_three_round_trips(engine: Engine, proxy: Proxy) -> None:
    for _ in range(4):
        engine.tasks.create(NewTask(title="job"))
    assert fewest(proxy, lambda _: claim(engine)) == 3


def test_a_claim_that_finds_nothing_is_two_round_trips(engine: Engine, proxy: Proxy) -> None:
    assert fewest(proxy, lambda _: engine.work.claim(WORKER)) == 2


def test_a_completion_with_its_advance_is_two_round_trips(engine: Engine, proxy: Proxy) -> None:
    for _ in range(4):
        engine.tasks.create(NewTask(title="job"))
    held = [claim(engine) for _ in range(4)]

    def complete(number: int) -> None:
        assert engine.work.complete(held[number].task.id, held[number].token, {}).ok

    assert fewest(proxy, complete) == 2


@contextmanager
def worked(url: str) -> Iterator[Program]:
    with program(url) as made, made.hf.worker(concurrency=1):
        yield made


def test_a_pipeline_alone_is_two_round_trips_for_its_start_and_for_each_step(proxy: Proxy) -> None:
    with worked(proxy.url) as made:

        def run_pipeline(_: int) -> None:
            with made.draining("r_", 1) as wait:
                made.pipeline.start()
                wait()

        assert fewest(proxy, run_pipeline) == 2 * (1 + STEPS)


def test_a_lone_task_and_its_result_are_four_round_trips(proxy: Proxy) -> None:
    with worked(proxy.url) as made:
        assert fewest(proxy, lambda _: made.job.enqueue().result(60)) == 4
