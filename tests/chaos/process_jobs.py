"""What a process is started for: to open a store or write a group, and die in it, or recover."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from holdfast.clock import ManualClock
from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.engine.core.operation import Operation, Pull
from holdfast.engine.engine import Engine
from holdfast.randomness import SeededRandomness
from tests.chaos import leaky_drivers
from tests.chaos.statement_boundaries import Boundary, watch


@dataclass(frozen=True, kw_only=True)
class Errand:
    url: str
    now: int
    leaks: bool = False


@dataclass(frozen=True, kw_only=True)
class Replies:
    """What the callers of a group were told."""

    given: tuple[object, ...]


def write(
    report: Connection, errand: Errand, operations: Sequence[Operation], place: int | None
) -> None:
    """Write one group; before the statement at `place`, die. Reports each statement it passes."""
    boundary = Boundary(place, report)
    watch(boundary)
    if errand.leaks:
        leaky_drivers.leak()
    clock = ManualClock(errand.now)
    with closing(Engine(errand.url, clock=clock, randomness=SeededRandomness(11))) as engine:
        futures = submit(engine, operations)
        boundary.armed = True
        engine.commits.step()
        boundary.armed = False
        report.send(Replies(given=tuple(_reply(future) for future in futures)))


def submit(engine: Engine, operations: Sequence[Operation]) -> list[Future[Any]]:
    """Have the next group hold some operations, and serve whoever pulls among them."""
    for each in operations:
        if isinstance(each, Pull):
            assert isinstance(each.standing_claim, StandingClaim)
            engine.work.add_standing_claim(each.standing_claim)
    return engine.commits.submit_many(operations)


def open_store(report: Connection, errand: Errand, place: int | None) -> None:
    """Open a store, which brings its schema up to date; before the statement at `place`, die."""
    boundary = Boundary(place, report)
    watch(boundary)
    boundary.armed = True
    Engine(errand.url, clock=ManualClock(errand.now)).close()


def _reply(future: Future[object]) -> object:
    told = future.exception() or future.result()
    return told.read() if isinstance(told, Claimed) else told


def recover(_: Connection, errand: Errand, runs: Sequence[str]) -> None:
    """Open the store and do once what a starting process does."""
    # Whatever it makes has the same ids however often it is asked to.
    chance = SeededRandomness(13)
    clock = ManualClock(errand.now)
    with closing(Engine(errand.url, clock=clock, randomness=chance)) as engine:
        engine.commits.start()
        engine.recovery.step()
        for each in runs:
            engine.runs.advance(each)
