"""Loops, verifiers, people, plans and durable functions in any order: alike on both databases.

`HOLDFAST_STORIES` is how many seeds to play; unless it is set, the same few are played every time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.task import Task
from holdfast.randomness import SeededRandomness
from tests.simulation.completion import work_off
from tests.simulation.test_equal_databases import rows
from tests.simulation.workflow_requests import ALL, WEIGHTS, Teller

SEEDS = range(int(os.environ.get("HOLDFAST_STORIES", "4")))
GROUPS = 110


@contextmanager
def telling(url: str, seed: int) -> Iterator[Teller]:
    clock = ManualClock()
    engine = Engine(url, clock=clock, randomness=SeededRandomness(seed))
    try:
        yield Teller(engine=engine, clock=clock, draw=random.Random(seed))  # noqa: S311 - on purpose
    finally:
        engine.close()


def plan(seed: int) -> Iterator[list[str]]:
    draw = random.Random(seed)  # noqa: S311 - reproducible on purpose
    for _ in range(GROUPS):
        yield draw.choices(list(ALL), WEIGHTS, k=draw.randint(1, 4))


def check(teller: Teller, asked: object) -> None:
    diagnosis = teller.engine.doctor()
    assert diagnosis.ok, f"{asked}: {diagnosis}"
    for run in teller.runs:
        tasks = teller.engine.runs.tasks(run)
        for item in (task for task in tasks if is_done_item(task)):
            steps = [task for task in tasks if task.parent_id == item.id and not task.superseded]
            assert steps, f"{asked}: {item.id} is done without its work"
            assert {step.status for step in steps} == {"done"}, f"{asked}: {item.id}"


def is_done_item(task: Task) -> bool:
    counts = task.kind == "group" and task.item is not None and not task.superseded
    return counts and task.status == "done"


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", SEEDS)
def test_stories_are_told_alike_on_both_databases_and_come_to_an_end(
    sqlite_url: str, postgres_url: str, seed: int
) -> None:
    with telling(sqlite_url, seed) as one, telling(postgres_url, seed) as other:
        for group in plan(seed):
            kinds = [ALL[name] for name in group]
            assert one.play(kinds) == other.play(kinds), group
            check(one, group)
        found, expected = rows(sqlite_url), rows(postgres_url)
        for table, kept in found.items():
            assert kept == expected[table]
        for teller in (one, other):
            work_off(teller)
            check(teller, "at the end")
            open_runs = [run for run in teller.runs if not teller.engine.runs.get(run).terminal]
            assert open_runs == [], "nothing moves, and yet it has not ended"
