"""A worker in the program is given what its step works on; the rest of a task it reads if asked."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from holdfast import NotFound
from holdfast.clock import SystemClock
from holdfast.engine.engine import Engine
from holdfast.store.database import Row, Transaction
from holdfast.worker.attempt.attempt_lease import AttemptLease
from holdfast.worker.attempt.context import AttemptContext
from tests.contract import task_states
from tests.contract.engine.claims.test_claim_requests import waits
from tests.contract.engine.claims.test_standing_claims import Hand
from tests.engines import opened
from tests.race.racers import eventually


def take(engine: Engine, **asked: object) -> Hand:
    hand = Hand(engine, room=1)
    task_states.create(engine, "one", **asked)
    hand.let_go()
    return hand


def test_a_worker_reads_the_record_of_its_task_as_it_stands_when_it_is_asked_for(
    engine: Engine,
) -> None:
    (held,) = take(engine, payload={"a": 1}).held
    assert (held.name, held.payload, held.epoch) == ("one", {"a": 1}, 1)
    assert engine.tasks.cancel(held.task_id).ok
    assert held.task == engine.tasks.get(held.task_id)
    assert held.task.status == "cancelled"


def test_a_claim_outside_a_worker_gives_the_record_of_the_task_as_it_was_claimed(
    engine: Engine,
) -> None:
    task_states.create(engine, "one")
    (held,) = engine.work.claim("worker")
    assert engine.tasks.cancel(held.task_id).ok
    assert (held.task.status, held.task.version) == ("running", 2)
    assert held.fields()["status"] == "running"


def test_an_attempt_that_is_over_keeps_the_effect_ids_of_its_own_epoch(engine: Engine) -> None:
    (held,) = take(engine).held
    context = AttemptContext(engine, held, AttemptLease(deadline=0.0))
    assert engine.tasks.cancel(held.task_id).ok
    assert engine.tasks.reset(held.task_id).ok
    assert engine.tasks.get(held.task_id).epoch == 2
    assert context.effect_id("mail") == f"{held.task_id}/1/mail"


def test_the_record_of_a_deleted_task_cannot_be_read_from_its_claim(engine: Engine) -> None:
    (held,) = take(engine).held
    assert engine.tasks.cancel(held.task_id).ok
    assert engine.tasks.delete(held.task_id).ok
    with pytest.raises(NotFound):
        held.task  # noqa: B018 - it is read when it is asked for
    assert held.name == "one"


def test_a_task_is_given_what_those_gave_that_it_needs(engine: Engine) -> None:
    needed = task_states.create(engine, "needed")
    task_states.finish(engine, needed, output="made")
    hand = Hand(engine, room=3)
    task_states.create(engine, "late", needs=(needed,))
    task_states.create(engine, "free")
    again = task_states.create(engine, "again", enqueue=False)
    assert engine.tasks.block(again, [needed]).ok
    assert engine.tasks.enqueue(again).ok
    hand.let_go()
    given = {each.name: each.needs for each in hand.held}
    assert given == {"late": {needed: "made"}, "free": {}, "again": {needed: "made"}}


def test_a_claim_that_waited_for_a_need_to_be_added_says_that_there_is_one(
    postgres_store_url: str,
) -> None:
    url, clock = postgres_store_url, SystemClock()
    with opened(url, clock=clock) as engine, opened(url, clock=clock) as other:
        needed, task_id = task_states.create(engine), task_states.create(engine)
        task_states.finish(engine, needed)
        claiming = Future[list[Row]]()

        def block(tx: Transaction) -> None:
            asked = {"task_id": task_id, "ids": [needed], "linked": None, "actor": "user"}
            assert tx.change("block_task", **asked)
            tx.run("insert_needs", rows=[(task_id, needed, 1)])
            pool.submit(lambda: claiming.set_result(_claim(engine, task_id)))
            assert eventually(lambda: waits(url))

        with ThreadPoolExecutor() as pool:
            other.database.transact(block)
            (row,) = claiming.result(30)
        assert row["needy"]


def _claim(engine: Engine, task_id: str) -> list[Row]:
    asked: dict[str, Any] = {
        "agents": ["default"],
        "tags": "[]",
        "worker": "worker",
        "lease": 30_000_000,
    }
    return engine.database.transact(
        lambda tx: tx.change("claim_task_by_id", task_id=task_id, **asked)
    )
