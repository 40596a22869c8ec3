"""The engine and a plain model are asked the same things in any order, and never disagree.

`HOLDFAST_SIMULATION` is how many examples to run on each database, at random; unless it is set,
the same few are run every time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.store.database import is_postgresql
from tests.simulation.flow_state_machine import FlowMachine, LoopMachine
from tests.simulation.model_comparison import Bench, Dice
from tests.simulation.state_machine import CoreMachine, Machine
from tests.simulation.tables import open_tables

EXAMPLES = int(os.environ.get("HOLDFAST_SIMULATION", "0"))
SETTINGS = settings(
    max_examples=EXAMPLES or 200,
    stateful_step_count=50,
    derandomize=not EXAMPLES,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@contextmanager
def machine_on(url: str, kind: type[Machine]) -> Iterator[type[Machine]]:
    """A state machine whose examples share one engine, each on an empty store."""
    clock, dice = ManualClock(), Dice()
    engine = Engine(url, clock=clock, randomness=dice)
    tables = open_tables(url)

    def new_bench(_: Machine) -> Bench:
        tables.empty()
        return Bench(engine=engine, clock=clock, dice=dice, tables=tables)

    try:
        yield type(f"{kind.__name__}OnStore", (kind,), {"new_bench": new_bench})
    finally:
        tables.close()
        engine.close()


@pytest.mark.timeout(0 if EXAMPLES else 600)
def test_the_engine_and_the_plain_model_never_disagree(store_url: str) -> None:
    with machine_on(store_url, CoreMachine) as machine:
        run_state_machine_as_test(machine, settings=SETTINGS)


@pytest.mark.timeout(0 if EXAMPLES else 600)
@pytest.mark.parametrize("kind", [FlowMachine, LoopMachine])
def test_the_engine_and_the_plain_model_agree_about_verifiers_people_and_loops(
    store_url: str, kind: type[Machine]
) -> None:
    few = 12 if is_postgresql(store_url) else 30
    with machine_on(store_url, kind) as machine:
        chosen = settings(SETTINGS, max_examples=EXAMPLES or few)
        run_state_machine_as_test(machine, settings=chosen)
