"""A run that is not done in time has failed, with whatever of it was open."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from holdfast import Holdfast
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.event import fold_events
from holdfast.model.moment import to_datetime
from holdfast.model.run import NewRun
from holdfast.model.task import Renewal
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.contract.called_workflows import SHIP, begin, call, of
from tests.contract.task_states import CHAIN, start, take
from tests.race.racers import eventually

HOUR = replace(CHAIN, deadline=3_600)


def test_a_run_past_its_deadline_has_failed_and_all_that_was_open_is_cancelled(
    engine: Engine, clock: ManualClock
) -> None:
    run, other = start(engine, HOUR), start(engine)
    run.finish("plan")
    work = take(engine, run.steps["work"], lease=9_000)
    assert engine.runs.get(run.id).deadline == to_datetime(clock.now() + 3_600 * MICROSECONDS)
    clock.advance(3_599)
    engine.recovery.step()
    assert run.status == "running"
    clock.advance(1)
    engine.recovery.step()
    found = engine.runs.get(run.id)
    assert (found.status, found.error) == (
        "failed",
        {"code": "deadline", "message": "it was not done within 1h"},
    )
    assert run.statuses == {"plan": "done", "work": "cancelled", "review": "cancelled"}
    (answer,) = engine.work.renew([Renewal(task_id=work.task_id, token=work.token)])
    assert answer.reason == "cancelled"
    assert other.status == "running"
    assert run.event_types()[-1] == "run.failed"
    assert engine.runs.expire() == []


def test_a_retry_gives_a_run_its_time_again(engine: Engine, clock: ManualClock) -> None:
    run = start(engine, HOUR)
    clock.advance(3_600)
    (ended,) = engine.runs.expire()
    assert (ended.ok, ended.status) == (True, "failed")
    clock.advance(5_000)
    assert engine.runs.retry(run.id).ok
    found = engine.runs.get(run.id)
    assert (found.error, found.deadline) == (
        None,
        to_datetime(clock.now() + 3_600 * MICROSECONDS),
    )
    told = fold_events(event for event in engine.runs.events(run.id) if event.task_id is None)
    assert to_datetime(told["deadline"]) == found.deadline
    assert engine.runs.expire() == []
    run.finish("plan", "work", "review")
    assert run.status == "completed"
    clock.advance(3_600)
    assert engine.runs.expire() == []


def test_a_start_may_say_another_deadline_which_its_key_does_not_depend_on(
    engine: Engine, clock: ManualClock
) -> None:
    short = NewRun(workflow=HOUR, deadline=60, key="once")
    made = engine.runs.start(short)
    assert engine.runs.get(made.id).deadline == to_datetime(clock.now() + 60 * MICROSECONDS)
    assert not engine.runs.start(short).created
    assert engine.runs.start(replace(short, deadline=None)).id == made.id
    assert engine.runs.get(made.id).deadline == to_datetime(clock.now() + 60 * MICROSECONDS)
    for bad in (0, -1, float("nan")):
        with pytest.raises(InvalidInput, match="deadline"):
            engine.runs.start(NewRun(workflow=CHAIN, deadline=bad))
    assert HOUR.version != CHAIN.version


def test_a_run_that_waits_for_its_turn_loses_it_and_one_that_has_it_gives_it_up(
    engine: Engine, clock: ManualClock
) -> None:
    alone = Workflow.define(
        "alone", (Step(id="only"),), concurrency=Concurrency(key="alone"), deadline=60
    )
    first, second = (start(engine, alone) for _ in range(2))
    clock.advance(30)
    third = start(engine, alone)
    first.take("only")
    assert (second.holds, third.holds) == (["slot"], ["slot"])
    clock.advance(30)
    assert [answer.ok for answer in engine.runs.expire()] == [True, True]
    assert (first.status, second.status, third.status) == ("failed", "failed", "running")
    assert third.holds == []


def test_recovery_ends_an_overdue_run_by_itself_within_a_second(store_url: str) -> None:
    with Holdfast(store_url) as hf:
        slow = hf.workflow("slow", deadline="200ms")

        @slow.step
        def never() -> None: ...

        run = slow.start()
        assert eventually(lambda: hf.runs.get(run.id).terminal)
        ended = hf.runs.get(run.id)
        assert ended.finished_at is not None
        assert ended.deadline is not None
        assert timedelta() <= ended.finished_at - ended.deadline < timedelta(seconds=1)
        assert hf.doctor().ok


def test_a_run_past_its_deadline_takes_along_what_it_called_and_fails_who_called_it(
    engine: Engine, clock: ManualClock
) -> None:
    hurried = replace(SHIP, deadline=60)
    run = begin(engine, call(workflow=hurried), workflow=hurried)
    clock.advance(60)
    assert [answer.ok for answer in engine.runs.expire()] == [True]
    error = {"code": "deadline", "message": "it was not done within 1m"}
    assert (of(run).status, run.status) == ("failed", "failed")
    assert (run.task("ship").error, engine.runs.get(run.id).error) == (error, error)
    engine.workflows.add(SHIP)
    late = start(engine, Workflow.define("late", (call(),), deadline=60))
    called = of(late)
    clock.advance(60)
    assert [answer.ok for answer in engine.runs.expire()] == [True]
    assert (late.status, called.status) == ("failed", "cancelled")
