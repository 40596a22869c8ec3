"""A worker in the program is given what its step works on; the rest of a task it reads if asked."""

from __future__ import annotations

import pytest

from holdfast import NotFound
from holdfast.engine.engine import Engine
from holdfast.worker.context import Context, Tenure
from tests.contract import stages
from tests.contract.test_taking import Hand


def take(engine: Engine, **asked: object) -> Hand:
    hand = Hand(engine, room=1)
    stages.create(engine, "one", **asked)
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


def test_anybody_else_is_given_the_record_of_a_task_as_it_was_claimed(engine: Engine) -> None:
    stages.create(engine, "one")
    (held,) = engine.work.claim("worker")
    assert engine.tasks.cancel(held.task_id).ok
    assert (held.task.status, held.task.version) == ("running", 2)
    assert held.fields()["status"] == "running"


def test_an_attempt_that_is_over_keeps_the_effect_ids_of_its_own_epoch(engine: Engine) -> None:
    (held,) = take(engine).held
    context = Context(engine, held, Tenure(deadline=0.0))
    assert engine.tasks.cancel(held.task_id).ok
    assert engine.tasks.reset(held.task_id).ok
    assert engine.tasks.get(held.task_id).epoch == 2
    assert context.effect_id("mail") == f"{held.task_id}/1/mail"


def test_what_is_gone_cannot_be_read_any_more(engine: Engine) -> None:
    (held,) = take(engine).held
    assert engine.tasks.cancel(held.task_id).ok
    assert engine.tasks.delete(held.task_id).ok
    with pytest.raises(NotFound):
        held.task  # noqa: B018 - it is read when it is asked for
    assert held.name == "one"
