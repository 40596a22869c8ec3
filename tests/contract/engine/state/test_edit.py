"""Edits of a task that is not running, and the version they were made for."""

from __future__ import annotations

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice
from holdfast.model.effect import WakeCondition
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal
from holdfast.model.retry import MAX_COUNT, RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.advised import advised
from tests.contract.raw_store import dump
from tests.contract.task_states import create, finish, start, take

EDITS: dict[str, object] = {
    "title": "other",
    "agent": "developer",
    "payload": {"b": [1, None]},
    "priority": 7,
    "position": -3,
    "tags": ("eu", "gpu"),
    "timeout": 12.5,
}


@pytest.mark.parametrize("field", EDITS)
def test_each_field_can_be_edited_alone(engine: Engine, field: str) -> None:
    task_id = create(engine, payload=1, timeout=3)
    before = engine.tasks.get(task_id)
    assert engine.tasks.edit(task_id, {field: EDITS[field]}, actor="ada").ok
    after = engine.tasks.get(task_id)
    changed = {
        name
        for name in before.__dataclass_fields__
        if getattr(before, name) != getattr(after, name)
    }
    assert changed == {field, "version"}
    assert getattr(after, field) == EDITS[field]
    assert engine.tasks.events(task_id)[-1].actor == "ada"


def test_many_fields_are_edited_as_one_change(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine)
    later = clock.now() + MICROSECONDS
    changes = {**EDITS, "max_attempts": 9, "max_lost": 8, "scheduled_for": later}
    assert engine.tasks.edit(task_id, changes).ok
    task = engine.tasks.get(task_id)
    assert {name: getattr(task, name) for name in EDITS} == EDITS
    assert (task.retry.max_attempts, task.retry.max_lost) == (9, 8)
    assert (task.scheduled_for, task.due, task.version) == (to_datetime(later), False, 2)
    assert engine.tasks.edit(task_id, {"scheduled_for": None}).ok
    assert (engine.tasks.get(task_id).scheduled_for, engine.tasks.get(task_id).due) == (None, True)


def test_a_payload_can_be_edited_to_null(engine: Engine) -> None:
    task_id = create(engine, payload=1)
    assert engine.tasks.edit(task_id, {"payload": None}).ok
    assert engine.tasks.get(task_id).payload is None


def test_between_two_attempts_an_edit_is_for_the_next_and_what_is_remembered_stays(
    engine: Engine,
) -> None:
    task = create(engine)
    first = take(engine, task)
    assert engine.work.record_effect(task, first.token, "charge", 7).answer.ok
    assert not engine.tasks.edit(task, {"payload": {"n": 2}}).ok
    assert engine.work.suspend(task, first.token, WakeCondition(target=task, signals=("go",))).ok
    assert engine.tasks.edit(task, {"payload": {"n": 2}}).ok
    assert engine.signals.send(task, "go").ok
    assert (take(engine, task).payload, engine.work.effects(task)) == ({"n": 2}, {"charge": 7})


def test_an_edit_for_the_version_that_was_seen_is_made(engine: Engine) -> None:
    task_id = create(engine)
    assert engine.tasks.edit(task_id, {"title": "second"}, expected_version=1).ok
    assert engine.tasks.edit(task_id, {"title": "third"}, expected_version=2).ok


def test_an_edit_for_another_version_is_refused(engine: Engine, store_url: str) -> None:
    task_id = create(engine)
    assert engine.tasks.edit(task_id, {"title": "second"}).ok
    store = dump(store_url)
    for version in (1, 3):
        answer = engine.tasks.edit(task_id, {"title": "x"}, expected_version=version)
        assert (answer.ok, answer.reason) == (False, Refusal.VERSION_CONFLICT)
        assert "version 2" in answer.detail
    assert dump(store_url) == store


def test_a_refused_edit_of_a_task_of_a_run_is_told_of_in_the_run(engine: Engine) -> None:
    run = start(engine)
    task_id = run.steps["plan"]
    assert engine.tasks.edit(task_id, {"title": "second"}).ok
    before = engine.tasks.get(task_id)
    answer = engine.tasks.edit(task_id, {"title": "x"}, expected_version=1, actor="ada")
    assert (answer.ok, answer.reason) == (False, Refusal.VERSION_CONFLICT)
    assert engine.tasks.get(task_id) == before
    told = engine.runs.events(run.id)[-1]
    assert (told.type, told.actor, told.data["task_id"]) == ("run.conflict", "ada", task_id)


