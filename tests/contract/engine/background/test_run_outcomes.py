"""Who waits for an end hears of it at once, whoever ends it, and is asked for nothing in vain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import NotFound, ShuttingDown
from holdfast.engine.engine import Engine
from tests.contract.task_states import create, finish, take
from tests.engines import healthy, opened

PATIENCE = 30


@pytest.fixture
def hearing(store_url: str) -> Iterator[Engine]:
    """An engine that hears hints, but has no recovery that would look sooner or later."""
    engine = Engine(store_url).start()
    engine.recovery.close()
    with healthy(engine):
        yield engine


def test_a_task_ended_by_another_process_is_told_when_its_hint_is_heard(
    hearing: Engine, store_url: str
) -> None:
    task_id = create(hearing)
    ended = hearing.outcomes.wait(task_id, hearing.outcomes.looks)
    with opened(store_url, clock=hearing.clock) as other:
        finish(other, task_id, "made elsewhere")
    assert ended.result(PATIENCE)["output"] == '"made elsewhere"'


def test_a_task_ended_in_a_transaction_of_the_application_is_told_after_the_commit(
    hearing: Engine,
) -> None:
    task_id = create(hearing)
    ended = hearing.outcomes.wait(task_id)
    with hearing.transaction() as connection:
        hearing.join(connection).tasks.cancel(task_id)
        assert not ended.done()
    assert ended.result(PATIENCE)["status"] == "cancelled"


def test_a_task_just_created_is_waited_for_without_a_look_at_the_store(engine: Engine) -> None:
    looks = engine.outcomes.looks
    waiting = engine.outcomes.wait("t_not_there", looks)
    assert not waiting.done()
    assert engine.outcomes.looks == looks
    engine.outcomes.look_for_ends()
    with pytest.raises(NotFound):
        waiting.result(PATIENCE)
    with pytest.raises(NotFound):
        engine.outcomes.wait("t_not_there").result(PATIENCE)


def test_a_task_that_ended_before_the_wait_is_told_at_once(engine: Engine) -> None:
    looks = engine.outcomes.looks
    task_id = create(engine)
    held = take(engine, task_id)
    waiting = engine.outcomes.wait(task_id, looks)
    assert not waiting.done()
    assert engine.work.complete(task_id, held.token).ok
    assert waiting.done()
    assert engine.outcomes.wait(task_id, looks).done()


def test_a_task_that_ended_elsewhere_and_was_heard_of_is_told_at_once(
    engine: Engine, store_url: str
) -> None:
    looks = engine.outcomes.looks
    task_id = create(engine)
    with opened(store_url, clock=engine.clock) as other:
        finish(other, task_id)
    # As on a hint.
    engine.outcomes.look_for_ends()
    assert engine.outcomes.wait(task_id, looks).done()


def test_a_wait_on_a_closed_engine_is_refused_at_once(store_url: str) -> None:
    engine = Engine(store_url).start()
    task_id = create(engine)
    engine.close()
    with pytest.raises(ShuttingDown):
        engine.outcomes.wait(task_id, engine.outcomes.looks)
