"""Many claimers at once, for real: threads, engines and processes that empty one queue."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Concurrency
from holdfast.store.database import is_postgresql
from tests.race.claims.queue_drainer import Inside, drain
from tests.race.explorer import count_deadlocks

TASKS = 500
CLAIMERS = 8
ROOT = Path(__file__).parents[3]


@contextmanager
def filled(url: str, *, limit: int | None = None) -> Iterator[tuple[Engine, list[str]]]:
    """An engine on a store with tasks for two agents; at the end all is as it should be."""
    with closing(Engine(url).start()) as engine:
        created = engine.tasks.create_many(
            [
                NewTask(
                    title=f"task {number}",
                    agent=f"agent-{number % 2}",
                    concurrency=None if limit is None else Concurrency(key="it", limit=limit),
                )
                for number in range(TASKS)
            ]
        )
        yield engine, [each.id for each in created]
        diagnosis = engine.doctor()
        assert diagnosis.ok, str(diagnosis)
    if is_postgresql(url):
        assert count_deadlocks(url) == 0


def drain_side_by_side(
    engines: Sequence[Engine], ids: list[str], inside: Inside
) -> list[list[str]]:
    agents = ("agent-0", "agent-1")
    with ThreadPoolExecutor(len(engines)) as threads:
        futures = [
            threads.submit(drain, engine, f"worker-{number}", ids, agents, inside)
            for number, engine in enumerate(engines)
        ]
        return [future.result() for future in futures]


def most_at_once(engine: Engine, ids: list[str]) -> int:
    """The most tasks that ran at once, by the order in which their events were written."""
    moves = sorted(
        (event.seq, (event.target == "running") - (event.source == "running"))
        for task in ids
        for event in engine.tasks.events(task)
    )
    running = most = 0
    for _, move in moves:
        running += move
        most = max(most, running)
    return most


@pytest.mark.parametrize("limit", [None, 3])
def test_eight_engines_claim_every_task_once(postgres_store_url: str, limit: int | None) -> None:
    inside = Inside()
    with filled(postgres_store_url, limit=limit) as (engine, ids), ExitStack() as stack:
        engines = [
            stack.enter_context(closing(Engine(postgres_store_url).start())) for _ in range(7)
        ]
        got = drain_side_by_side([engine, *engines], ids, inside)
        assert Counter(task for each in got for task in each) == Counter(ids)
        assert most_at_once(engine, ids) <= (limit or TASKS)
        assert inside.most <= (limit or TASKS)


@pytest.mark.parametrize("limit", [None, 3])
def test_eight_threads_of_one_engine_claim_every_task_once(
    store_url: str, limit: int | None
) -> None:
    inside = Inside()
    with filled(store_url, limit=limit) as (engine, ids):
        got = drain_side_by_side([engine] * CLAIMERS, ids, inside)
        assert Counter(task for each in got for task in each) == Counter(ids)
        assert most_at_once(engine, ids) <= (limit or TASKS)
        assert inside.most <= (limit or TASKS)


@pytest.mark.parametrize("limit", [None, 3])
def test_two_processes_that_claim_for_several_agents_claim_every_task_once(
    store_url: str, limit: int | None
) -> None:
    with filled(store_url, limit=limit) as (engine, ids):
        processes = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.race.claims.queue_drainer",
                    store_url,
                    name,
                    "agent-0,agent-1",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                text=True,
            )
            for name in ("anna", "bert")
        ]
        with ThreadPoolExecutor(2) as threads:
            told = list(threads.map(lambda p: p.communicate(json.dumps(ids), 60), processes))
        got = [json.loads(output) for output, _ in told]
        assert Counter(task for each in got for task in each) == Counter(ids)
        assert most_at_once(engine, ids) <= (limit or TASKS)
