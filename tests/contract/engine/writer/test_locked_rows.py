"""Rows that an application's transaction has locked on PostgreSQL: who needs them waits alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import NewRun, NewTask, Settings, StoreBusy
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.worker.pool.lease_renewal import Heartbeat
from tests.contract.worker.function_workers import execution_of
from tests.contract.worker.pool.test_lease_renewal import renewed
from tests.engines import healthy, opened
from tests.race.racers import eventually

PATIENCE = 3
ONE_AT_A_TIME = Workflow.define(
    "single", (Step(id="only"),), concurrency=Concurrency(key="one", limit=1)
)


@pytest.fixture
def engine(postgres_store_url: str) -> Iterator[Engine]:
    engine = Engine(postgres_store_url)
    with healthy(engine):
        engine.commits.start()
        yield engine


def test_a_report_waits_for_who_makes_something_need_its_task_and_others_go_on(
    engine: Engine,
) -> None:
    needed = engine.tasks.create(NewTask(title="needed"))
    (held,) = engine.work.claim("anna")
    with engine.transaction() as connection:
        after = engine.tasks.create(
            NewTask(title="after", needs=(needed.id,)), connection=connection
        )
        renewed = engine.work.renew.submit([])
        completed = engine.work.complete.submit(needed.id, held.token)
        again = engine.work.complete.submit(needed.id, held.token)
        for _ in range(20):
            made = engine.tasks.create.submit(NewTask(title="other")).result(PATIENCE)
            engine.work.claim.submit("bert").result(PATIENCE)
            assert engine.tasks.cancel.submit(made.id).result(PATIENCE).ok
        assert not completed.done()
        assert not again.done()
    assert renewed.result(PATIENCE) == []
    assert completed.result(PATIENCE).ok
    assert again.result(PATIENCE).repeated
    assert engine.tasks.get(after.id).state == "ready"


def test_a_run_that_waits_for_a_counter_keeps_nobody_else_waiting(engine: Engine) -> None:
    first = engine.runs.start(NewRun(workflow=ONE_AT_A_TIME))
    (held,) = engine.work.claim("anna")
    with engine.transaction() as connection:
        second = engine.runs.start(NewRun(workflow=ONE_AT_A_TIME), connection=connection)
        ended = engine.work.complete.submit(held.task.id, held.token)
        third = engine.runs.start.submit(NewRun(workflow=ONE_AT_A_TIME))
        for _ in range(5):
            assert engine.tasks.create.submit(NewTask(title="other")).result(PATIENCE).created
        assert not ended.done()
    assert ended.result(PATIENCE).ok
    assert engine.runs.get(first.id).status == "completed"
    holds = [engine.runs.get(each.id).holds for each in (second, third.result(PATIENCE))]
    assert holds == [Hold(0), Hold.SLOT]


def test_a_write_that_waits_in_vain_is_told_so_and_later_writes_go_through(
    postgres_store_url: str,
) -> None:
    settings = Settings(url=postgres_store_url, lease=1.0, renewal=0.3)
    engine = Engine(postgres_store_url, settings=settings)
    with healthy(engine), engine.transaction() as connection:
        engine.tasks.create(NewTask(title="mine", key="order-7"), connection=connection)
        waits = engine.tasks.create.submit(NewTask(title="mine", key="order-7"))
        other = engine.tasks.create.submit(NewTask(title="other"))
        engine.commits.step()
        assert other.result(0).created
        while not waits.done():
            engine.commits.step()
        assert isinstance(waits.exception(), StoreBusy)


def test_a_lease_that_cannot_be_renewed_costs_no_other_attempt_of_its_worker_theirs(
    postgres_store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    with opened(postgres_store_url, clock=clock) as engine:
        locked, other = execution_of(engine), execution_of(engine)
        heartbeat = Heartbeat(engine, lambda: [locked, other])
        clock.advance(heartbeat.step())
        with engine.transaction() as connection:
            after = NewTask(title="after", needs=(locked.task_id,))
            engine.tasks.create(after, connection=connection)
            is_renewed = renewed(engine, other.task_id)
            heartbeat.step()
            # By then the other has been put aside, and its time has begun.
            assert eventually(is_renewed)
            assert eventually(lambda: heartbeat.step() == 10 and other.deadline == 40)
            clock.advance(10)
            assert eventually(lambda: heartbeat.step() == 10 and other.deadline == 50)
            assert locked.deadline == 30
            assert eventually(lambda: heartbeat.step() == 10 and "could not renew 1" in caplog.text)
        assert eventually(lambda: heartbeat.step() == 10 and locked.deadline == 50)


def test_a_lost_lease_that_cannot_be_taken_back_holds_up_nothing_else_that_is_due(
    postgres_store_url: str,
) -> None:
    # Who waits for a lock does so for a third of the usual lease: longer than this test.
    settings = Settings(url=postgres_store_url, lease=300, renewal=100, recovery=0.05)
    engine = Engine(postgres_store_url, settings=settings)
    with healthy(engine):
        engine.start()
        locked = engine.tasks.create(NewTask(title="locked"))
        assert engine.work.claim("anna", lease=0.1)
        with engine.transaction() as connection:
            engine.tasks.create(NewTask(title="after", needs=(locked.id,)), connection=connection)
            later = engine.tasks.create(NewTask(title="later", scheduled_for="400ms"))
            assert eventually(lambda: engine.tasks.get(later.id).state == "ready")
            assert [each.task_id for each in engine.work.claim("bert", lease=0.1)] == [later.id]
            assert eventually(lambda: engine.tasks.get(later.id).lost == 1)
            assert engine.tasks.get(locked.id).status == "running"
        assert eventually(lambda: engine.tasks.get(locked.id).status == "queued")