@pytest.mark.parametrize("step", ["plan", "work"])
def test_a_refused_edit_is_not_told_of_over_what_has_ended(engine: Engine, step: str) -> None:
    run, other = start(engine), start(engine)
    run.break_for_good("plan")
    version = engine.runs.get(run.id).version
    answer = engine.tasks.edit(run.steps[step], {"title": "x"}, expected_version=9)
    assert answer.reason is Refusal.VERSION_CONFLICT
    assert engine.runs.get(run.id).version == version
    assert engine.runs.get(other.id).version == 1


def test_an_edit_changes_the_order_of_the_queue(engine: Engine) -> None:
    first, second = create(engine, "first"), create(engine, "second")
    assert engine.tasks.edit(second, {"position": -1}).ok
    claimed = [each.task.id for each in engine.work.claim("worker", count=2)]
    assert claimed == [second, first]


def test_a_step_of_a_run_can_be_edited_before_it_starts(engine: Engine) -> None:
    run = start(engine)
    assert engine.tasks.edit(run.steps["work"], {"payload": "hint"}).ok
    run.finish("plan")
    assert run.take("work").task.payload == "hint"


def test_a_budget_that_is_already_spent_is_refused(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    task_id = create(engine, retry=RetryPolicy(max_attempts=3, max_lost=3))
    for _ in range(2):
        assert engine.work.fail(task_id, take(engine, task_id).token, "broken").ok
        clock.advance(300)
        take(engine, task_id)
        clock.advance(30)
        engine.work.recover()
    store = dump(store_url)
    for field in ("max_attempts", "max_lost"):
        for value in (1, 2):
            answer = engine.tasks.edit(task_id, {field: value})
            assert (answer.ok, answer.reason) == (False, Refusal.INVALID_TRANSITION)
    assert dump(store_url) == store
    assert engine.tasks.edit(task_id, {"max_attempts": 3}).ok
    assert engine.work.fail(task_id, take(engine, task_id).token, "broken").status == "failed"


def test_the_largest_budget_can_be_edited_read_and_claimed(engine: Engine) -> None:
    task_id = create(engine)
    assert engine.tasks.edit(task_id, {"max_attempts": MAX_COUNT, "max_lost": MAX_COUNT}).ok
    assert engine.work.claim("worker")[0].task.retry.max_attempts == MAX_COUNT


def test_a_refused_edit_of_a_started_task_says_what_to_do_first(engine: Engine) -> None:
    running = create(engine)
    take(engine, running)
    told = engine.tasks.edit(running, {"priority": 3})
    cancel, reset = Advice(Action.CANCEL, running), Advice(Action.RESET, running)
    assert advised(told) == [cancel, reset]
    assert engine.tasks.cancel(running).ok
    told = engine.tasks.edit(running, {"priority": 3})
    assert advised(told) == [reset]
    assert engine.tasks.reset(running).ok
    assert engine.tasks.edit(running, {"priority": 3}).ok


def test_a_refused_edit_of_a_task_with_started_dependents_says_that_reopen_does_them_again(
    engine: Engine,
) -> None:
    first = create(engine)
    then = create(engine, needs=(first,))
    finish(engine, first)
    told = engine.tasks.edit(first, {"priority": 3})
    assert advised(told) == [Advice(Action.RESET, first)]
    take(engine, then)
    told = engine.tasks.edit(first, {"priority": 3})
    assert advised(told) == [Advice(Action.REOPEN, first)]
    assert engine.tasks.reset(first).reason is Refusal.STARTED_DEPENDENTS
    assert engine.tasks.reopen(first).ok
    assert engine.tasks.edit(first, {"priority": 3}).ok


@pytest.mark.parametrize("field", ["max_attempts", "max_lost"])
def test_a_budget_is_not_made_smaller_than_what_is_spent(
    engine: Engine, clock: ManualClock, field: str
) -> None:
    task_id = create(engine)
    attempt = take(engine, task_id, lease=1)
    if field == "max_attempts":
        assert engine.work.fail(task_id, attempt.token, "red").ok
    else:
        clock.advance(2)
        engine.work.recover()
    told = engine.tasks.edit(task_id, {field: 1})
    assert (told.reason, advised(told)) == (Refusal.INVALID_TRANSITION, [])
    assert field in told.detail


def test_an_edit_gives_no_time_to_a_step_that_waits_for_its_condition(engine: Engine) -> None:
    when = Reference.parse("when", "steps.plan")
    steps = (Step(id="plan"), Step(id="make", needs=("plan",), when=when))
    run = engine.runs.start(NewRun(workflow=Workflow.define("w", steps))).id
    told = engine.tasks.edit(engine.runs.task(run, "make").id, {"scheduled_for": "1h"})
    assert (told.reason, advised(told)) == (Refusal.INVALID_TRANSITION, [])
