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
from tests.contract.raw_store import dump, raw
from tests.contract.task_states import CHAIN, FORK, MISSING_TASK, bring, create

BODY = NewTask(title="pay", key="order-7", payload={"amount": 5, "to": "ada"})
OPTIONS: dict[str, dict[str, Any]] = {
    "title": {"title": "other"},
    "agent": {"agent": "other"},
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


@pytest.mark.parametrize("name", OPTIONS)
def test_another_option_under_the_same_key_gives_back_the_existing_task_untouched(
    engine: Engine, store_url: str, name: str
) -> None:
    first = engine.tasks.create(BODY)
    store = dump(store_url)
    again = engine.tasks.create(replace(BODY, **OPTIONS[name]))
    assert (again.id, again.created) == (first.id, False)
    assert dump(store_url) == store


def test_another_need_or_parent_under_the_same_key_gives_back_the_existing_task(
    engine: Engine, store_url: str
) -> None:
    first, second = create(engine), create(engine)
    made = engine.tasks.create(replace(BODY, needs=(first,), parent=first))
    store = dump(store_url)
    for other in ({"needs": (second,)}, {"parent": second}, {"needs": (), "parent": None}):
        asked: Any = other
        assert engine.tasks.create(replace(BODY, **asked)).id == made.id
    assert dump(store_url) == store


@pytest.mark.parametrize(
    ("payload", "differing"),
    [
        ({"amount": 6, "to": "ada"}, ("amount",)),
        ({"amount": 5.0, "to": "bob", "by": "eve"}, ("amount", "by", "to")),
        ({"amount": 5, "to": {"name": "ada"}}, ("to",)),
        ([5, "ada"], ()),
        (None, ()),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_conflict_names_the_arguments_that_differ(
    engine: Engine, store_url: str, payload: object, differing: tuple[str, ...], *, alone: bool
) -> None:
    first = engine.tasks.create(BODY)
    other = replace(BODY, payload=payload, needs=() if alone else (create(engine),))
    store = dump(store_url)
    with pytest.raises(KeyConflict, match="order-7") as refused:
        engine.tasks.create(other)
    error = refused.value
    assert (error.key, error.existing, error.differing) == ("order-7", first.id, differing)
    assert ", ".join(differing) in str(error)
    assert dump(store_url) == store


def test_a_conflict_names_an_argument_inside_of_another(engine: Engine) -> None:
    order = {"lines": [1, 2], "to": {"street": "x", "city": "y"}}
    engine.tasks.create(replace(BODY, payload={"order": order}))
    other = {"order": {**order, "to": {"street": "z", "city": "y"}}}
    with pytest.raises(KeyConflict, match=r"argument differs: order\.to\.street;"):
        engine.tasks.create(replace(BODY, payload=other))


@pytest.mark.parametrize("alone", [True, False])
def test_a_conflict_names_the_other_function(engine: Engine, *, alone: bool) -> None:
    engine.tasks.create(replace(BODY, step="pay"))
    needs = () if alone else (create(engine),)
    for other, told in (
        (replace(BODY, step="refund", needs=needs), "a call of 'pay' and not a call of 'refund'"),
        (replace(BODY, needs=needs), "a call of 'pay' and not a task without a function"),
        (replace(BODY, plan=True, needs=needs), "a call of 'pay' and not a plan"),
    ):
        with pytest.raises(KeyConflict, match=told):
            engine.tasks.create(other)


def test_what_another_release_kept_of_the_same_arguments_is_the_same(
    engine: Engine, store_url: str
) -> None:
    """A digest that was made otherwise: the arguments themselves are compared."""
    first = engine.tasks.create(BODY)
    run = engine.runs.start(NewRun(workflow=CHAIN, input={"a": 1}, key="nightly"))
    with raw(store_url) as ask:
        ask("UPDATE holdfast_task SET body_digest = 'older' WHERE id = ?", first.id)
        ask("UPDATE holdfast_run SET body_digest = 'older' WHERE id = ?", run.id)
    assert engine.tasks.create(BODY).id == first.id
    assert engine.tasks.create(replace(BODY, needs=(create(engine),))).id == first.id
    assert engine.runs.start(NewRun(workflow=CHAIN, input={"a": 1}, key="nightly")).id == run.id
    with pytest.raises(KeyConflict, match="amount"):
        engine.tasks.create(replace(BODY, payload={"to": "ada"}))


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
    assert engine.tasks.create(replace(BODY, payload="other")).created


def test_duplicates_inside_one_batch_become_one_task(engine: Engine) -> None:
    created = engine.tasks.create_many([BODY, NewTask(title="free"), BODY, NewTask(title="free")])
    assert [each.created for each in created] == [True, True, False, True]
    assert created[0].id == created[2].id
    assert created[1].id != created[3].id


def test_a_batch_with_one_conflict_leaves_nothing_behind(engine: Engine, store_url: str) -> None:
    store = dump(store_url)
    batch = [NewTask(title="free"), BODY, replace(BODY, payload={"amount": 5, "to": "bob"})]
    with pytest.raises(KeyConflict) as refused:
        engine.tasks.create_many(batch)
    assert refused.value.differing == ("to",)
    assert dump(store_url) == store
    assert engine.tasks.create(replace(BODY, payload="other")).created


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
    second = engine.tasks.create_many.submit([NewTask(title="x"), replace(BODY, payload="other")])
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


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"workflow": FORK}, "which is a run of 'chain' and not a run of 'fork'"),
        ({"input": {"a": 2}}, "whose argument differs: a;"),
    ],
)
def test_the_key_of_a_run_with_another_workflow_or_input_is_a_conflict(
    engine: Engine, store_url: str, other: dict[str, Any], told: str
) -> None:
    body = NewRun(workflow=CHAIN, input={"a": 1}, key="nightly")
    first = engine.runs.start(body)
    store = dump(store_url)
    with pytest.raises(KeyConflict, match=told) as refused:
        engine.runs.start(replace(body, **other))
    assert refused.value.existing == first.id
    assert dump(store_url) == store


def test_another_priority_or_deadline_under_the_key_of_a_run_gives_it_back_untouched(
    engine: Engine, store_url: str
) -> None:
    body = NewRun(workflow=CHAIN, input={"a": 1}, key="nightly")
    first = engine.runs.start(body)
    store = dump(store_url)
    for other in (replace(body, priority=1), replace(body, deadline=5)):
        assert engine.runs.start(other).id == first.id
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
