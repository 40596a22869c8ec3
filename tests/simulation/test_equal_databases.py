"""The same seeded operations end in the same state on both databases, row by row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.randomness import SeededRandomness
from tests.contract.raw_store import Row, dump
from tests.simulation.player_requests import REPERTOIRE, WEIGHTS
from tests.simulation.seeded_player import Player

GROUPS = 140
# Made at random or by the clock of the machine when a store is made; no operation writes them.
OF_THE_STORE = {"holdfast_meta", "holdfast_migration"}


@contextmanager
def playing(url: str, seed: int) -> Iterator[Player]:
    clock = ManualClock()
    engine = Engine(url, clock=clock, randomness=SeededRandomness(seed))
    try:
        yield Player(engine=engine, clock=clock, draw=random.Random(seed))  # noqa: S311 - on purpose
        diagnosis = engine.doctor()
        assert diagnosis.ok, str(diagnosis)
    finally:
        engine.close()


def rows(url: str) -> dict[str, list[Row]]:
    """Every row there is; the events by entity and version, as one statement writes in no order."""
    tables = {table: found for table, found in dump(url).items() if table not in OF_THE_STORE}
    events = sorted(tables["holdfast_event"], key=lambda row: (row["entity"], row["version"]))
    assert sorted(event.pop("seq") for event in events) == list(range(1, len(events) + 1))
    return tables | {"holdfast_event": events}


def plan(seed: int) -> Iterator[list[str]]:
    """The names of what to ask for, in groups of up to four."""
    draw = random.Random(seed)  # noqa: S311 - reproducible on purpose
    for _ in range(GROUPS):
        yield draw.choices(list(REPERTOIRE), WEIGHTS, k=draw.randint(1, 4))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_same_seeded_operations_end_in_the_same_state_on_both_databases(
    sqlite_url: str, postgres_url: str, seed: int
) -> None:
    asked = Counter(name for group in plan(seed) for name in group)
    assert asked.keys() == REPERTOIRE.keys()
    assert asked.total() >= 300
    with playing(sqlite_url, seed) as one, playing(postgres_url, seed) as other:
        for group in plan(seed):
            kinds = [REPERTOIRE[name] for name in group]
            assert one.play(kinds) == other.play(kinds)
            assert one.look() == other.look()
        found, expected = rows(sqlite_url), rows(postgres_url)
        assert found.keys() == expected.keys()
        for table, kept in found.items():
            assert kept == expected[table]
    assert len({event["type"] for event in found["holdfast_event"]}) > 20
