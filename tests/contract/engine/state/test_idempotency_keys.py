"""Starting is idempotent: one key, one row, whoever asks and how often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, KeyConflict
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.contract.raw_store import dump
from tests.contract.task_states import CHAIN, FORK, MISSING_TASK, bring, create

BODY = NewTask(title="pay", key="order-7", payload={"amount": 5, "to": "ada"})
OTHERS: dict[str, dict[str, Any]] = {
    "title": {"title": "other"},
    "step": {"step": "other"},
    "agent": {"agent": "other"},
    "payload": {"payload": {"amount": 6, "to": "ada"}},
    "scheduled_for": {"scheduled_for": "5s"},
    "priority": {"priority": 1},
    "position": {"position": 1},
    "tags": {"tags": ("gpu",)},
    "retry": {"retry": RetryPolicy(max_attempts=4)},
    "timeout": {"timeout": 5.0},
    "concurrency": {"concurrency": Concurrency(key="repo")},
    "enqueue": {"enqueue": False},
}


def test_the_same_key_and_body_give_back_the_existing_task_untouched(
    engine: Engine, store_url: str
) -> None:
    first = engine.tasks.create(BODY)
    assert first.created
    store = dump(store_url)
    again = engine.tasks.create(replace(BODY, payload={"to": "ada", "amount": 5}), actor="bob")
    assert (again.id, again.created) == (first.id, False)
    assert dump(store_url) == store


def test_the_existing_task_is_given_back_wherever_it_stands(engine: Engine) -> None:
    for status in Status:
        stage = bring(engine, status, key=f"key of {status}")
        found = engine.tasks.create(
            NewTask(title="task", key=f"key of {status}", enqueue=status is not Status.IDLE)
        )
        assert (found.id, found.created) == (stage.task_id, False)
        assert engine.tasks.get(stage.task_id).status is status


@pytest.mark.parametrize("field", OTHERS)
def test_the_same_key_with_another_body_is_a_conflict(
    engine: Engine, store_url: str, field: str
) -> None:
    first = engine.tasks.create(BODY)
    store = dump(store_url)
    with pytest.raises(KeyConflict, match="order-7") as refused:
        engine.tasks.create(replace(BODY, **OTHERS[field]))
    assert (refused.value.key, refused.value.existing) == ("order-7", first.id)
    assert dump(store_url) == store


def test_a_key_used_again_with_another_need_or_parent_is_a_conflict(engine: Engine) -> None:
    first, second = create(engine), create(engine)
    body = replace(BODY, needs=(first,), parent=first)
    engine.tasks.create(body)
    for other in (replace(body, needs=(second,)), replace(body, parent=second)):
        with pytest.raises(KeyConflict):
            engine.tasks.create(other)


def test_the_same_body_written_otherwise_is_the_same_body(engine: Engine) -> None:
    needs = sorted((create(engine), create(engine)))
    body = NewTask(title="pay", key="order-8", needs=tuple(needs), tags=("b", "a"), timeout=5)
    created = engine.tasks.create(body)
    otherwise: dict[str, Any] = {"needs": [needs[1], *needs], "tags": ["a", "b", "a"]}
    again = replace(body, timeout=5.0, **otherwise)
    assert engine.tasks.create(again).id == created.id


def test_a_key_that_was_deleted_is_free_again(engine: Engine) -> None:
    first = engine.tasks.create(BODY)
    assert engine.tasks.delete(first.id).ok
    assert engine.tasks.create(replace(BODY, title="other")).created


def test_duplicates_inside_one_batch_become_one_task(engine: Engine) -> None:
    created = engine.tasks.create_many([BODY, NewTask(title="free"), BODY, NewTask(title="free")])
    assert [each.created for each in created] == [True, True, False, True]
    assert created[0].id == created[2].id
    assert created[1].id != created[3].id


def test_a_batch_with_one_conflict_leaves_nothing_behind(engine: Engine, store_url: str) -> None:
    store = dump(store_url)
    batch = [NewTask(title="free"), BODY, replace(BODY, title="other")]
    with pytest.raises(KeyConflict):
        engine.tasks.create_many(batch)
    assert dump(store_url) == store
    assert engine.tasks.create(replace(BODY, title="other")).created


def test_a_batch_with_one_unknown_need_leaves_nothing_behind(
    engine: Engine, store_url: str
) -> None:
    store = dump(store_url)
    with pytest.raises(InvalidInput, match="needs") as refused:
        engine.tasks.create_many([BODY, NewTask(title="bad", needs=(MISSING_TASK,))])
    assert refused.value.field == "needs"
    assert dump(store_url) == store


def test_an_empty_batch_creates_nothing(engine: Engine) -> None:
    assert engine.tasks.create_many([]) == []


def test_batches_in_one_group_share_their_keys(engine: Engine) -> None:
    """Three callers at once, whose operations may be written in one transaction."""
    first = engine.tasks.create_many.submit([BODY, NewTask(title="free")])
    second = engine.tasks.create_many.submit([NewTask(title="x"), replace(BODY, title="other")])
    third = engine.tasks.create.submit(BODY)
    assert [each.created for each in first.result()] == [True, True]
    assert isinstance(second.exception(), KeyConflict)
    assert third.result().id == first.result()[0].id


def test_a_run_with_a_key_exists_once(engine: Engine, store_url: str) -> None:
    body = NewRun(workflow=CHAIN, input={"a": 1, "b": 2}, key="nightly", priority=3)
    first = engine.runs.start(body)
    store = dump(store_url)
    again = engine.runs.start(replace(body, input={"b": 2, "a": 1}))
    assert (first.created, again.created, again.id) == (True, False, first.id)
    assert dump(store_url) == store


@pytest.mark.parametrize("field", ["workflow", "input", "priority"])
def test_the_key_of_a_run_with_another_body_is_a_conflict(
    engine: Engine, store_url: str, field: str
) -> None:
    body = NewRun(workflow=CHAIN, input={"a": 1}, key="nightly")
    first = engine.runs.start(body)
    store = dump(store_url)
    other: Any = {"workflow": FORK, "input": {"a": 2}, "priority": 1}[field]
    with pytest.raises(KeyConflict) as refused:
        engine.runs.start(replace(body, **{field: other}))
    assert refused.value.existing == first.id
    assert dump(store_url) == store


def test_runs_started_at_once_with_one_key_are_one_run(engine: Engine) -> None:
    body = NewRun(workflow=CHAIN, key="nightly")
    answers = [engine.runs.start.submit(body) for _ in range(5)]
    assert len({answer.result().id for answer in answers}) == 1
    assert [answer.result().created for answer in answers].count(True) == 1
    conflict = engine.runs.start.submit(replace(body, input=1)).exception()
    assert isinstance(conflict, KeyConflict)


def test_a_key_of_a_task_and_a_key_of_a_run_are_two_keys(engine: Engine) -> None:
    engine.tasks.create(NewTask(title="task", key="same"))
    assert engine.runs.start(NewRun(workflow=CHAIN, key="same")).created


def test_a_run_is_pinned_to_the_version_it_started_with(engine: Engine, store_url: str) -> None:
    longer = Workflow.define("chain", (*CHAIN.steps, Step(id="ship", needs=("review",))))
    first = engine.runs.start(NewRun(workflow=CHAIN))
    second = engine.runs.start(NewRun(workflow=longer))
    assert engine.runs.get(first.id).workflow_version == CHAIN.version
    assert engine.runs.get(second.id).workflow_version == longer.version
    assert len(dump(store_url)["holdfast_workflow"]) == 2
