"""A run is held by its budget, and ended by its deadline, only when it is that run's turn."""

from __future__ import annotations

import psycopg

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.budget import Budget
from tests.contract.engine.state.limits.test_deadlines import HOUR
from tests.contract.engine.state.limits.test_run_budgets import begin, complete
from tests.contract.single_statements import write
from tests.contract.task_states import StartedRun, start
from tests.engines import opened
from tests.race.racers import RaceClock


def spent(engine: Engine, budget: Budget) -> StartedRun:
    """A run that is at its limit, and that somebody lets go on all the same."""
    run = begin(engine, budget)
    complete(engine, run.take("one"), 1)
    assert run.holds == ["budget"]
    assert engine.runs.unhold(run.id, "budget").ok
    return run


def hold(engine: Engine, *runs: StartedRun) -> set[str]:
    held = write(engine, "hold_spent_runs", ids=[run.id for run in runs])
    for each in held:
        engine.runs.advance(each)
    return held


def test_only_a_named_running_run_at_its_own_limit_is_held_and_once(engine: Engine) -> None:
    named, other, over = (spent(engine, Budget(usd=1)) for _ in range(3))
    often = spent(engine, Budget(attempts=1))
    free = [begin(engine, limit) for limit in (Budget(usd=1), Budget(attempts=1), Budget())]
    assert engine.runs.cancel(over.id).ok
    assert hold(engine, named, over, *free) == {named.id}
    assert hold(engine, named, often) == {often.id}
    assert other.holds == []


def test_only_a_running_run_whose_time_is_over_expires(engine: Engine, clock: ManualClock) -> None:
    early, over, late = (start(engine, HOUR) for _ in range(3))
    assert engine.runs.cancel(over.id).ok
    told = {"problem": '"late"', "actor": "recovery"}
    clock.advance(3_599)
    assert write(engine, "expire_run", run_id=early.id, **told) == set()
    early.finish("plan", "work", "review")
    clock.advance(1)
    assert write(engine, "expire_run", run_id=over.id, **told) == set()
    assert late.status == "running"


def test_a_claim_waits_for_no_run_and_the_next_report_holds_it(
    postgres_store_url: str, clock: ManualClock
) -> None:
    with (
        opened(postgres_store_url, clock=RaceClock(clock)) as engine,
        psycopg.connect(postgres_store_url) as other,
    ):
        run = begin(engine, Budget(attempts=1))
        other.execute("SELECT id FROM holdfast_run FOR NO KEY UPDATE")
        (taken,) = engine.work.claim("worker")
        assert run.holds == []
        other.rollback()
        complete(engine, taken, 0)
        assert run.holds == ["budget"]
