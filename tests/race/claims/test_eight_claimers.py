"""Eight claimers of one concurrency key, all under way before the first has committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing

import pytest

from holdfast.engine.core.operation import Operation
from tests.race.explorer import Stage
from tests.race.racers import COMMIT, PATIENCE, Racer
from tests.race.worlds import World

CLAIMERS = 8
LIMIT = 3


@pytest.fixture
def racers(stage: Stage, store_url: str) -> Iterator[list[Racer]]:
    with ExitStack() as stack:
        names = [f"claimer-{number}" for number in range(CLAIMERS)]
        yield [stack.enter_context(closing(Racer(store_url, name, stage.day))) for name in names]


def race(racers: Sequence[Racer], plans: Sequence[Operation]) -> list[list[object]]:
    """Hold the first before its COMMIT until each of the others has ended or waits."""
    first, *others = racers
    stopped = first.start_up_to(COMMIT, [plans[0]])
    assert stopped.gate.reached.is_set()
    calls: list[Future[list[object]]] = []
    for racer, plan in zip(others, plans[1:], strict=True):
        calls.append(racer.start([plan]))
        racer.go_as_far_as_possible(calls[-1])
    return [stopped.finish(), *(call.result(PATIENCE) for call in calls)]


def started(world: World) -> int:
    return str(world.observe()).count("task.running")


def place(world: World, count: int) -> list[str]:
    limit = world.concurrency(LIMIT)
    return [world.task(f"task-{number}", concurrency=limit) for number in range(count)]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_concurrency_key_under_eight_claimers_is_never_exceeded(
    stage: Stage, racers: list[Racer], *, by_id: bool
) -> None:
    world = stage.world()
    place(world, CLAIMERS)
    plans: list[Operation] = [
        world.claim_by_id(f"task-{number}", f"worker-{number}")
        if by_id
        else world.claim(f"worker-{number}", 2)
        for number in range(CLAIMERS)
    ]
    told = race(racers, plans)
    assert sum(len(assigned) for (assigned,) in told if isinstance(assigned, list)) <= LIMIT
    stage.third.perform([world.claim("late", CLAIMERS)])
    assert started(world) == LIMIT
    assert ("task", "key", LIMIT) in world.observe()
    diagnosis = stage.engine.doctor()
    assert diagnosis.ok, str(diagnosis)


def test_eight_claimers_of_one_task_start_it_once(stage: Stage, racers: list[Racer]) -> None:
    world = stage.world()
    place(world, 1)
    race(racers, [world.claim(f"worker-{number}") for number in range(CLAIMERS)])
    assert started(world) == 1
