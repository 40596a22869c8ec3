"""Lone calls: one enqueue, claim or complete after the other, each beside a bare commit.

A call and a commit take turns, so that a disk that is slow for a while is slow for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

from benchmarks.by_hand import RESULT, WORKER, ByHand
from benchmarks.program import Program
from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask

WARM = 5
# The seconds of all calls, and those of as many bare commits.
Seconds = tuple[float, float]


def enqueue_alone(made: Program, hand: ByHand, count: int) -> Seconds:
    keys = (f"key-{number}" for number in range(WARM + count))
    return _in_turns((partial(made.job.enqueue, key=key) for key in keys), hand)


def claim_alone(engine: Engine, hand: ByHand, count: int) -> Seconds:
    _create_tasks(engine, WARM + count)
    return _in_turns([partial(engine.work.claim, WORKER)] * (WARM + count), hand)


def complete_alone(engine: Engine, hand: ByHand, count: int) -> Seconds:
    _create_tasks(engine, WARM + count)
    held = engine.work.claim(WORKER, count=WARM + count)
    complete = engine.work.complete
    return _in_turns((partial(complete, each.task.id, each.token, RESULT) for each in held), hand)


def _create_tasks(engine: Engine, count: int) -> None:
    engine.tasks.create_many([NewTask(title="job") for _ in range(count)])


def _in_turns(calls: Iterable[Callable[[], object]], hand: ByHand) -> Seconds:
    taken = [(_time(call), _time(hand.commit_once)) for call in calls][WARM:]
    return sum(call for call, _ in taken), sum(commit for _, commit in taken)


def _time(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
